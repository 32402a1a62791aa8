/* SPDX-License-Identifier: Apache-2.0 */
/* Verification of the tables while files become unreadable between its passes: only files may be reported. */
#include <errno.h>
#include <glob.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "profile-store/tables/store_verification.h"
#include "tests/support/store_fixture.h"
#include "tests/support/suite.h"

#define FLUSHES 9
#define PARTS (3 * FLUSHES) /* each flush has a sample, stack and location of its own */

static struct store_fixture fixture;

struct check {
        void (*between)(void); /* after the pass over the files, before that over the references */
        char problems[4][300];
        unsigned problem_count;
};

static void note_problem(void *context, const char *table, const char *file, const char *problem)
{
        struct check *c = context;

        ck_assert_uint_lt(c->problem_count, 4);
        snprintf(c->problems[c->problem_count++], 300, "%s/%s: %s", table, file, problem);
}

static void note_progress(void *context, uint64_t done, uint64_t all)
{
        struct check *c = context;

        ck_assert_uint_eq(all, PARTS + 2 * FLUSHES);
        if (done == PARTS && c->between)
                c->between();
}

static enum status verify_store(struct check *c, struct error *err)
{
        const struct verify_options o = { .report = note_problem, .progress = note_progress, .context = c };
        struct store_verify_result r;
        enum status st = verify_tables(fixture.dir, &o, &r, err);

        ck_assert_uint_eq(r.problems, c->problem_count);
        return st;
}

static void make_store(void)
{
        fixture = (struct store_fixture){ .options.compact_interval_ms = UINT64_MAX };
        store_fixture_begin(&fixture);
        for (unsigned i = 0; i < FLUSHES; i++) {
                store_fixture_append(&fixture, i, 0x1000 + 16 * i);
                store_fixture_flush(&fixture);
        }
}

/* The paths of the files of stacks, to be freed by the caller. */
static glob_t list_stacks(void)
{
        char *pattern = store_fixture_path(&fixture, "tables/stacks/date=*/*.parquet");
        glob_t g;

        ck_assert_int_eq(glob(pattern, 0, NULL, &g), 0);
        free(pattern);
        return g;
}

static struct rlimit descriptors;

static void leave_no_descriptors(void)
{
        int lowest = dup(STDERR_FILENO);
        const struct rlimit limit = { (rlim_t)lowest, descriptors.rlim_max };

        close(lowest);
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

START_TEST(lack_of_descriptors_is_not_reported_for_a_file)
{
        struct check c = { .between = leave_no_descriptors };
        struct error err = { 0 };

        make_store();
        ck_assert_int_eq(verify_store(&c, &err), ST_OS);
        ck_assert_int_eq(err.os_errno, EMFILE);
        ck_assert_uint_eq(c.problem_count, 0);
}
END_TEST

static void unlink_newest_stacks(void)
{
        glob_t g = list_stacks();

        ck_assert_int_eq(unlink(g.gl_pathv[g.gl_pathc - 1]), 0);
        globfree(&g);
}

START_TEST(a_file_lost_between_the_passes_is_missing)
{
        struct check c = { .between = unlink_newest_stacks };
        struct error err = { 0 };

        make_store();
        check_ok(verify_store(&c, &err), &err);
        ck_assert_uint_ge(c.problem_count, 1);
        ck_assert_ptr_nonnull(strstr(c.problems[0], "is missing"));
        ck_assert(strncmp(c.problems[0], "stacks/date=", 12) == 0);
}
END_TEST

static void compact_and_unlink_stacks(void)
{
        struct compaction_result r = { 0 };
        glob_t g = list_stacks();
        struct error err;

        check_ok(profile_store_compact(fixture.store, NULL, NULL, &r, &err), &err);
        ck_assert_uint_gt(r.merges, 0);
        for (size_t i = 0; i < g.gl_pathc; i++)
                ck_assert_int_eq(unlink(g.gl_pathv[i]), 0);
        globfree(&g);
}

START_TEST(files_replaced_between_the_passes_are_not_reported)
{
        struct check c = { .between = compact_and_unlink_stacks };
        struct error err;

        make_store();
        ck_assert_int_eq(verify_store(&c, &err), ST_BUSY);
        ck_assert_ptr_nonnull(strstr(err.text, "run it again"));
        ck_assert_uint_eq(c.problem_count, 0);
}
END_TEST

START_TEST(a_file_that_cannot_be_opened_is_one_problem)
{
        struct check c = { 0 };
        struct error err;
        glob_t g;

        make_store();
        g = list_stacks();
        ck_assert_int_eq(unlink(g.gl_pathv[0]), 0);
        ck_assert_int_eq(symlink(g.gl_pathv[0], g.gl_pathv[0]), 0);
        globfree(&g);
        check_ok(verify_store(&c, &err), &err);
        ck_assert_ptr_nonnull(strstr(c.problems[0], "cannot open"));
        for (unsigned i = 1; i < c.problem_count; i++)
                ck_assert_ptr_null(strstr(c.problems[i], "cannot open"));
        ck_assert_ptr_null(strstr(c.problems[0], "bytes, the log says"));
}
END_TEST

static void tear_down(void)
{
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &descriptors), 0);
        store_fixture_end(&fixture);
}

static void set_up(void)
{
        ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &descriptors), 0);
}

TEST_SUITE_WITH_FIXTURE("store_verify", lack_of_descriptors_is_not_reported_for_a_file,
                        a_file_lost_between_the_passes_is_missing, files_replaced_between_the_passes_are_not_reported,
                        a_file_that_cannot_be_opened_is_one_problem)
