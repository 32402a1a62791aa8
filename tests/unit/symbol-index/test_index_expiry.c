/* SPDX-License-Identifier: Apache-2.0 */
/* Removal of the symbols of unused objects. */
#include <stdlib.h>
#include <string.h>

#include "symbol-index/index_expiry.h"
#include "symbol-index/index_load.h"
#include "symbol-index/index_verify.h"
#include "symbol-index/symbol_index_internal.h"
#include "tests/support/random_table.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

#define OBJECTS 6

static char dir[TEMPORARY_DIR_BYTES];
static struct symbol_index *index_of_test;
static struct build_id ids[OBJECTS], go_id;
static bool used[OBJECTS], is_go_id_used;

static bool is_used(void *context, const struct build_id *id)
{
        (void)context;
        for (unsigned i = 0; i < OBJECTS; i++)
                if (build_id_equal(id, &ids[i]))
                        return used[i];
        return build_id_equal(id, &go_id) && is_go_id_used;
}

/* Objects 0 and 1 have the same code and share all blocks; the others have blocks of their own. */
static void set_up(void)
{
        struct error err;

        temporary_dir_create(dir, "test");
        check_ok(symbol_index_open(dir, false, &index_of_test, &err), &err);
        for (unsigned i = 0; i < OBJECTS; i++) {
                struct symbol_table t = random_table(&(struct random_table_spec){ .seed = i ? i : 1,
                                                                                  .range_count = 3000,
                                                                                  .function_count = 50,
                                                                                  .file_count = 5,
                                                                                  .base = 0x1000,
                                                                                  .version = 1,
                                                                                  .quality = QUALITY_DWARF });
                uint64_t generation;
                bool replaced;

                t.build_id = ids[i] = random_build_id(100 + i);
                used[i] = false;
                check_ok(symbol_index_load(index_of_test, &t, &replaced, &generation, &err), &err);
                symbol_table_deinit(&t);
        }
        go_id = random_build_id(7);
        is_go_id_used = false;
        check_ok(symbol_index_add_aliases(index_of_test, &ids[5], &go_id, 1, NULL, &err), &err);
}

static void tear_down(void)
{
        symbol_index_close(index_of_test);
        temporary_dir_remove(dir);
}

static uint64_t remove_unused(int64_t indexed_before_unix_s)
{
        const struct index_expiry_options o = { .indexed_before_unix_s = indexed_before_unix_s, .is_used = is_used };
        uint64_t removed;
        struct error err;

        check_ok(symbol_index_remove_unused(index_of_test, &o, &removed, &err), &err);
        return removed;
}

static bool has_symbols(const struct build_id *id)
{
        struct symbol_view *view;
        struct symbol_object o;
        struct error err;

        check_ok(symbol_view_begin(index_of_test, &view, &err), &err);
        check_ok(symbol_view_get_object(view, id, &o, &err), &err);
        symbol_view_end(view);
        return o.state == OBJECT_INDEXED;
}

static void fail_with(void *context, const char *text)
{
        (void)context;
        ck_abort_msg("%s", text);
}

static uint64_t count_entries(MDB_dbi dbi)
{
        MDB_txn *txn;
        MDB_stat s;

        ck_assert_int_eq(mdb_txn_begin(index_of_test->env, NULL, MDB_RDONLY, &txn), 0);
        ck_assert_int_eq(mdb_stat(txn, dbi, &s), 0);
        mdb_txn_abort(txn);
        return s.ms_entries;
}

static void check_index(void)
{
        struct index_verify v = { .problem = fail_with };

        ck_assert_int_eq(symbol_index_verify(index_of_test, &v, NULL), ST_OK);
}

START_TEST(unused_object_is_removed_with_blocks_and_aliases)
{
        uint64_t blocks = count_entries(index_of_test->blocks);

        used[0] = used[3] = true;
        ck_assert_uint_eq(remove_unused(INT64_MAX), 4);
        check_index();
        for (unsigned i = 0; i < OBJECTS; i++)
                ck_assert_int_eq(has_symbols(&ids[i]), used[i]);
        ck_assert_uint_eq(count_entries(index_of_test->garbage), 0);
        ck_assert_uint_eq(count_entries(index_of_test->aliases), 0);
        ck_assert_uint_lt(count_entries(index_of_test->blocks), blocks / 2);
        used[0] = used[3] = false;
        ck_assert_uint_eq(remove_unused(INT64_MAX), 2);
        check_index();
        ck_assert_uint_eq(count_entries(index_of_test->blocks), 0);
        ck_assert_uint_eq(count_entries(index_of_test->objects), 0);
}
END_TEST

START_TEST(object_used_by_alias_is_kept)
{
        is_go_id_used = true;
        ck_assert_uint_eq(remove_unused(INT64_MAX), OBJECTS - 1);
        ck_assert(has_symbols(&ids[5]) && has_symbols(&go_id));
        check_index();
}
END_TEST

START_TEST(recently_read_object_is_kept)
{
        ck_assert_uint_eq(remove_unused(1000000000), 0);
        for (unsigned i = 0; i < OBJECTS; i++)
                ck_assert(has_symbols(&ids[i]));
}
END_TEST

static bool proceed_never(void *context)
{
        (void)context;
        return false;
}

START_TEST(stopped_removal_is_no_error)
{
        const struct index_expiry_options o = { .indexed_before_unix_s = INT64_MAX,
                                                .is_used = is_used,
                                                .proceed = proceed_never };
        uint64_t removed;
        struct error err;

        check_ok(symbol_index_remove_unused(index_of_test, &o, &removed, &err), &err);
        ck_assert_uint_eq(removed, 0);
        ck_assert(has_symbols(&ids[0]));
}
END_TEST

START_TEST(failed_object_is_removed_and_pending_one_kept)
{
        struct build_id failed = random_build_id(500), pending = random_build_id(501);
        struct error err;

        for (unsigned i = 0; i < OBJECTS; i++)
                used[i] = true;
        check_ok(symbol_index_set_state(index_of_test, &failed, OBJECT_FAILED, "damaged", NULL, &err), &err);
        check_ok(symbol_index_set_state(index_of_test, &pending, OBJECT_PENDING, "", NULL, &err), &err);
        ck_assert_uint_eq(remove_unused(INT64_MAX), 1);
        ck_assert_uint_eq(count_entries(index_of_test->objects), OBJECTS + 1);
}
END_TEST

START_TEST(nothing_is_removed_from_read_only_index)
{
        const struct index_expiry_options o = { .indexed_before_unix_s = INT64_MAX, .is_used = is_used };
        struct symbol_index *reader;
        uint64_t removed;
        struct error err;

        check_ok(symbol_index_open(dir, true, &reader, &err), &err);
        ck_assert_int_eq(symbol_index_remove_unused(reader, &o, &removed, &err), ST_USAGE);
        symbol_index_close(reader);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("index expiry", unused_object_is_removed_with_blocks_and_aliases, object_used_by_alias_is_kept,
                        recently_read_object_is_kept, stopped_removal_is_no_error,
                        failed_object_is_removed_and_pending_one_kept, nothing_is_removed_from_read_only_index)
