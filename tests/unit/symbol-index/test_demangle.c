/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <dlfcn.h>
#include <string.h>

#include "common/limits.h"
#include "symbol-index/demangle.h"
#include "symbol-index/usual_mangling.h"
#include "tests/support/suite.h"

static void assert_readable(const char *linkage_name, const char *readable)
{
        _cleanup_buf_ struct buf scratch;

        buf_init(&scratch, LIMIT_DEMANGLED_BYTES + 1);
        ck_assert_str_eq(symbol_demangle(linkage_name, &scratch), readable);
}

START_TEST(cplusplus_names_are_demangled)
{
        assert_readable("_ZNSt6vectorIiSaIiEE9push_backERKi",
                        "std::vector<int, std::allocator<int> >::push_back(int const&)");
        assert_readable("_ZN3FooC4Ev", "Foo::Foo()");
        assert_readable("_ZL6helperv.isra.0", "helper() [clone .isra.0]");
}
END_TEST

START_TEST(stubs_and_versions_of_symbols_are_demangled)
{
        assert_readable("_ZSt9terminatev@plt", "std::terminate()@plt");
        assert_readable("_ZN3FooC4Ev@@LIB_1.0", "Foo::Foo()@@LIB_1.0");
        assert_readable("_ZN1a1bILi1EEEiv@LIB_1", "int a::b<1>()@LIB_1");
        assert_readable("_RNvCskwGfYPst2Cb_3foo16example_function@plt", "foo::example_function@plt");
        assert_readable("_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE@plt",
                        "core::fmt::Formatter::write_str@plt");
        assert_readable("_Z4addcITk3NumiET_S0_i@plt", "int addc<int>(int, int)@plt");
        assert_readable("_Zz@plt", "_Zz@plt");
        assert_readable("puts@plt", "puts@plt");
}
END_TEST

START_TEST(rust_names_of_both_schemes_are_demangled_without_hash)
{
        assert_readable("_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE", "core::fmt::Formatter::write_str");
        assert_readable("_RNvCskwGfYPst2Cb_3foo16example_function", "foo::example_function");
}
END_TEST

START_TEST(d_names_are_demangled)
{
        assert_readable("_D8demangle4testFZv", "demangle.test()");
        assert_readable("_Dmain", "D main");
}
END_TEST

/* Of the hook that is called in each function, and of the operator delete that C++ libraries use. */
START_TEST(demangler_replaces_no_function_of_libraries)
{
        static const char *const names[] = { "__cyg_profile_func_enter", "_ZdlPv", "_ZdlPvm" };
        Dl_info own, found;

        ck_assert_int_ne(dladdr((void *)assert_readable, &own), 0);
        assert_readable("_ZN3FooC4Ev", "Foo::Foo()");
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
                void *function = dlsym(RTLD_DEFAULT, names[i]);

                if (!function)
                        continue; /* no loaded library has it */
                ck_assert_int_ne(dladdr(function, &found), 0);
                ck_assert_msg(found.dli_fbase != own.dli_fbase, "%s is exported", names[i]);
        }
}
END_TEST

START_TEST(other_names_are_unchanged)
{
        static const char *const names[] = { "",      "main",  "_",     "_start",    "__libc_start_main",
                                             "_Zfoo", "_Rfoo", "_Dfoo", "main.main", "_ZN" };

        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
                assert_readable(names[i], names[i]);
}
END_TEST

/* libiberty of Debian 12 knows none of these. */
START_TEST(names_of_cplusplus_20_are_demangled)
{
        assert_readable("_Z4addcITk3NumiET_S0_i", "int addc<int>(int, int)");
        assert_readable("_ZN1B1mIiQ5Same2IT_iEEEiS1_", "int B::m<int>(T)");
        assert_readable("_ZNH1B3dedIRS_EEiOT_i", "int B::ded<B&>(this B&, int)");
        assert_readable("_Z2pkIJidEEiiDpT_Qfraa3NumIS0_E",
                        "int pk<int, double>(int, int, double) requires ((Num<int>, Num<double>) && ...)");
        assert_readable("_Z4addcITk3NumiET_S0_i.isra.0.cold", "int addc<int>(int, int) [clone .isra.0] [clone .cold]");
        assert_readable("_ZZ4addcITk3NumiET_S0_iE1f_0", "int addc<int>(int, int)::f");
}
END_TEST

/* The arguments are "Foo, Foo, ...": each takes 4 bytes of the linkage name and 5 of the readable one. */
static void check_long_name(int arguments, bool is_readable)
{
        _cleanup_buf_ struct buf name, expected;

        buf_init(&name, 2 * LIMIT_MANGLED_BYTES);
        buf_init(&expected, 2 * LIMIT_DEMANGLED_BYTES);
        buf_append_str(&name, "_Z1fI");
        buf_append_str(&expected, "void f<Foo");
        for (int i = 0; i < arguments; i++) {
                buf_append_str(&name, "3Foo");
                buf_append_str(&expected, i ? ", Foo" : "");
        }
        buf_append_str(&name, "Evv");
        buf_append_str(&expected, ">()");
        assert_readable(buf_cstr(&name), is_readable ? buf_cstr(&expected) : buf_cstr(&name));
}

START_TEST(long_names_are_demangled_up_to_the_limit)
{
        check_long_name(1000, true);
        check_long_name(2000, true);
        check_long_name(13000, true); /* 65,013 bytes */
        check_long_name(13200, false);
        check_long_name(17000, false);
}
END_TEST

/* Names that nest deeply, double with each part, or double without output: left where a bound is reached. */
START_TEST(crafted_names_do_not_exceed_bounds)
{
        static const struct {
                const char *start, *part, *end;
                int count;
        } cases[] = {
                { "_Z1f", "P", "i", 65000 },
                { "_Z1f", "A1_", "i", 20000 },
                { "_Z1fI", "N1a", "", 10000 },
                { "_Z1fIX", "pl", "Evv", 30000 },
                { "_Z1fIQ", "aa", "Evv", 30000 },
                { "_Z1fIJ", "J", "EEvv", 30000 },
                { "_Z1f", "F", "v", 30000 },
                { "_Z1fIUl", "Ul", "E_v", 30000 },
                { "_Z1fITk3Num", "TtT", "Evv", 20000 },
                { "_Z1fIJEEvDp", "Dp", "T_", 30000 },
        };
        static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        _cleanup_buf_ struct buf name, scratch;

        buf_init(&name, LIMIT_MANGLED_BYTES + 1);
        buf_init(&scratch, LIMIT_DEMANGLED_BYTES + 1);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                buf_clear(&name);
                buf_append_str(&name, cases[i].start);
                for (int k = 0; k < cases[i].count; k++)
                        buf_append_str(&name, cases[i].part);
                buf_append_str(&name, cases[i].end);
                ck_assert_uint_gt(strlen(symbol_demangle(buf_cstr(&name), &scratch)), 0);
        }
        for (int with_output = 0; with_output < 2; with_output++) {
                buf_clear(&name);
                buf_append_str(&name, "_Z1fQ1CSt4pairIJEE");
                for (int k = 0; k < 30; k++)
                        buf_printf(&name, with_output ? "1BIS%c_S%c_E" : "1BIJDpS%c_DpS%c_EE", digits[k], digits[k]);
                ck_assert_uint_gt(strlen(symbol_demangle(buf_cstr(&name), &scratch)), 0);
        }
}
END_TEST

START_TEST(names_over_a_kilobyte_are_demangled)
{
        _cleanup_buf_ struct buf name, scratch;
        const char *readable;

        buf_init(&name, LIMIT_MANGLED_BYTES + 1);
        buf_init(&scratch, LIMIT_DEMANGLED_BYTES + 1);
        buf_append_str(&name, "_Z1fI");
        for (int i = 0; i < 400; i++)
                buf_append_str(&name, "3Foo");
        buf_append_str(&name, "Evv");
        readable = symbol_demangle(buf_cstr(&name), &scratch);
        ck_assert_msg(strncmp(readable, "void f<Foo, Foo,", 16) == 0, "%s", readable);
}
END_TEST

START_TEST(name_that_expands_exponentially_is_unchanged)
{
        _cleanup_buf_ struct buf name, scratch;
        static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

        buf_init(&name, LIMIT_MANGLED_BYTES + 1);
        buf_init(&scratch, LIMIT_DEMANGLED_BYTES + 1);
        /* Each argument is a pair of the previous one: the demangled name doubles in length each time. */
        buf_append_str(&name, "_Z1fSt4pairIiiE");
        for (int i = 0; i < 30; i++)
                buf_printf(&name, "S_IS%c_S%c_E", digits[i], digits[i]);
        ck_assert_ptr_eq(symbol_demangle(buf_cstr(&name), &scratch), name.data);
}
END_TEST

START_TEST(name_over_the_limit_is_unchanged)
{
        static char name[LIMIT_MANGLED_BYTES + 16];

        memset(name, 'P', sizeof name - 1);
        memcpy(name, "_Z1f", 4);
        assert_readable(name, name);
        name[LIMIT_MANGLED_BYTES - 1] = 'i'; /* the deepest nesting that is demangled */
        name[LIMIT_MANGLED_BYTES] = 0;
        assert_readable("_Z1f", "f");
        {
                _cleanup_buf_ struct buf scratch;

                buf_init(&scratch, LIMIT_DEMANGLED_BYTES + 1);
                ck_assert_uint_gt(strlen(symbol_demangle(name, &scratch)), 0);
        }
}
END_TEST

/* True for the names of compilers that are demangled, without demangling the usual ones; false for no other. */
START_TEST(names_that_can_be_demangled_are_known)
{
        static const struct {
                const char *name;
                bool is_usual;
        } known[] = {
                { "_ZN3FooC4Ev", true },
                { "_ZL6helperv.isra.0", true },
                { "_ZNSt6vectorIiSaIiEE9push_backERKi", true },
                { "_ZNSt8functionIFbcEEC4INSt8__detail12_CharMatcherINSt7__cxx1112regex_traitsIcEELb1ELb0EEEvEEOT_",
                  true },
                { "_ZZNSt9once_flag4callC4IZSt4callIMNSt3setEFvPSt8functionIFvvEEPbEJPS4_EEvRS_OT_EUlvE_EERS8_ENUlvE_4_"
                  "FUNEv",
                  true },
                { "_ZN3fooB5cxx113barILi3ELj4ELb1EJifEEEDpT3_", true },
                { "_ZNK1XcvbEv", true },
                { "_ZN1XaSERKS_", true },
                { "_ZN1A1fIXsr3std9is_same_vEEEA3_iMS_FvvE", true },
                { "_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE", true },
                { "_RNvCskwGfYPst2Cb_3foo16example_function", true },
                { "_RINvCs1234_1a1fKj7_hE", true },
                { "_ZTh8_N1C3dupEv", false },
                { "_ZN1A1fIiEEDTcl1gfp_EET_", false },
                { "_D8demangle4testFZv", false },
        };
        static const char *const unknown[] = { "_Z",          "_Zgarbage",       "_ZN3foo",     "_ZN3net4runEQQQi",
                                               "_Z9hidden",   "_ZN3netW4part",   "_Z1fDq",      "_ZN99fooE",
                                               "_ZN3fooEv_x", "_RNvCs1_1aZ1b_W", "_D99unknown", "_Z4294967299abcv" };

        for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
                ck_assert_msg(symbol_can_be_demangled(known[i].name), "%s", known[i].name);
                ck_assert_msg(has_usual_mangling(known[i].name, strlen(known[i].name)) == known[i].is_usual, "%s",
                              known[i].name);
        }
        for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
                ck_assert_msg(!symbol_can_be_demangled(unknown[i]), "%s", unknown[i]);
}
END_TEST

TEST_SUITE("demangle", names_that_can_be_demangled_are_known, cplusplus_names_are_demangled,
           stubs_and_versions_of_symbols_are_demangled, rust_names_of_both_schemes_are_demangled_without_hash,
           d_names_are_demangled, demangler_replaces_no_function_of_libraries, other_names_are_unchanged,
           names_of_cplusplus_20_are_demangled, long_names_are_demangled_up_to_the_limit,
           crafted_names_do_not_exceed_bounds, names_over_a_kilobyte_are_demangled,
           name_that_expands_exponentially_is_unchanged, name_over_the_limit_is_unchanged)
