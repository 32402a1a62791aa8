/* SPDX-License-Identifier: Apache-2.0 */
/* Names as gcc 12, clang 14, rustc and Go 1.2x give them: a row for each kind of symbol-index/comparison_name.h. */
#include <check.h>
#include <string.h>

#include "common/limits.h"
#include "symbol-index/comparison_name.h"
#include "symbol-index/demangle.h"
#include "tests/support/suite.h"

struct comparison_case {
        const char *name, *numbered, *without;
};

static void assert_form(const char *name, const char *file, enum comparison_form form, const char *want)
{
        _cleanup_buf_ struct buf scratch;
        const char *got;

        buf_init(&scratch, LIMIT_DEMANGLED_BYTES + 1);
        got = symbol_comparison_name(name, file, form, &scratch);
        ck_assert_msg(strcmp(got, want) == 0, "%s: got %s, want %s", name, got, want);
        if (strcmp(name, want) == 0)
                ck_assert_ptr_eq(got, name);
}

static void assert_forms(const struct comparison_case *cases, size_t count, const char *file)
{
        for (size_t i = 0; i < count; i++) {
                assert_form(cases[i].name, file, COMPARISON_NUMBERED, cases[i].numbered);
                assert_form(cases[i].name, file, COMPARISON_WITHOUT_NUMBERS, cases[i].without);
        }
}
#define ASSERT_FORMS(cases, file) assert_forms(cases, sizeof(cases) / sizeof *(cases), file)

START_TEST(suffixes_of_clones_are_removed)
{
        static const struct comparison_case cases[] = {
                { "parse", "parse", "parse" },
                { "parse.cold", "parse", "parse" },
                { "parse.isra.0", "parse", "parse" },
                { "parse.part.3", "parse", "parse" },
                { "parse.constprop.0.isra.1.cold", "parse", "parse" },
                { "parse.lto_priv.2", "parse", "parse" },
                { "parse.llvm.8291029301923", "parse", "parse" },
                { "parse.__uniq.27139", "parse", "parse" },
                { "shop::f(int) [clone .isra.0] [clone .cold]", "shop::f(int)", "shop::f(int)" },
                { "shop::f(int) (.llvm.12)", "shop::f(int)", "shop::f(int)" },
                { "parse.2", "parse.2", "parse.2" },
                { ".cold", ".cold", ".cold" },
        };

        ASSERT_FORMS(cases, "");
}
END_TEST

START_TEST(hashes_of_rust_are_removed)
{
        static const struct comparison_case cases[] = {
                { "shop::run::h0123456789abcdef", "shop::run", "shop::run" },
                { "shop::run::h0123456789abcdef.llvm.77", "shop::run", "shop::run" },
                { "<shop[9c2f0e1d]::T as core[1234567890abcdef]::Add>::add", "<shop::T as core::Add>::add",
                  "<shop::T as core::Add>::add" },
                { "shop::run::h0123", "shop::run::h0123", "shop::run::h0123" },
                { "f([16])", "f([16])", "f([16])" },
        };

        ASSERT_FORMS(cases, "src/main.rs");
}
END_TEST

START_TEST(numbers_of_lambdas_are_removed_on_request)
{
        static const struct comparison_case cases[] = {
                { "f()::{lambda(int)#1}::operator()(int) const", "f()::{lambda#1}::operator()(int) const",
                  "f()::{lambda}::operator()(int) const" },
                { "f()::{lambda(void (*)(int))#12}::_FUN(int)", "f()::{lambda#12}::_FUN(int)",
                  "f()::{lambda}::_FUN(int)" },
                { "f()::'lambda'(int)::operator()(int) const", "f()::{lambda#1}::operator()(int) const",
                  "f()::{lambda}::operator()(int) const" },
                { "f()::'lambda0'(int)::operator()(int) const", "f()::{lambda#2}::operator()(int) const",
                  "f()::{lambda}::operator()(int) const" },
                { "f()::$_3::operator()(int) const", "f()::{lambda$3}::operator()(int) const",
                  "f()::{lambda}::operator()(int) const" },
                { "f()::(anonymous struct)::operator()", "f()::(anonymous struct)::operator()",
                  "f()::{lambda}::operator()" },
                { "(anonymous struct)::g", "(anonymous struct)::g", "(anonymous struct)::g" },
                { "a$_3", "a$_3", "a$_3" },
                { "shop::run::{closure#0}", "shop::run::{closure#0}", "shop::run::{closure}" },
                { "shop::run::{{closure}}::h0123456789abcdef", "shop::run::{{closure}}", "shop::run::{closure}" },
                { "f()::{unnamed type#1}::g()", "f()::{unnamed type#1}::g()", "f()::{unnamed type}::g()" },
        };

        ASSERT_FORMS(cases, "");
}
END_TEST

START_TEST(numbers_of_functions_of_go_are_removed_on_request)
{
        static const struct comparison_case cases[] = {
                { "main.serve.func1", "main.serve.func1", "main.serve.func" },
                { "main.serve.func1.2", "main.serve.func1.2", "main.serve.func." },
                { "main.serve.gowrap3", "main.serve.gowrap3", "main.serve.gowrap" },
                { "main.serve.func2-range1", "main.serve.func2-range1", "main.serve.func-range" },
                { "main.func1x", "main.func1x", "main.func1x" },
                { "sync.Map[go.shape.int,go.shape.string].Load", "sync.Map[go.shape.int,go.shape.string].Load",
                  "sync.Map[go.shape.int,go.shape.string].Load" },
        };

        ASSERT_FORMS(cases, "/src/main.go");
        assert_form("object.func1", "object.py", COMPARISON_WITHOUT_NUMBERS, "object.func1");
}
END_TEST

START_TEST(spelling_of_types_is_unified)
{
        static const struct comparison_case cases[] = {
                { "g(std::vector<A<int> >)", "g(std::vector<A<int>>)", "g(std::vector<A<int>>)" },
                { "a::name[abi:cxx11]() const", "a::name() const", "a::name() const" },
                { "operator> <int>(int)", "operator> <int>(int)", "operator> <int>(int)" },
        };

        ASSERT_FORMS(cases, "");
}
END_TEST

START_TEST(overloads_and_template_arguments_stay)
{
        static const struct comparison_case cases[] = {
                { "f(int)", "f(int)", "f(int)" },
                { "f(long)", "f(long)", "f(long)" },
                { "f<int>(int)", "f<int>(int)", "f<int>(int)" },
        };

        ASSERT_FORMS(cases, "");
}
END_TEST

START_TEST(names_with_unbalanced_brackets_are_copied)
{
        static const struct comparison_case cases[] = {
                { "{lambda(int#1}", "{lambda(int#1}", "{lambda(int#1}" },
                { "{lambda({lambda(int)#1}", "{lambda({lambda(int)#1}", "{lambda({lambda(int)#1}" },
                { "a[abi:cxx", "a[abi:cxx", "a[abi:cxx" },
                { "'lambda", "'lambda", "'lambda" },
                { "{#1}", "{#1}", "{}" },
                { "[", "[", "[" },
        };

        ASSERT_FORMS(cases, "");
}
END_TEST

START_TEST(names_as_compilers_give_them_are_equal_across_builds)
{
        static const char *const pairs[][2] = {
                { "_ZZ1fvENKUliE_clEi", "_ZZ1fvENK3$_0clEi" },                    /* gcc, clang: a lambda of f() */
                { "_ZL4walkP4Nodei.isra.0", "_ZL4walkP4Nodei.constprop.0.cold" }, /* clones of a static function */
                { "_ZN4shop3run17h0123456789abcdefE", "_ZN4shop3run17hfedcba9876543210E.llvm.9" },
        };

        for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
                _cleanup_buf_ struct buf a, b, x, y;

                buf_init(&a, LIMIT_DEMANGLED_BYTES + 1);
                buf_init(&b, LIMIT_DEMANGLED_BYTES + 1);
                buf_init(&x, LIMIT_DEMANGLED_BYTES + 1);
                buf_init(&y, LIMIT_DEMANGLED_BYTES + 1);
                ck_assert_str_eq(
                        symbol_comparison_name(symbol_demangle(pairs[i][0], &a), "", COMPARISON_WITHOUT_NUMBERS, &x),
                        symbol_comparison_name(symbol_demangle(pairs[i][1], &b), "", COMPARISON_WITHOUT_NUMBERS, &y));
        }
}
END_TEST

TEST_SUITE("comparison_name", suffixes_of_clones_are_removed, hashes_of_rust_are_removed,
           numbers_of_lambdas_are_removed_on_request, numbers_of_functions_of_go_are_removed_on_request,
           spelling_of_types_is_unified, overloads_and_template_arguments_stay,
           names_with_unbalanced_brackets_are_copied, names_as_compilers_give_them_are_equal_across_builds)
