/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/suite.h"

#include <stdlib.h>

void check_ok(enum status st, const struct error *err)
{
        ck_assert_msg(st == ST_OK, "%s", err->text);
}

int suite_run(const char *name, const TTest *const *tests, size_t count)
{
        return suite_run_with(name, NULL, NULL, tests, count);
}

int suite_run_with(const char *name, void (*set_up)(void), void (*tear_down)(void), const TTest *const *tests,
                   size_t count)
{
        Suite *suite = suite_create(name);
        TCase *tcase = tcase_create(name);
        SRunner *runner;
        int failed;

        if (set_up)
                tcase_add_checked_fixture(tcase, set_up, tear_down);
        for (size_t i = 0; i < count; i++)
                tcase_add_test(tcase, tests[i]);
        tcase_set_timeout(tcase, 120);
        suite_add_tcase(suite, tcase);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
