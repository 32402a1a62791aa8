/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <string.h>

#include "debuginfo-store/object_commit.h"
#include "storage/local_storage.h"
#include "tests/support/faulty_storage.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

static char dir[TEMPORARY_DIR_BYTES];
static struct faulty_storage *faulty;
static struct object_table *table;

static void set_up(void)
{
        struct storage *local;
        struct error err;

        temporary_dir_create(dir, "objects");
        check_ok(local_storage_open(dir, &local, &err), &err);
        faulty = faulty_storage_create(local);
        check_ok(object_table_open(&faulty->storage, false, &table, &err), &err);
}

static void tear_down(void)
{
        object_table_close(table);
        storage_close(&faulty->storage);
        temporary_dir_remove(dir);
}

static struct object_change make_change(unsigned number, uint64_t size)
{
        struct object_change c = { .row.object = { .kind = OBJECT_DEBUGINFO,
                                                   .quality = QUALITY_DWARF,
                                                   .size_bytes = size,
                                                   .stored_unix_s = 1000,
                                                   .name = "program.debug" } };

        ck_assert(build_id_from_bytes(&c.row.object.build_id, &number, sizeof number));
        memset(c.row.object.sha256, (int)number, sizeof c.row.object.sha256);
        return c;
}

static enum status commit_one(struct object_table *t, unsigned number, uint64_t size, struct error *err)
{
        const struct object_change c = make_change(number, size);

        return object_table_commit(t, &c, 1, err);
}

/* The rows of a table: count, and the sum of sizes. */
struct totals {
        uint64_t count, size;
        bool has_notes;
};

static enum status add_row(void *context, const struct object_row *row, struct error *err)
{
        struct totals *t = context;

        (void)err;
        t->count++;
        t->size += row->object.size_bytes;
        t->has_notes = row->links_size == 3 && memcmp(row->links, "a\0b", 3) == 0 && row->sections_size == 1;
        return ST_OK;
}

static struct totals sum_rows(struct object_table *t)
{
        struct totals ret = { 0 };
        struct error err;

        check_ok(object_table_visit(t, add_row, &ret, &err), &err);
        return ret;
}

static struct object_table *open_again(void)
{
        struct object_table *t;
        struct error err;

        check_ok(object_table_open(&faulty->storage, true, &t, &err), &err);
        return t;
}

static void check_totals(struct object_table *t, uint64_t count, uint64_t size)
{
        struct totals sums = sum_rows(t);

        ck_assert_uint_eq(sums.count, count);
        ck_assert_uint_eq(sums.size, size);
}

START_TEST(each_name_has_one_row_in_every_version)
{
        struct object_change removal = make_change(3, 0);
        struct object_table *again;
        uint64_t size = 0;
        struct error err;

        for (unsigned i = 0; i < 40; i++) {
                check_ok(commit_one(table, i % 20, i, &err), &err);
                size += i < 20 ? i : 20;
                check_totals(table, i < 20 ? i + 1 : 20, size);
        }
        removal.removes = true;
        check_ok(object_table_commit(table, &removal, 1, &err), &err);
        again = open_again();
        check_totals(again, 19, size - 23);
        object_table_close(again);
}
END_TEST

START_TEST(an_edit_keeps_links_and_sections)
{
        struct object_change c = make_change(1, 10);
        struct totals sums;
        struct error err;

        c.row.links = "a\0b";
        c.row.links_size = 3;
        c.row.sections = "s";
        c.row.sections_size = 1;
        check_ok(object_table_commit(table, &c, 1, &err), &err);
        c = make_change(1, 11);
        c.row.object.is_pinned = true;
        c.keeps_notes = true;
        check_ok(object_table_commit(table, &c, 1, &err), &err);
        sums = sum_rows(table);
        ck_assert_uint_eq(sums.size, 11);
        ck_assert(sums.has_notes);
}
END_TEST

START_TEST(two_writers_lose_no_row)
{
        struct object_table *other;
        struct error err;

        check_ok(object_table_open(&faulty->storage, false, &other, &err), &err);
        for (unsigned i = 0; i < 20; i++)
                check_ok(commit_one(i % 2 ? table : other, i / 4, 1 + i, &err), &err);
        object_table_close(other);
        other = open_again();
        check_totals(other, 5, 4 + 8 + 12 + 16 + 20);
        object_table_close(other);
}
END_TEST

/* Each call of a commit fails once, with and without its effect: the row is there once or not at all, and a repetition
   makes it. */
START_TEST(a_commit_whose_answer_is_lost_counts_once)
{
        const enum storage_fault faults[] = { STORAGE_FAULT_REFUSED, STORAGE_FAULT_ANSWER_LOST };
        unsigned failed = 0, number = 100;
        struct object_table *again;
        struct error err;

        check_ok(commit_one(table, 1, 1, &err), &err);
        for (size_t f = 0; f < 2; f++) {
                for (unsigned at = 1; at < 12; at++, number++) {
                        enum status st;

                        faulty_storage_set(faulty, faults[f], at);
                        st = commit_one(table, number, 1, &err);
                        faulty_storage_set(faulty, STORAGE_FAULT_NONE, 0);
                        failed += st != ST_OK;
                        if (st)
                                check_ok(commit_one(table, number, 1, &err), &err);
                        again = open_again();
                        check_totals(again, number - 100 + 2, number - 100 + 2);
                        object_table_close(again);
                }
        }
        ck_assert_uint_gt(failed, 2);
        check_totals(table, number - 100 + 1, number - 100 + 1);
}
END_TEST

START_TEST(put_of_a_symbol_table_is_found)
{
        struct object_change c = make_change(9, 1);
        const struct object_name name = { c.row.object.build_id, OBJECT_ROW_SYMBOL_TABLE };
        struct stored_object put;
        struct object_table *again;
        struct error err;

        ck_assert(!object_table_find_put(table, &name, &put));
        c.row.object.put_id = 77;
        c.row.object.kind = OBJECT_ROW_SYMBOL_TABLE;
        check_ok(object_table_commit(table, &c, 1, &err), &err);
        again = open_again();
        ck_assert(object_table_find_put(again, &name, &put));
        ck_assert_mem_eq(put.sha256, c.row.object.sha256, OBJECT_GENERATION_BYTES);
        ck_assert_uint_eq(put.put_id, 77);
        object_table_close(again);
}
END_TEST

/* While a commit waits for the store, readers of the present state do not. */
static void find_during_publish(struct faulty_storage *f, const char *call, const char *key)
{
        const struct object_change c = make_change(1, 1);
        struct stored_object put;

        (void)f;
        (void)key;
        if (strcmp(call, "publish") == 0)
                ck_assert(object_table_find_put(table, &(struct object_name){ c.row.object.build_id, OBJECT_DEBUGINFO },
                                                &put));
}

START_TEST(a_search_does_not_wait_for_a_commit)
{
        struct error err;

        check_ok(commit_one(table, 1, 1, &err), &err);
        faulty->before = find_during_publish;
        check_ok(commit_one(table, 2, 1, &err), &err);
        faulty->before = NULL;
        check_totals(table, 2, 2);
}
END_TEST

static unsigned count_files_of_table(void)
{
        _cleanup_free_ char *command = NULL;
        FILE *list;
        unsigned n = 0;

        ck_assert_int_gt(asprintf(&command, "find '%s/tables/objects' -maxdepth 1 -name 'part-*.parquet'", dir), 0);
        list = popen(command, "r");
        ck_assert_ptr_nonnull(list);
        for (int c; (c = fgetc(list)) != EOF;)
                n += c == '\n';
        ck_assert_int_eq(pclose(list), 0);
        return n;
}

static void refuse_log_entry(struct faulty_storage *f, const char *call, const char *key)
{
        if (strcmp(call, "publish") == 0 && strstr(key, "_delta_log/"))
                f->fault_at = f->calls + 1;
}

/* A commit whose outcome is unknown keeps its file, which a vacuum removes after a day. */
START_TEST(a_vacuum_removes_files_of_failed_commits)
{
        struct error err;

        check_ok(commit_one(table, 1, 1, &err), &err);
        faulty_storage_set(faulty, STORAGE_FAULT_REFUSED, 0);
        faulty->before = refuse_log_entry;
        ck_assert_int_eq(commit_one(table, 2, 1, &err), ST_OS);
        faulty->before = NULL;
        faulty_storage_set(faulty, STORAGE_FAULT_NONE, 0);
        ck_assert_uint_eq(count_files_of_table(), 2);
        check_ok(object_table_vacuum(table, &err), &err);
        ck_assert_uint_eq(count_files_of_table(), 2);
        faulty->ahead_ms = INT64_C(25) * 3600 * 1000;
        check_ok(object_table_vacuum(table, &err), &err);
        ck_assert_uint_eq(count_files_of_table(), 1);
        check_totals(table, 1, 1);
}
END_TEST

/* ---- group commits ---- */

static pthread_mutex_t publish = PTHREAD_MUTEX_INITIALIZER;
static unsigned commits, applied;

static void count_commits(struct faulty_storage *f, const char *call, const char *key)
{
        (void)f;
        (void)call;
        commits += strncmp(key, "tables/objects/part-", 20) == 0 && strcmp(call, "publish") == 0;
}

static enum status count_applied(struct object_commit *c, struct error *err)
{
        (void)c;
        (void)err;
        applied++;
        return ST_OK;
}

static void free_change(struct object_commit *c)
{
        free(c);
}

START_TEST(thousand_waiting_changes_are_few_commits)
{
        struct object_commits *c;
        struct error err;

        commits = applied = 0;
        faulty->before = count_commits;
        check_ok(object_commits_start(table, &publish, &c, &err), &err);
        for (unsigned i = 0; i < 1000; i++) {
                struct object_commit *change = calloc(1, sizeof *change);

                ck_assert_ptr_nonnull(change);
                change->change = make_change(i, 1);
                change->name = (struct object_name){ change->change.row.object.build_id, OBJECT_DEBUGINFO };
                change->apply = count_applied;
                change->free = free_change;
                object_commits_add_later(c, change);
        }
        object_commits_stop(c);
        ck_assert_uint_eq(applied, 1000);
        ck_assert_uint_le(commits, 10);
        check_totals(table, 1000, 1000);
}
END_TEST

START_TEST(thousand_changes_of_one_caller_are_few_commits)
{
        static struct object_commit changes[1000], *pointers[1000];
        struct object_commits *c;
        struct error err;

        commits = applied = 0;
        faulty->before = count_commits;
        check_ok(object_commits_start(table, &publish, &c, &err), &err);
        for (unsigned i = 0; i < 1000; i++) {
                changes[i].change = make_change(i, 1);
                changes[i].name = (struct object_name){ changes[i].change.row.object.build_id, OBJECT_DEBUGINFO };
                changes[i].apply = count_applied;
                pointers[i] = &changes[i];
        }
        object_commits_run_all(c, pointers, 1000);
        for (unsigned i = 0; i < 1000; i++)
                ck_assert_int_eq(changes[i].result, ST_OK);
        ck_assert_uint_eq(applied, 1000);
        ck_assert_uint_le(commits, 10);
        object_commits_stop(c);
        check_totals(table, 1000, 1000);
}
END_TEST

struct waiting_upload {
        struct object_commit commit; /* first */
        struct object_commits *commits;
        enum status result;
        struct error error;
};

static void *run_waiting_upload(void *arg)
{
        struct waiting_upload *u = arg;

        u->result = object_commits_run(u->commits, &u->commit, &u->error);
        object_commits_expect(u->commits, -1);
        return NULL;
}

static enum status refuse_change(struct object_commit *c, struct error *err)
{
        (void)c;
        return error_set(err, ST_USAGE, "not wanted");
}

/* All uploads that are being finished wait for the same commit; one that is refused changes nothing. */
START_TEST(uploads_that_finish_together_are_one_commit)
{
        struct waiting_upload u[8] = { 0 };
        pthread_t threads[8];
        struct object_commits *c;
        struct error err;

        commits = applied = 0;
        faulty->before = count_commits;
        check_ok(object_commits_start(table, &publish, &c, &err), &err);
        object_commits_expect(c, 8);
        for (unsigned i = 0; i < 8; i++) {
                u[i].commits = c;
                u[i].commit.change = make_change(i, 1);
                u[i].commit.name = (struct object_name){ u[i].commit.change.row.object.build_id, OBJECT_DEBUGINFO };
                u[i].commit.apply = count_applied;
                u[i].commit.prepare = i == 5 ? refuse_change : NULL;
                ck_assert_int_eq(pthread_create(&threads[i], NULL, run_waiting_upload, &u[i]), 0);
        }
        for (unsigned i = 0; i < 8; i++) {
                pthread_join(threads[i], NULL);
                ck_assert_int_eq(u[i].result, i == 5 ? ST_USAGE : ST_OK);
        }
        ck_assert_str_eq(u[5].error.text, "not wanted");
        ck_assert_uint_eq(applied, 7);
        check_totals(table, 7, 7);
        object_commits_stop(c);
}
END_TEST

START_TEST(changes_fail_when_the_store_refuses_the_commit)
{
        struct object_commit change = { .change = make_change(1, 1), .apply = count_applied };
        struct object_commits *c;
        struct error err;

        applied = 0;
        change.name = (struct object_name){ change.change.row.object.build_id, OBJECT_DEBUGINFO };
        check_ok(object_commits_start(table, &publish, &c, &err), &err);
        faulty_storage_set(faulty, STORAGE_FAULT_CUT, 1);
        ck_assert_int_eq(object_commits_run(c, &change, &err), ST_OS);
        ck_assert_uint_eq(applied, 0);
        faulty->is_cut = false;
        faulty_storage_set(faulty, STORAGE_FAULT_NONE, 0);
        check_ok(object_commits_run(c, &change, &err), &err);
        object_commits_stop(c);
        check_totals(table, 1, 1);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("object table", each_name_has_one_row_in_every_version, an_edit_keeps_links_and_sections,
                        two_writers_lose_no_row, a_commit_whose_answer_is_lost_counts_once,
                        put_of_a_symbol_table_is_found, thousand_waiting_changes_are_few_commits,
                        thousand_changes_of_one_caller_are_few_commits, a_search_does_not_wait_for_a_commit,
                        a_vacuum_removes_files_of_failed_commits, uploads_that_finish_together_are_one_commit,
                        changes_fail_when_the_store_refuses_the_commit)
