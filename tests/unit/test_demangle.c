/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <string.h>

#include "common/limits.h"
#include "symbol-index/demangle.h"
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

START_TEST(other_names_are_unchanged)
{
        static const char *const names[] = { "",      "main",  "_",     "_start",    "__libc_start_main",
                                             "_Zfoo", "_Rfoo", "_Dfoo", "main.main", "_ZN" };

        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
                assert_readable(names[i], names[i]);
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

TEST_SUITE("demangle", cplusplus_names_are_demangled, rust_names_of_both_schemes_are_demangled_without_hash,
           d_names_are_demangled, other_names_are_unchanged, names_over_a_kilobyte_are_demangled,
           name_that_expands_exponentially_is_unchanged, name_over_the_limit_is_unchanged)
