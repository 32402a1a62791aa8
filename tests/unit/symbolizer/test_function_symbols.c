/* SPDX-License-Identifier: Apache-2.0 */
/* Names of functions that come from ELF symbols, because DWARF has only a bare name or that of another function. */
#include <check.h>
#include <string.h>

#include "common/memory/array.h"
#include "symbolizer/sources/function_symbols.h"
#include "tests/support/suite.h"

#define AT 0x1000

static struct code_symbols known;
static int collections;

static enum status give_known(void *context, const struct code_symbols **ret)
{
        (void)context;
        collections++;
        *ret = &known;
        return ST_OK;
}

static void add_symbol(const char *name, uint64_t start, uint64_t size, uint8_t binding)
{
        ck_assert(array_reserve(&known.items, &known.capacity, known.count));
        known.items[known.count++] = (struct code_symbol){ .name = name,
                                                           .start = start,
                                                           .end = start + (size ? size : 0x100),
                                                           .source = QUALITY_SYMTAB,
                                                           .is_function = true,
                                                           .is_sized = size != 0,
                                                           .binding = binding };
}

/* The name of a function of 16 bytes at AT; "" if DWARF's is kept. Borrowed until the next call. */
static const char *get_name(const struct dwarf_name *name, uint64_t dwarf_bias)
{
        static char text[200];
        struct function_symbols s = { .collect = give_known, .dwarf_bias = dwarf_bias };
        const struct dwarf_interval range = { .start = AT, .end = AT + 16 };
        struct function_symbol_name found;

        collections = 0;
        ck_assert_int_eq(function_symbols_find_name(&s, &range, name, &found), ST_OK);
        snprintf(text, sizeof text, "%.*s", (int)found.size, found.text ? found.text : "");
        function_symbols_deinit(&s);
        return text;
}

static const char *bare_name(const char *plain)
{
        return get_name(&(struct dwarf_name){ .plain = plain, .is_bare = true }, 0);
}

static const char *linkage_name(const char *linkage)
{
        return get_name(&(struct dwarf_name){ .linkage = linkage }, 0);
}

static void forget_symbols(void)
{
        code_symbols_deinit(&known);
}

START_TEST(bare_name_becomes_that_of_the_mangled_symbol)
{
        add_symbol("_ZN4disk6Writer3runEi", AT + 16, 16, STB_GLOBAL);
        add_symbol("_ZN3net6Reader3runEi", AT, 20, STB_WEAK);
        ck_assert_str_eq(bare_name("run"), "_ZN3net6Reader3runEi");
        ck_assert_int_eq(collections, 1);
        ck_assert_str_eq(get_name(&(struct dwarf_name){ .plain = "run", .is_bare = true }, 16),
                         "_ZN4disk6Writer3runEi");
        forget_symbols();
}
END_TEST

START_TEST(qualified_name_is_kept)
{
        add_symbol("_ZN3net6Reader3runEi", AT, 16, STB_WEAK);
        ck_assert_str_eq(get_name(&(struct dwarf_name){ .plain = "net::run" }, 0), "");
        ck_assert_int_eq(collections, 0); /* the symbols are not needed */
        forget_symbols();
}
END_TEST

START_TEST(only_a_symbol_with_a_size_at_the_start_counts)
{
        add_symbol("_ZN3net6Reader3runEi", AT, 0, STB_GLOBAL);
        add_symbol("_ZN3net6Reader4run2Ei", AT - 1, 17, STB_GLOBAL);
        ck_assert_str_eq(bare_name("run"), "");
        add_symbol("_ZN3net6Reader3runEi.__part.1", AT, 16, STB_LOCAL); /* clang's parts have no type */
        known.items[2].is_function = false;
        ck_assert_str_eq(bare_name("run"), "_ZN3net6Reader3runEi");
        forget_symbols();
}
END_TEST

START_TEST(symbol_that_is_not_mangled_leaves_the_bare_name)
{
        add_symbol("run_alias", AT, 16, STB_GLOBAL);
        ck_assert_str_eq(bare_name("run"), "");
        add_symbol("_RC4_set_key", AT, 16, STB_GLOBAL);     /* of C */
        add_symbol("_ZN3net3runEQQQi", AT, 16, STB_GLOBAL); /* no demangler knows it */
        add_symbol("_Document", AT, 16, STB_GLOBAL);
        ck_assert_str_eq(bare_name("run"), "");
        forget_symbols();
}
END_TEST

static const char *repeated_name(const char *name)
{
        return get_name(&(struct dwarf_name){ .linkage = name, .is_bare = true }, 0);
}

START_TEST(symbol_with_the_scopes_of_a_name_replaces_it)
{
        static const char symbol[] = "*IO::Memory@IO#read<Slice(UInt8), Range(1..2)>:Int32";

        add_symbol(symbol, AT, 16, STB_GLOBAL);
        ck_assert_str_eq(repeated_name("read"), symbol);
        ck_assert_str_eq(bare_name("read"), symbol);
        ck_assert_str_eq(linkage_name("read"), "");
        ck_assert_str_eq(repeated_name("rea"), "");
        ck_assert_str_eq(repeated_name("ead"), "");
        ck_assert_str_eq(repeated_name("Memory"), "");
        forget_symbols();
        add_symbol("~procProc(Nil)@/src/signal.cr:92", AT, 16, STB_GLOBAL);
        ck_assert_str_eq(repeated_name("->"), "~procProc(Nil)@/src/signal.cr:92");
        forget_symbols();
        add_symbol("*aaa@aa#aaa#aa:Nil", AT, 16, STB_GLOBAL);
        ck_assert_str_eq(repeated_name("aa"), "*aaa@aa#aaa#aa:Nil");
        forget_symbols();
        add_symbol("*Int32#**<Int32>:Int32", AT, 16, STB_GLOBAL);
        ck_assert_str_eq(repeated_name("**"), "*Int32#**<Int32>:Int32");
        forget_symbols();
        add_symbol("*fib<Int32>:Int32", AT, 16, STB_GLOBAL);
        ck_assert_str_eq(repeated_name("fib"), "*fib<Int32>:Int32");
        add_symbol("fib", AT, 16, STB_GLOBAL);
        ck_assert_str_eq(repeated_name("fib"), "");
        forget_symbols();
}
END_TEST

START_TEST(suffix_of_clone_and_version_are_cut)
{
        static const char *const names[][2] = {
                { "_Z3runi.cold", "_Z3runi" },
                { "_ZN3net6Reader3runEi.constprop.0.isra.0", "_ZN3net6Reader3runEi" },
                { "_ZN3net6Reader3runEi@@V1", "_ZN3net6Reader3runEi" },
                { "_ZN4core3fmt3num50_$LT$impl$u20$core..fmt..Debug$u20$for$u20$u32$GT$3run17h0123456789abcdefE.llvm."
                  "77",
                  "_ZN4core3fmt3num50_$LT$impl$u20$core..fmt..Debug$u20$for$u20$u32$GT$3run17h0123456789abcdefE" },
                { "_RNvNtCs1234_7mycrate3net3run.llvm.12", "_RNvNtCs1234_7mycrate3net3run" },
        };

        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
                add_symbol(names[i][0], AT, 16, STB_GLOBAL);
                ck_assert_str_eq(bare_name("run"), names[i][1]);
                forget_symbols();
        }
}
END_TEST

START_TEST(of_folded_functions_the_one_with_the_name_is_chosen)
{
        add_symbol("_ZN1a5otherEi", AT, 16, STB_GLOBAL);
        add_symbol("_ZN1a3runEi", AT, 16, STB_WEAK);
        ck_assert_str_eq(bare_name("run<int>"), "_ZN1a3runEi");
        ck_assert_str_eq(bare_name("operator+"), "_ZN1a5otherEi"); /* the best of those at the address */
        add_symbol("run", AT, 16, STB_WEAK);                       /* extern "C" */
        ck_assert_str_eq(bare_name("run"), "");
        forget_symbols();
}
END_TEST

START_TEST(symbol_of_a_thunk_replaces_the_linkage_name_of_another_address)
{
        add_symbol("_ZN1D3getEv", AT + 16, 16, STB_WEAK);
        add_symbol("_ZThn16_N1D3getEv", AT, 16, STB_WEAK);
        ck_assert_str_eq(linkage_name("_ZN1D3getEv"), "_ZThn16_N1D3getEv");
        ck_assert_str_eq(linkage_name("_ZN1D3getEv.cold"), "_ZThn16_N1D3getEv");
        ck_assert_str_eq(linkage_name("_ZN1D3putEv"), ""); /* no symbol: it may be here */
        forget_symbols();
}
END_TEST

START_TEST(linkage_name_stays_unless_another_function_covers_exactly)
{
        add_symbol("_ZN1D3getEv", AT + 16, 16, STB_WEAK);
        add_symbol("_ZN1D3putEv", AT, 32, STB_WEAK);
        ck_assert_str_eq(linkage_name("_ZN1D3getEv"), "");
        add_symbol("_ZN1D5labelEv", AT, 16, STB_WEAK);
        known.items[2].is_function = false;
        ck_assert_str_eq(linkage_name("_ZN1D3getEv"), "");
        add_symbol("_ZN1D3setEv", AT, 16, STB_WEAK);
        add_symbol("_ZN1D3getEv.isra.0", AT, 16, STB_LOCAL); /* a clone at this address */
        ck_assert_str_eq(linkage_name("_ZN1D3getEv"), "");
        forget_symbols();
}
END_TEST

/* The end of a function at AT for which DWARF says AT + 0x20. */
static uint64_t get_end(void)
{
        struct function_symbols s = { .collect = give_known };
        const struct dwarf_interval range = { .start = AT, .end = AT + 0x20 };
        uint64_t end = 0;

        ck_assert_int_eq(function_symbols_find_end(&s, &range, &end), ST_OK);
        function_symbols_deinit(&s);
        return end - AT;
}

START_TEST(long_function_ends_where_another_symbol_starts)
{
        ck_assert_uint_eq(get_end(), 0x20);
        add_symbol("next", AT + 0x18, 0x20, STB_GLOBAL);
        ck_assert_uint_eq(get_end(), 0x20); /* no symbol of its own */
        add_symbol("own", AT, 0x14, STB_GLOBAL);
        ck_assert_uint_eq(get_end(), 0x18);
        known.items[0].is_function = false; /* a label */
        ck_assert_uint_eq(get_end(), 0x20);
        known.items[0].is_function = true;
        add_symbol("alias", AT, 0x20, STB_WEAK); /* as long as the function */
        ck_assert_uint_eq(get_end(), 0x20);
        forget_symbols();
}
END_TEST

TEST_SUITE("function_symbols", long_function_ends_where_another_symbol_starts,
           bare_name_becomes_that_of_the_mangled_symbol, qualified_name_is_kept,
           only_a_symbol_with_a_size_at_the_start_counts, symbol_that_is_not_mangled_leaves_the_bare_name,
           suffix_of_clone_and_version_are_cut, symbol_with_the_scopes_of_a_name_replaces_it,
           of_folded_functions_the_one_with_the_name_is_chosen,
           symbol_of_a_thunk_replaces_the_linkage_name_of_another_address,
           linkage_name_stays_unless_another_function_covers_exactly)
