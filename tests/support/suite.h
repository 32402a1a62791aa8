/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_SUITE_H
#define CAIRN_TESTS_SUPPORT_SUITE_H

/*
 * TEST_SUITE("name", test_a, test_b, ...) defines the main() of a test program with the given tests: one libcheck case,
 * one process per test, TAP on stdout.
 */
#include <check.h>
#include <stddef.h>

#include "common/error.h"

int suite_run(const char *name, const TTest *const *tests, size_t count);

/** The same with a fixture that is set up before and torn down after each test (in the test's own process). */
int suite_run_with(const char *name, void (*set_up)(void), void (*tear_down)(void), const TTest *const *tests,
                   size_t count);

#define TEST_SUITE(name, ...)                                                                                          \
        int main(void)                                                                                                 \
        {                                                                                                              \
                const TTest *const tests[] = { __VA_ARGS__ };                                                          \
                                                                                                                       \
                return suite_run(name, tests, sizeof tests / sizeof *tests);                                           \
        }

/** The same with the fixture set_up() and tear_down() of the program. */
#define TEST_SUITE_WITH_FIXTURE(name, ...)                                                                             \
        int main(void)                                                                                                 \
        {                                                                                                              \
                const TTest *const tests[] = { __VA_ARGS__ };                                                          \
                                                                                                                       \
                return suite_run_with(name, set_up, tear_down, tests, sizeof tests / sizeof *tests);                   \
        }

/** Fail the test unless st is ST_OK. */
void check_ok(enum status st, const struct error *err);

#endif
