/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_SUITE_H
#define CAIRN_TESTS_SUPPORT_SUITE_H

/*
 * TEST_SUITE("name", test_a, test_b, ...) defines the main() of a test program with the given tests: one libcheck case,
 * one process per test, TAP on stdout.
 */
#include <check.h>
#include <stddef.h>

int suite_run(const char *name, const TTest *const *tests, size_t count);

/** The same with a fixture that is set up before and torn down after each test (in the test's own process). */
int suite_run_with(const char *name, void (*setup)(void), void (*teardown)(void), const TTest *const *tests,
                   size_t count);

#define TEST_SUITE(name, ...)                                                                                          \
        int main(void)                                                                                                 \
        {                                                                                                              \
                const TTest *const tests[] = { __VA_ARGS__ };                                                          \
                                                                                                                       \
                return suite_run(name, tests, sizeof tests / sizeof *tests);                                           \
        }

#endif
