/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linkage names from libLLVM-14, libstdc++, Rust's libstd and the Go tools, and from a program with one of each kind.
 */
#include <check.h>
#include <string.h>

#include "common/limits.h"
#include "symbol-index/demangle.h"
#include "symbol-index/short_name.h"
#include "tests/support/suite.h"

struct name_case {
        const char *name, *short_name;
};

static void assert_short(const char *name, const char *linkage_name, const char *want)
{
        _cleanup_buf_ struct buf scratch;
        const char *got;

        buf_init(&scratch, LIMIT_DEMANGLED_BYTES + 1);
        got = symbol_short_name(name, linkage_name, &scratch);
        ck_assert_msg(strcmp(got, want) == 0, "%s: got %s, want %s", name, got, want);
        if (strcmp(name, want) == 0)
                ck_assert_ptr_eq(got, name);
}

static void assert_all(const struct name_case *cases, size_t count)
{
        for (size_t i = 0; i < count; i++)
                assert_short(cases[i].name, "", cases[i].short_name);
}

static const struct name_case mangled[] = {
        { "_ZN4shop6pick_tIiEEPFvcET_", "shop::pick_t<...>" },
        { "_ZN4shop5tableEi", "shop::table" },
        { "_ZN4shop1S4callIXadL_ZNKRS0_1mEiEEEEiv", "shop::S::call<...>" },
        { "_ZN4shop3ArrILi3EE2atIiEEiRA3_T_", "shop::Arr<...>::at<...>" },
        { "_ZN4shop3bigIlvEEiT_", "shop::big<...>" },
        { "_ZN4shop3midIlEENSt9enable_ifIXaagtstT_Li2EltstS2_Li100EEiE4typeES2_", "shop::mid<...>" },
        { "_ZN4shop4plusIiEEDTplfp_fp0_ET_S2_", "shop::plus<...>" },
        { "_ZN4shopli4_eurEy", "shop::operator\"\" _eur" },
        { "_ZN4shoplsIiEEPT_RNS_5MoneyES2_", "shop::operator<< <...>" },
        { "_ZN4shopltIiEEbRKSt6vectorIT_SaIS2_EES2_", "shop::operator< <...>" },
        { "_ZNK4shop5MoneyclEi", "shop::Money::operator()" },
        { "_ZNK4shop5MoneycvSt6vectorIiSaIiEEEv", "shop::Money::operator std::vector<...>" },
        { "_ZNK4shop5MoneycvbEv", "shop::Money::operator bool" },
        { "_ZNK4shop5MoneygtERKS0_", "shop::Money::operator>" },
        { "_ZNK4shop5MoneyixEi", "shop::Money::operator[]" },
        { "_ZNK4shop5MoneyltERKS0_", "shop::Money::operator<" },
        { "_ZN4shop5MoneyptEv", "shop::Money::operator->" },
        { "_ZN4shop5MoneynwEm", "shop::Money::operator new" },
        { "_ZN4shop5MoneydaEPv", "shop::Money::operator delete[]" },
        { "_ZNVK12_GLOBAL__N_16Hidden3getEi", "(anonymous namespace)::Hidden::get" },
        { "_ZN12_GLOBAL__N_16hiddenImEET_S1_", "(anonymous namespace)::hidden<...>" },
        { "_ZZZN4shop3runERSt6vectorIiSaIiEEENKUliE1_clEiEN5Local5twiceEi",
          "shop::run::{lambda#3}::operator()::Local::twice" },
        { "_ZZN4shop3runERSt6vectorIiSaIiEEENKUlT_E0_clIiEEDaS4_", "shop::run::{lambda#2}::operator()<...>" },
        { "_ZZN4shop3runERSt6vectorIiSaIiEEENK3$_0clEi", "shop::run::$_0::operator()" },
        { "_ZNO4shop1S1mEi", "shop::S::m" },
        { "_ZNSt9_Any_data9_M_accessIPKSt9type_infoEERT_v", "std::_Any_data::_M_access<...>" },
        { "_ZNSt8functionIFiiEEC1IZN4shop3runERSt6vectorIiSaIiEEEUliE1_vEEOT_", "std::function<...>::function<...>" },
        { "_ZThn168_N4llvm3orc15SimpleRemoteEPC13handleMessageENS0_21SimpleRemoteEPCOpcodeEmNS0_12ExecutorAddrENS_1"
          "1SmallVectorIcLj128EEE",
          "non-virtual thunk to llvm::orc::SimpleRemoteEPC::handleMessage" },
        { "_ZThn16_NSdD0Ev", "non-virtual thunk to std::basic_iostream<...>::~basic_iostream" },
        { "_ZGVZN11AAAlignImpl8manifestERN4llvm10AttributorEE17NumIRLoad_AAAlign",
          "guard variable for AAAlignImpl::manifest::NumIRLoad_AAAlign" },
        { "_ZGVZN4llvm14ChangeReporterINS_7IRDataTINS_6DCDataEEEE17isInterestingPassENS_9StringRefEE14PrintPassName"
          "sB5cxx11",
          "guard variable for llvm::ChangeReporter<...>::isInterestingPass::PrintPassNames" },
        { "_ZSt10__invoke_rIiRZN4shop3runERSt6vectorIiSaIiEEEUliE1_JiEENSt9enable_ifIX16is_invocable_r_vIT_T0_DpT1_"
          "EES8_E4typeEOS9_DpOSA_",
          "std::__invoke_r<...>" },
        { "_ZN4llvm14DOTGraphTraitsIPKNS_19DataDependenceGraphEE17getEdgeAttributesB5cxx11EPKNS_7DDGNodeENS_15mappe"
          "d_iteratorIN9__gnu_cxx17__normal_iteratorIPKPNS_7DDGEdgeESt6vectorISC_SaISC_EEEEPFS7_PKNS_6DGEdgeIS5_SB_"
          "EEES7_EES3_",
          "llvm::DOTGraphTraits<...>::getEdgeAttributes" },
        { "_ZTIN4llvm2cl3optI12DefaultOnOffLb0ENS0_6parserIS2_EEEUlRKS2_E_E",
          "typeinfo for llvm::cl::opt<...>::{lambda#1}" },
        { "_ZNSt6vectorIN4llvm10AsmPrinter11HandlerInfoESaIS2_EE17_M_realloc_insertIJSt10unique_ptrINS0_10DwarfDebu"
          "gESt14default_deleteIS7_EERA5_KcRA20_SB_RA6_SB_RA15_SB_EEEvN9__gnu_cxx17__normal_iteratorIPS2_S4_EEDpOT_",
          "std::vector<...>::_M_realloc_insert<...>" },
        { "_ZNSt10unique_ptrIiSt14default_deleteIiEED1Ev", "std::unique_ptr<...>::~unique_ptr" },
        { "_ZN4llvm5MachOeqINS_8DenseMapINS_13SymbolsMapKeyEPNS0_6SymbolENS_12DenseMapInfoIS3_vEENS_6detail12DenseM"
          "apPairIS3_S5_EEEES7_SA_EEbRKNS_12DenseMapBaseIT_S3_S5_T0_T1_EESI_",
          "llvm::MachO::operator==<...>" },
        { "_ZN4llvm11RuntimeDyld13MemoryManager18allocateTLSSectionEmjjNS_9StringRefE",
          "llvm::RuntimeDyld::MemoryManager::allocateTLSSection" },
        { "_ZNSt8_Rb_treeIN20AAMemoryLocationImpl10AccessInfoES1_St9_IdentityIS1_ES1_SaIS1_EE16_M_insert_uniqueIRKS"
          "1_EESt4pairISt17_Rb_tree_iteratorIS1_EbEOT_",
          "std::_Rb_tree<...>::_M_insert_unique<...>" },
        { "_ZN4llvmlsINS_10BasicBlockEEERNS_11raw_ostreamES3_PKNS_15DomTreeNodeBaseIT_EE", "llvm::operator<< <...>" },
        { "_RINvNtCsgEmfK2I1SDS_4core3ptr13drop_in_placeINtCs4X4t9plMPHF_9addr2line7ContextINtNtNtCsduwmD7cSIQq_5gi"
          "mli4read12endian_slice11EndianSliceNtNtB1m_9endianity12LittleEndianEEECsjrHSEGnQ3l9_3std",
          "core::ptr::drop_in_place<...>" },
        { "_RINvMNtCsgEmfK2I1SDS_4core3stre12trim_matchesNvMNtNtB5_4char7methodsc13is_whitespaceECsjrHSEGnQ3l9_3std",
          "str::trim_matches<...>" },
        { "_RINvXs_NvMNtCslNYArtu3iFV_5alloc5sliceSp9to_vec_inhNtB5_10ConvertVec6to_vecNtNtBa_5alloc6GlobalECsjrHSE"
          "GnQ3l9_3std",
          "<u8 as <[_]>::to_vec_in::ConvertVec>::to_vec<...>" },
        { "_RNCINvMNtNtCsgEmfK2I1SDS_4core3net6parserNtB5_6Parser11read_numbertE0B9_",
          "core::net::parser::Parser::read_number<...>::{closure#0}" },
        { "_RNSINvNtCsjrHSEGnQ3l9_3std9panicking11begin_panicReE5reifyB6_",
          "std::panicking::begin_panic<...>::{shim:reify#0}" },
        { "_RINvMNtCsgEmfK2I1SDS_4core5sliceSh11copy_withinINtNtNtB5_3ops5range14RangeInclusivejEECsfEOYDRpO4Ta_11m"
          "iniz_oxide",
          "<[u8]>::copy_within<...>" },
        { "_RNvXNtCsgEmfK2I1SDS_4core3anyReNtB2_3Any7type_idCsjrHSEGnQ3l9_3std", "<&str as core::any::Any>::type_id" },
        { "_RINvMs4_NtCsgY6Mt91CT9J_14rustc_demangle2v0NtB6_7Printer14print_sep_listNvB2_15print_dyn_traitEB8_",
          "rustc_demangle::v0::Printer::print_sep_list<...>" },
};

START_TEST(demangled_names_are_shortened)
{
        for (size_t i = 0; i < sizeof mangled / sizeof *mangled; i++) {
                _cleanup_buf_ struct buf scratch;

                buf_init(&scratch, LIMIT_DEMANGLED_BYTES + 1);
                assert_short(symbol_demangle(mangled[i].name, &scratch), mangled[i].name, mangled[i].short_name);
        }
}
END_TEST

START_TEST(language_is_derived_from_demangled_names)
{
        static const struct name_case cases[] = {
                { "std::vector<int, std::allocator<int> >::push_back(int const&)", "std::vector<...>::push_back" },
                { "shop::run(std::vector<int>&)::'lambda'(int)::operator()(int) const",
                  "shop::run::'lambda'::operator()" },
                { "shop::run()::<lambda(int)>", "shop::run::<lambda(int)>" },
                { "std::sort<(lambda at a.cc:3:4)>", "std::sort<...>" },
                { "auto f<a::b>(a::b, bool (*)(int))::{lambda(auto:1, a::b)#2}::operator()<int>(int) const",
                  "f<...>::{lambda#2}::operator()<...>" },
                { "void (*(*ns::twice(int))(char))(long)", "ns::twice" },
                { "foo<&(bar::operator<(bar const&) const)>(int)", "foo<...>" },
                { "foo<((1)<(2))>::bar()", "foo<...>::bar" },
                { "java.lang.String.format(String, Object[])", "java.lang.String.format" },
                { "core::fmt::impls::<impl core::fmt::Debug for alloc::vec::Vec<std::path::PathBuf>>::fmt",
                  "core::fmt::impls::<impl core::fmt::Debug for alloc::vec::Vec<...>>::fmt" },
                { "<T as core::convert::Into<shop::Money>>::into", "<T as core::convert::Into<...>>::into" },
                { "<T as core::convert::Into<U>>::into", "<T as core::convert::Into<U>>::into" }, /* never longer */
                { "core::fmt::write::h0123456789abcdef", "core::fmt::write" },
                { "helper() [clone .isra.0]", "helper" },
                { "ns::f(int) [clone .part.0] [clone .cold]", "ns::f" },
                { "ns::f(int) (.llvm.123456)", "ns::f" },
                { "scan_block.constprop.0.isra.0", "scan_block" },
                { "main.cold", "main" },
        };

        assert_all(cases, sizeof cases / sizeof *cases);
}
END_TEST

START_TEST(go_names_keep_last_package_element)
{
        static const struct name_case cases[] = {
                { "net/http.(*Client).Post", "http.(*Client).Post" },
                { "cmd/go/internal/base.init.OnceValue[go.shape.string].func1", "base.init.OnceValue[...].func1" },
                { "cmd/internal/par.(*ErrCache[[2]string,*cmd/go/internal/modindex.IndexPackage]).Do",
                  "par.(*ErrCache[...]).Do" },
                { "crypto/internal/entropy/v1%2e0%2e0.(*source).Sample", "v1.0.0.(*source).Sample" },
                { "cmd/go/internal/generate.(*Generator).expandVar-fm", "generate.(*Generator).expandVar-fm" },
                { "slices.BinarySearchFunc[go.shape.[]go.shape.*net.IPNet,go.shape.*uint8,go.shape.[]uint8]",
                  "slices.BinarySearchFunc[...]" },
                { "archive/zip.init.0", "zip.init.0" },
                { "main.main", "main.main" },
                { "type:.eq.[10]interface {}", "type:.eq.[10]interface {}" },
                { "go:(*struct { io.Reader; io.Closer }).Close", "go:(*struct { io.Reader; io.Closer }).Close" },
        };

        assert_all(cases, sizeof cases / sizeof *cases);
}
END_TEST

START_TEST(short_names_are_unchanged)
{
        static const char *const names[] = {
                "",
                "main",
                "do_syscall_64",
                "memcpy@plt",
                "[unknown]",
                "_start",
                "(anonymous)",
                "operator",
                "<module>",
                "GC (idle)",
                "a b c",
                ".isra.0",
                ".cold",
                "/usr/lib/python3/os.py",
                "0x1f2c [libfoo.so]",
                "x.part",
                "entry_SYSCALL_64_after_hwframe",
                "frob.42",
        };

        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
                assert_short(names[i], "", names[i]);
}
END_TEST

START_TEST(d_names_are_unchanged)
{
        assert_short("demangle.test(int)", "_D8demangle4testFiZv", "demangle.test(int)");
}
END_TEST

START_TEST(names_with_unbalanced_brackets_are_unchanged)
{
        static const char *const names[] = { "a::b(",
                                             "a::b<c",
                                             "a::b>",
                                             "a::b(int",
                                             "a::{lambda(int",
                                             "a::b[x(]",
                                             "a::operator std::vector<",
                                             "decltype a::b",
                                             "decltype(a::b",
                                             "a::b)",
                                             "<a as b::c",
                                             "a::}",
                                             "vtable for ",
                                             "a::operator<<<int(>" };

        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
                assert_short(names[i], "_Z", names[i]);
}
END_TEST

START_TEST(depth_is_limited)
{
        static char name[8192];
        size_t n = (size_t)snprintf(name, sizeof name, "a::b");

        for (int i = 0; i < 2000; i++)
                n += (size_t)snprintf(name + n, sizeof name - n, "<x");
        memset(name + n, '>', 2000);
        memcpy(name + n + 2000, "()", 3);
        assert_short(name, "", name);
}
END_TEST

TEST_SUITE("short_name", demangled_names_are_shortened, language_is_derived_from_demangled_names,
           go_names_keep_last_package_element, short_names_are_unchanged, d_names_are_unchanged,
           names_with_unbalanced_brackets_are_unchanged, depth_is_limited)
