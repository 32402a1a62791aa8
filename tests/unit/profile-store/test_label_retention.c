/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Retention of samples by labels: samples selected by a rule are removed from days past its age, in all files, and all
 * other rows are kept. The newest sample of these stores is from 2024, so ages are relative to a day after it.
 */
#include <string.h>

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "profile-store/compaction/label_expiry.h"
#include "profile-store/compaction/row_removal.h"
#include "profile-store/lifecycle/sample_retention.h"
#include "query/engine/sample_rules.h"
#include "tests/support/disk_storage.h"
#include "tests/support/profiles.h"
#include "tests/support/store_fixture.h"
#include "tests/support/suite.h"
#include "tests/support/table_rows.h"

#define DAYS 6
#define DAY_US INT64_C(86400000000)
#define FIRST_DAY 20000

static struct store_fixture fixture;
static unsigned next_batch;

static void set_up(void)
{
        next_batch = 0;
        fixture.options = (struct profile_store_options){ 0 };
        store_fixture_begin(&fixture);
}

static void tear_down(void)
{
        store_fixture_end(&fixture);
}

/* One sample at noon of a day; labels end with NULL. */
static void append_labels(int day, const char *const *labels)
{
        struct test_profile t;
        struct error err;
        uint32_t leaf;

        test_profile_init(&t, STORE_FIXTURE_ID, "/bin/x");
        leaf = test_location(&t, 0x1000 + 16 * (next_batch % 7));
        test_sample(&t, STORE_FIXTURE_T0 + day * STORE_FIXTURE_DAY_NS + STORE_FIXTURE_DAY_NS / 2, 1, &leaf, 1, labels);
        check_ok(profile_store_append(fixture.store, &t.p, store_fixture_batch_id(next_batch++), NULL, &err), &err);
        test_profile_deinit(&t);
}

static void append_env(int day, const char *env)
{
        append_labels(day, (const char *const[]){ env, NULL });
}

/* Samples of all days with some of the labels, in several files a day. */
static void append_random(unsigned flushes)
{
        static const char *const envs[] = { "env=dev", "env=prod", NULL }, *const hosts[] = { "host=h1", "host=h2" };

        for (unsigned f = 0; f < flushes; f++) {
                for (int day = 0; day < DAYS; day++) {
                        for (int i = 0; i < 8; i++) {
                                const char *env = envs[rand() % 3],
                                           *labels[] = { hosts[rand() % 2], env ? env : "team=x", NULL };

                                append_labels(day, labels);
                        }
                }
                store_fixture_flush(&fixture);
        }
}

static void compact(void)
{
        struct error err;

        check_ok(profile_store_compact(fixture.store, NULL, NULL, NULL, &err), &err);
}

static struct expiry expire_with(struct expiry_request request, const char *const *texts, size_t count)
{
        _cleanup_sample_rules_ struct sample_rules rules = { 0 };
        struct expiry e;
        struct error err;

        for (size_t i = 0; i < count; i++)
                check_ok(sample_rules_add(&rules, texts[i], &err), &err);
        request.limits = count ? &rules.limits : NULL;
        check_ok(profile_store_expire(fixture.store, &request, &e, &err), &err);
        return e;
}
#define expire(...)                                                                                                    \
        expire_with((struct expiry_request){ 0 }, (const char *const[]){ __VA_ARGS__ },                                \
                    sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(const char *))
#define dry_run(...)                                                                                                   \
        expire_with((struct expiry_request){ .dry_run = true }, (const char *const[]){ __VA_ARGS__ },                  \
                    sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(const char *))

static struct expired_day sum_expiry(struct expiry *e)
{
        struct expired_day sum = { 0 };

        for (size_t i = 0; i < e->count; i++) {
                if (e->days[i].reason != EXPIRY_LABELS)
                        continue;
                sum.files += e->days[i].files;
                sum.rewritten += e->days[i].rewritten;
                sum.rows += e->days[i].rows;
                sum.bytes += e->days[i].bytes;
        }
        ck_assert_uint_eq(e->skipped_files, 0);
        expiry_deinit(e);
        return sum;
}

/* ---- reference implementation as a plain loop ---- */

static bool has_cell(const char *row, const char *cell)
{
        const char *at = strstr(row, cell);

        return at && (at[strlen(cell)] == ' ' || !at[strlen(cell)]);
}

static bool is_before_day(const char *row, int day)
{
        const char *at = strstr(row, " time=");

        ck_assert_ptr_nonnull(at);
        return atoll(at + 6) < (FIRST_DAY + day) * DAY_US;
}

typedef bool is_row_expired(const char *row);

/* now is noon of day 6; 48 hours before is noon of day 4 */
static bool is_dev(const char *row)
{
        return is_before_day(row, 4) && has_cell(row, " label_env=dev");
}

static bool is_not_prod(const char *row)
{
        return is_before_day(row, 4) && !has_cell(row, " label_env=prod");
}

static bool is_dev_of_h1(const char *row)
{
        return is_before_day(row, 3) && has_cell(row, " label_env=dev") && has_cell(row, " label_host=h1");
}

static bool is_dev_or_old_h2(const char *row)
{
        return is_dev(row) || (is_before_day(row, 2) && has_cell(row, " label_host=h2"));
}

static bool is_old(const char *row)
{
        return is_before_day(row, 3);
}

static bool is_nothing(const char *row)
{
        (void)row;
        return false;
}

/* Drops the rows selected by a rule; returns their number. */
static uint64_t filter_rows(struct table_rows *r, is_row_expired *is_expired)
{
        size_t kept = 0, count = r->count;

        for (size_t i = 0; i < count; i++) {
                if (is_expired(r->items[i]))
                        free(r->items[i]);
                else
                        r->items[kept++] = r->items[i];
        }
        r->count = kept;
        return count - kept;
}

static void check_rules(const char *first, const char *second, is_row_expired *is_expired, bool is_compacted)
{
        const char *const texts[] = { first, second };
        size_t count = second ? 2 : 1;
        struct table_rows wanted, left;
        struct expired_day dry, done;
        struct expiry e;
        uint64_t rows;

        set_up();
        append_random(3);
        if (is_compacted)
                compact();
        wanted = read_table_rows(fixture.store, TABLE_SAMPLES);
        rows = filter_rows(&wanted, is_expired);
        e = expire_with((struct expiry_request){ .dry_run = true }, texts, count);
        dry = sum_expiry(&e);
        e = expire_with((struct expiry_request){ 0 }, texts, count);
        done = sum_expiry(&e);
        left = read_table_rows(fixture.store, TABLE_SAMPLES);
        check_same_rows(&wanted, &left);
        ck_assert_uint_eq(done.rows, rows);
        ck_assert_uint_eq(dry.rows, rows);
        ck_assert_uint_eq(dry.files, done.files);
        ck_assert_uint_eq(dry.rewritten, done.rewritten);
        ck_assert_int_eq(store_fixture_sum(&fixture), (int64_t)wanted.count);
        e = expire_with((struct expiry_request){ 0 }, texts, count);
        ck_assert_uint_eq(e.count, 0);
        expiry_deinit(&e);
        table_rows_deinit(&left);
        store_fixture_reopen(&fixture);
        left = read_table_rows(fixture.store, TABLE_SAMPLES);
        check_same_rows(&wanted, &left);
        table_rows_deinit(&left);
        table_rows_deinit(&wanted);
        tear_down();
}

START_TEST(only_rows_selected_by_a_rule_are_removed)
{
        for (int is_compacted = 0; is_compacted < 2; is_compacted++) {
                srand(20261123);
                check_rules("{env=\"dev\"},age=2d", NULL, is_dev, is_compacted);
                check_rules("{env!=\"prod\"},age=2d", NULL, is_not_prod, is_compacted);
                check_rules("{env=~\"d.*\",host=\"h1\"},age=72h", NULL, is_dev_of_h1, is_compacted);
                check_rules("{env=\"dev\"},age=2d", "{host=\"h2\"},age=4d", is_dev_or_old_h2, is_compacted);
                check_rules("{env=\"stage\"},age=1h", NULL, is_nothing, is_compacted);
                check_rules("{env=\"dev\"},age=400d", NULL, is_nothing, is_compacted);
                check_rules("{env=~\".*\"},age=3d", NULL, is_old, is_compacted);
        }
}
END_TEST

/* ---- files ---- */

static size_t count_sample_files(void)
{
        size_t ret;

        pthread_mutex_lock(&fixture.store->lock);
        ret = fixture.store->tables->part_count[TABLE_SAMPLES];
        pthread_mutex_unlock(&fixture.store->lock);
        return ret;
}

START_TEST(files_without_other_rows_are_removed_unread_with_stacks)
{
        struct expiry e;

        set_up();
        append_env(0, "env=dev");
        append_env(1, "env=dev");
        append_env(1, "env=prod");
        append_env(5, "env=dev");
        store_fixture_flush(&fixture);
        for (int is_dry = 1; is_dry >= 0; is_dry--) {
                const char *const rule[] = { "{env=\"dev\"},age=2d" };

                e = expire_with((struct expiry_request){ .dry_run = is_dry }, rule, 1);
                ck_assert_uint_eq(e.count, 3);
                ck_assert_int_eq(e.days[0].day, FIRST_DAY);
                ck_assert_int_eq(e.days[0].table, TABLE_SAMPLES);
                ck_assert_int_eq(e.days[0].reason, EXPIRY_LABELS);
                ck_assert_uint_eq(e.days[0].files, 1);
                ck_assert_uint_eq(e.days[0].rewritten, 0);
                ck_assert_uint_eq(e.days[0].rows, 1);
                ck_assert_int_eq(e.days[1].table, TABLE_STACKS);
                ck_assert_int_eq(e.days[1].reason, EXPIRY_UNUSED);
                ck_assert_int_eq(e.days[2].day, FIRST_DAY + 1);
                ck_assert_uint_eq(e.days[2].files, 0);
                ck_assert_uint_eq(e.days[2].rewritten, 1);
                ck_assert_uint_eq(e.days[2].rows, 1);
                ck_assert_int_eq(store_fixture_sum(&fixture), is_dry ? 4 : 2);
                expiry_deinit(&e);
        }
        store_fixture_check_last_commit(&fixture, "samples", "\"UPDATE\"");
        ck_assert_uint_eq(count_sample_files(), 2);
        ck_assert_uint_eq(store_fixture_count_stacks(&fixture), 2);
        tear_down();
}
END_TEST

START_TEST(labels_without_a_column_are_selected)
{
        struct expiry e;

        set_up();
        for (unsigned i = 0; i < LIMIT_LABEL_COLUMNS; i += 32) {
                char texts[32][16];
                const char *labels[33] = { NULL };

                for (unsigned k = 0; k < 32; k++) {
                        snprintf(texts[k], sizeof texts[k], "k%u=v", i + k);
                        labels[k] = texts[k];
                }
                append_labels(0, labels);
        }
        store_fixture_flush(&fixture);
        append_labels(0, (const char *const[]){ "zone=a", "other=b", NULL });
        append_labels(0, (const char *const[]){ "zone=b", "other=a", NULL });
        append_labels(5, (const char *const[]){ "zone=a", NULL });
        store_fixture_flush(&fixture);
        ck_assert_int_eq(store_fixture_sum(&fixture), LIMIT_LABEL_COLUMNS / 32 + 3);
        e = expire("{zone=\"a\"},age=1d");
        ck_assert_uint_eq(sum_expiry(&e).rows, 1);
        ck_assert_int_eq(store_fixture_sum(&fixture), LIMIT_LABEL_COLUMNS / 32 + 2);
        tear_down();
}
END_TEST

START_TEST(ages_and_sizes_of_all_samples_count_beside_labels)
{
        struct expiry e;

        set_up();
        for (int day = 0; day < DAYS; day++) {
                append_env(day, "env=dev");
                append_env(day, "env=prod");
        }
        store_fixture_flush(&fixture);
        e = expire("{env=\"dev\"},age=2d", "age=4d,size=1T");
        ck_assert_int_eq(e.days[0].reason, EXPIRY_AGE);
        ck_assert_uint_eq(sum_expiry(&e).rows, 2); /* of days 2 and 3; days 0 and 1 were removed completely */
        ck_assert_int_eq(store_fixture_sum(&fixture), 2 + 4);
        e = expire("{env=\"dev\"},age=1h", "size=1");
        expiry_deinit(&e);
        ck_assert_int_eq(store_fixture_sum(&fixture), 1);
        tear_down();
}
END_TEST

/* On a day removed because of its size, rows already removed by label rules are not counted again. */
START_TEST(a_dry_run_counts_no_row_twice)
{
        uint64_t rows[2], files[2];

        set_up();
        for (int day = 0; day < DAYS; day++) {
                for (int i = 0; i < 20; i++)
                        append_env(day, i % 4 ? "env=dev" : "env=prod");
                store_fixture_flush(&fixture);
                append_env(day, "env=dev");
                store_fixture_flush(&fixture);
        }
        for (int is_dry = 1; is_dry >= 0; is_dry--) {
                const char *const rules[] = { "{env=\"dev\"},age=2d", "size=1" };
                struct expiry e = expire_with((struct expiry_request){ .dry_run = is_dry }, rules, 2);
                bool has_both = false;

                rows[is_dry] = files[is_dry] = 0;
                for (size_t i = 0; i < e.count; i++) {
                        if (e.days[i].table != TABLE_SAMPLES)
                                continue;
                        rows[is_dry] += e.days[i].rows;
                        files[is_dry] += e.days[i].files;
                        has_both |= i && e.days[i].day == e.days[i - 1].day && e.days[i].reason != e.days[i - 1].reason;
                }
                ck_assert(has_both);
                expiry_deinit(&e);
        }
        ck_assert_uint_eq(rows[1], rows[0]);
        ck_assert_uint_eq(files[1], files[0]);
        ck_assert_uint_eq(rows[0] + (uint64_t)store_fixture_sum(&fixture), 21 * DAYS);
        tear_down();
}
END_TEST

static bool check_unchanged(const struct table_part *part)
{
        struct error err;
        bool ret;

        check_ok(compaction_begin_removal(fixture.store->compaction, NULL, NULL, &err), &err);
        ret = compaction_leaves_part(fixture.store->compaction, part);
        compaction_end_removal(fixture.store->compaction);
        return ret;
}

START_TEST(unreadable_file_is_skipped)
{
        _cleanup_free_ char *path = NULL;
        struct expiry e;

        set_up();
        for (int day = 0; day < DAYS; day++) {
                append_env(day, "env=dev");
                append_env(day, "env=prod");
        }
        store_fixture_flush(&fixture);
        path = strdup(fixture.store->tables->parts[TABLE_SAMPLES][1]->path);
        ck_assert_int_eq(truncate(path, 100), 0);
        for (int is_dry = 1; is_dry >= 0; is_dry--) {
                const char *const rule[] = { "{env=\"dev\"},age=2d" };

                e = expire_with((struct expiry_request){ .dry_run = is_dry }, rule, 1);
                ck_assert_uint_eq(e.count, 3);
                ck_assert_uint_eq(e.skipped_files, 1);
                ck_assert_int_eq(e.days[1].day, FIRST_DAY + 2);
                expiry_deinit(&e);
        }
        ck_assert_uint_eq(count_sample_files(), DAYS);
        for (size_t i = 0; i < fixture.store->tables->part_count[TABLE_SAMPLES]; i++) {
                const struct table_part *part = fixture.store->tables->parts[TABLE_SAMPLES][i];

                ck_assert_int_eq(check_unchanged(part), strcmp(part->path, path) == 0);
        }
        tear_down();
}
END_TEST

/* A file that cannot be read: a folder in its place. */
static char *make_file_fail(const struct table_part *part)
{
        char *away;

        ck_assert_int_ge(asprintf(&away, "%s.away", part->path), 0);
        ck_assert_int_eq(rename(part->path, away), 0);
        ck_assert_int_eq(mkdir(part->path, 0755), 0);
        return away;
}

static void end_file_failure(const char *away)
{
        _cleanup_free_ char *path = strndup(away, strlen(away) - strlen(".away"));

        ck_assert_int_eq(rmdir(path), 0);
        ck_assert_int_eq(rename(away, path), 0);
}

START_TEST(failed_file_does_not_stop_others_of_its_day)
{
        _cleanup_sample_rules_ struct sample_rules rules = { 0 };
        struct expiry_request request = { .limits = &rules.limits };
        _cleanup_free_ char *away = NULL;
        struct table_part *first;
        struct expiry e;
        struct error err = { 0 };

        set_up();
        for (int i = 0; i < 3; i++) {
                append_env(0, "env=dev");
                append_env(0, "env=prod");
                append_env(5, "env=prod");
                store_fixture_flush(&fixture);
        }
        append_env(0, "env=dev"); /* a file that is removed completely */
        store_fixture_flush(&fixture);
        check_ok(sample_rules_add(&rules, "{env=\"dev\"},age=2d", &err), &err);
        first = fixture.store->tables->parts[TABLE_SAMPLES][0];
        ck_assert_int_eq(first->day, FIRST_DAY);
        away = make_file_fail(first);
        ck_assert_int_ne(profile_store_expire(fixture.store, &request, &e, &err), ST_OK);
        ck_assert_ptr_nonnull(strstr(err.text, "date="));
        end_file_failure(away);
        ck_assert_int_eq(store_fixture_sum(&fixture), 7); /* of 10 */
        e = expire("{env=\"dev\"},age=2d");
        ck_assert_uint_eq(sum_expiry(&e).rows, 1);
        ck_assert_int_eq(store_fixture_sum(&fixture), 6);
        tear_down();
}
END_TEST

START_TEST(health_reports_rules_that_failed)
{
        static struct sample_rules rules;
        struct label_pass pass = { 0 };
        struct profile_store_health health;
        _cleanup_free_ char *away = NULL;
        struct error err = { 0 };

        set_up();
        append_env(0, "env=dev");
        append_env(1, "env=dev");
        append_env(5, "env=prod");
        store_fixture_flush(&fixture);
        away = make_file_fail(fixture.store->tables->parts[TABLE_SAMPLES][0]);
        check_ok(sample_rules_add(&rules, "{env=\"dev\"},age=2d", &err), &err);
        fixture.options.limits = rules.limits;
        store_fixture_reopen(&fixture);
        while (label_expiry_run_next(fixture.store, &pass))
                ;
        profile_store_get_health(fixture.store, &health);
        ck_assert_int_ne(health.label_expiry_failing_since, 0); /* although the following day was processed */
        ck_assert_ptr_nonnull(strstr(health.label_expiry_failure, "date="));
        end_file_failure(away);
        pass.retry_ns = 0;
        while (label_expiry_run_next(fixture.store, &pass))
                ;
        profile_store_get_health(fixture.store, &health);
        ck_assert_int_eq(health.label_expiry_failing_since, 0);
        ck_assert_str_eq(health.label_expiry_failure, "");
        ck_assert_int_eq(store_fixture_sum(&fixture), 1);
        store_fixture_end(&fixture);
        sample_rules_deinit(&rules);
}
END_TEST

/* ---- concurrent operations ---- */

/* A rule with a side effect while rows are selected. */
static bool (*meanwhile)(const char *text, size_t n);

static bool match_meanwhile(void *context, const char *text, size_t n)
{
        (void)context;
        return meanwhile(text, n);
}

static enum status expire_meanwhile(struct expiry_request request, struct expiry *ret, struct error *err)
{
        const struct label_matcher matcher = { "env", LABEL_REGEX, "x", match_meanwhile, NULL };
        const struct label_rule rule = { .matchers = &matcher, .matcher_count = 1, .age_s = 86400 };
        const struct sample_limits limits = { .rules = &rule, .rule_count = 1 };

        request.limits = &limits;
        return profile_store_expire(fixture.store, &request, ret, err);
}

static bool is_done;

static bool remove_as_another_writer(const char *text, size_t n)
{
        _cleanup_free_ char *dir = store_fixture_path(&fixture, "tables/samples");
        const char *name = fixture.store->tables->parts[TABLE_SAMPLES][0]->name;
        struct delta_commit c = { .size = sizeof c, .removes = &name, .remove_count = 1, .operation = "DELETE" };
        struct delta_table *t = NULL;
        struct error err;

        if (!is_done) {
                is_done = true;
                check_ok(delta_table_open(disk_storage(), dir + 1, &t, &err), &err);
                check_ok(delta_commit(t, &c, &err), &err);
                delta_table_close(t);
        }
        return n == 3 && memcmp(text, "dev", 3) == 0;
}

START_TEST(file_removed_concurrently_is_not_restored)
{
        struct expiry e;
        struct error err;

        set_up();
        append_env(0, "env=dev");
        append_env(0, "env=prod");
        store_fixture_flush(&fixture);
        append_env(0, "env=dev");
        append_env(0, "env=prod");
        append_env(5, "env=prod");
        store_fixture_flush(&fixture);
        is_done = false;
        meanwhile = remove_as_another_writer;
        check_ok(expire_meanwhile((struct expiry_request){ 0 }, &e, &err), &err);
        ck_assert_uint_eq(sum_expiry(&e).rows, 1);
        ck_assert_int_eq(store_fixture_sum(&fixture), 2);
        tear_down();
}
END_TEST

static bool flush_late_sample(const char *text, size_t n)
{
        if (!is_done) {
                is_done = true;
                append_env(0, "env=dev");
                append_env(0, "env=prod");
                store_fixture_flush(&fixture);
        }
        return n == 3 && memcmp(text, "dev", 3) == 0;
}

START_TEST(samples_flushed_concurrently_are_kept_until_next_run)
{
        struct expiry e;
        struct error err;

        set_up();
        append_env(0, "env=dev");
        append_env(0, "env=prod");
        append_env(5, "env=prod");
        store_fixture_flush(&fixture);
        is_done = false;
        meanwhile = flush_late_sample;
        check_ok(expire_meanwhile((struct expiry_request){ 0 }, &e, &err), &err);
        ck_assert_uint_eq(sum_expiry(&e).rows, 1);
        ck_assert_int_eq(store_fixture_sum(&fixture), 4);
        e = expire("{env=\"dev\"},age=1d");
        ck_assert_uint_eq(sum_expiry(&e).rows, 1);
        ck_assert_int_eq(store_fixture_sum(&fixture), 3);
        tear_down();
}
END_TEST

static _Atomic uint64_t merges_seen, merges_looks;

static bool count_merges(void *context, const struct compaction_result *so_far, uint64_t files_due)
{
        (void)context;
        (void)files_due;
        atomic_store(&merges_seen, so_far->merges);
        atomic_fetch_add(&merges_looks, 1);
        return true;
}

static void *compact_meanwhile(void *context)
{
        struct error err;

        (void)context;
        check_ok(profile_store_compact(fixture.store, count_merges, NULL, NULL, &err), &err);
        return NULL;
}

static pthread_t merging_thread;
static uint64_t merges_before_the_end;

/* While the first file is examined, a compaction starts to wait. */
static bool begin_compaction_meanwhile(const char *text, size_t n)
{
        static const struct timespec pause = { .tv_nsec = 1000000 };

        merges_before_the_end = atomic_load(&merges_seen);
        if (!is_done) {
                is_done = true;
                ck_assert_int_eq(pthread_create(&merging_thread, NULL, compact_meanwhile, NULL), 0);
                while (!atomic_load(&merges_looks))
                        nanosleep(&pause, NULL); /* until the test's time limit */
        }
        return n == 3 && memcmp(text, "dev", 3) == 0;
}

START_TEST(merges_run_between_files_of_a_day)
{
        struct expiry e;
        struct error err;

        set_up();
        for (int i = 0; i < 4; i++) {
                append_env(0, "env=dev");
                append_env(0, "env=prod");
                append_env(5, "env=prod");
                store_fixture_flush(&fixture);
        }
        is_done = false;
        merges_seen = merges_looks = merges_before_the_end = 0;
        meanwhile = begin_compaction_meanwhile;
        check_ok(expire_meanwhile((struct expiry_request){ 0 }, &e, &err), &err);
        ck_assert_int_eq(pthread_join(merging_thread, NULL), 0);
        ck_assert_uint_ge(merges_before_the_end, 1);
        ck_assert_uint_eq(e.count, 1);
        ck_assert_uint_eq(sum_expiry(&e).rows, 4);
        ck_assert_int_eq(store_fixture_sum(&fixture), 8);
        tear_down();
}
END_TEST

static bool is_dev_text(const char *text, size_t n)
{
        return n == 3 && memcmp(text, "dev", 3) == 0;
}

static bool stop_now(void *context)
{
        (void)context;
        return false;
}

START_TEST(cancelled_run_changes_nothing)
{
        struct expiry e;
        struct error err;

        set_up();
        append_env(0, "env=dev");
        append_env(0, "env=prod");
        append_env(5, "env=prod");
        store_fixture_flush(&fixture);
        meanwhile = is_dev_text;
        ck_assert_int_eq(expire_meanwhile((struct expiry_request){ .proceed = stop_now }, &e, &err), ST_BUSY);
        ck_assert_int_eq(store_fixture_sum(&fixture), 3);
        tear_down();
}
END_TEST

/* ---- rules of the service ---- */

static void wait_for_sum(int64_t sum)
{
        static const struct timespec pause = { .tv_nsec = 1000000 };

        while (store_fixture_sum(&fixture) != sum)
                nanosleep(&pause, NULL); /* until the test's time limit */
}

/* Without files that compaction would merge. */
START_TEST(background_run_removes_late_samples_and_reads_files_once)
{
        static struct sample_rules rules;
        _cleanup_free_ char *kept = NULL, *hidden = NULL;
        struct table_part *part;
        struct error err;

        set_up();
        check_ok(sample_rules_add(&rules, "{env=\"dev\"},age=2d", &err), &err);
        fixture.options.limits = rules.limits;
        fixture.options.limits.size_bytes = GiB(200); /* from which no samples arrive */
        fixture.options.compact_interval_ms = 1;
        store_fixture_reopen(&fixture);
        append_env(1, "env=prod");
        append_env(2, "env=dev");
        append_env(2, "env=prod");
        append_env(5, "env=dev");
        store_fixture_flush(&fixture);
        wait_for_sum(3);
        pthread_mutex_lock(&fixture.store->lock);
        part = fixture.store->tables->parts[TABLE_SAMPLES][0];
        pthread_mutex_unlock(&fixture.store->lock);
        while (!atomic_load(&part->done_rules))
                sched_yield();
        kept = strdup(part->path);
        ck_assert_int_gt(asprintf(&hidden, "%s.away", kept), 0);
        ck_assert_int_eq(rename(kept, hidden), 0); /* a second pass would find it missing */
        append_env(0, "env=dev");
        append_env(3, "env=dev");
        append_env(3, "env=prod");
        check_ok(profile_store_flush(fixture.store, &err), &err);
        while (count_sample_files() != 4)
                sched_yield();
        ck_assert_int_eq(rename(hidden, kept), 0);
        wait_for_sum(4);
        ck_assert(!check_unchanged(part));
        store_fixture_end(&fixture);
        sample_rules_deinit(&rules);
}
END_TEST

static atomic_uint released;

static void count_release(void *context)
{
        sample_rules_deinit(context);
        atomic_fetch_add(&released, 1);
}

/* The file was recorded as processed for the first rules, which does not apply to their replacement. */
START_TEST(replaced_rules_are_applied_to_processed_files)
{
        static struct sample_rules first, second, none;
        struct table_part *part;
        struct error err;

        set_up();
        check_ok(sample_rules_add(&first, "{env=\"dev\"},age=2d", &err), &err);
        check_ok(sample_rules_add(&second, "{env=\"prod\"},age=2d", &err), &err);
        fixture.options.limits = first.limits;
        fixture.options.compact_interval_ms = 1;
        store_fixture_reopen(&fixture);
        append_env(1, "env=prod");
        append_env(2, "env=prod");
        append_env(5, "env=test");
        store_fixture_flush(&fixture);
        pthread_mutex_lock(&fixture.store->lock);
        part = fixture.store->tables->parts[TABLE_SAMPLES][0];
        pthread_mutex_unlock(&fixture.store->lock);
        while (!atomic_load(&part->done_rules))
                sched_yield();
        ck_assert_int_eq(store_fixture_sum(&fixture), 3);
        check_ok(profile_store_set_limits(fixture.store, &second.limits, count_release, &second, &err), &err);
        wait_for_sum(1);
        check_ok(profile_store_set_limits(fixture.store, &none.limits, NULL, NULL, &err), &err);
        while (!atomic_load(&released))
                sched_yield();
        store_fixture_end(&fixture);
        ck_assert_uint_eq(atomic_load(&released), 1);
        sample_rules_deinit(&first);
}
END_TEST

/* ---- rules ---- */

static void check_refused(const char *text, const char *why)
{
        _cleanup_sample_rules_ struct sample_rules rules = { 0 };
        struct error err = { 0 };

        ck_assert_int_eq(sample_rules_add(&rules, text, &err), ST_USAGE);
        ck_assert_msg(strstr(err.text, why), "%s: %s", text, err.text);
        ck_assert_uint_eq(rules.limits.rule_count + rules.limits.age_s + rules.limits.size_bytes, 0);
}

START_TEST(a_rule_has_a_selector_and_an_age)
{
        _cleanup_sample_rules_ struct sample_rules rules = { 0 };
        struct error err = { 0 };

        check_ok(sample_rules_add(&rules, "cpu:nanoseconds{service.name=\"a}b\", env!~\"x.*\"},age=3d", &err), &err);
        check_ok(sample_rules_add(&rules, "age=30d,size=2G", &err), &err);
        check_ok(sample_rules_add(&rules, "{env=\"dev\"},age=1h", &err), &err);
        ck_assert_uint_eq(rules.limits.rule_count, 2);
        ck_assert_uint_eq(rules.limits.age_s, 30 * 86400);
        ck_assert_str_eq(rules.limits.rules[0].type, "cpu:nanoseconds");
        ck_assert_uint_eq(rules.limits.rules[0].matcher_count, 2);
        ck_assert_uint_eq(rules.limits.rules[0].age_s, 3 * 86400);
        ck_assert_str_eq(rules.limits.rules[0].matchers[0].value, "a}b");
        ck_assert_uint_eq(rules.limits.rules[1].age_s, 3600);
        check_refused("{env=\"dev\"}", "is not {LABELS},age=TIME");
        check_refused("{env=\"dev\"},size=3G", "is not {LABELS},age=TIME");
        check_refused("{env=\"dev\"},age=3d,size=3G", "is not {LABELS},age=TIME");
        check_refused("{env=\"dev\"},age=3", "is not age=TIME");
        check_refused("{env=},age=3d", "a value");
        check_refused("{env=~\"(\"},age=3d", "");
        check_refused("{},age=3d", "selects all samples");
        check_refused("age=3d,{env=\"dev\"}", "is not {LABELS},age=TIME");
        for (size_t i = 2; i < LABEL_RULES_MAX; i++)
                check_ok(sample_rules_add(&rules, "{env=\"dev\"},age=1d", &err), &err);
        ck_assert_int_eq(sample_rules_add(&rules, "{env=\"dev\"},age=1d", &err), ST_USAGE);
        ck_assert_uint_eq(rules.limits.rule_count, LABEL_RULES_MAX);
}
END_TEST

TEST_SUITE("label retention", only_rows_selected_by_a_rule_are_removed,
           files_without_other_rows_are_removed_unread_with_stacks, labels_without_a_column_are_selected,
           ages_and_sizes_of_all_samples_count_beside_labels, a_dry_run_counts_no_row_twice, unreadable_file_is_skipped,
           failed_file_does_not_stop_others_of_its_day, health_reports_rules_that_failed,
           file_removed_concurrently_is_not_restored, samples_flushed_concurrently_are_kept_until_next_run,
           merges_run_between_files_of_a_day, cancelled_run_changes_nothing,
           replaced_rules_are_applied_to_processed_files, background_run_removes_late_samples_and_reads_files_once,
           a_rule_has_a_selector_and_an_age)
