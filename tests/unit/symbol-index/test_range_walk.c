/* SPDX-License-Identifier: Apache-2.0 */
/* Walks over loaded tables return the tables' ranges. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "symbol-index/index_load.h"
#include "symbol-index/range_walk.h"
#include "symbol-index/symbol_index_internal.h"
#include "tests/support/random_table.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

#define RANGES 20000

static char dir[TEMPORARY_DIR_BYTES];
static struct symbol_index *index_of_test;
static struct symbol_table table;

static struct symbol_table table_of(uint32_t version)
{
        return random_table(&(struct random_table_spec){ .seed = 5,
                                                         .range_count = RANGES,
                                                         .function_count = 300,
                                                         .file_count = 20,
                                                         .base = 0x401000,
                                                         .version = version,
                                                         .quality = QUALITY_DWARF });
}

static void load(const struct symbol_table *t)
{
        uint64_t generation;
        bool replaced;

        ck_assert_int_eq(symbol_index_load(index_of_test, t, &replaced, &generation, NULL), ST_OK);
        ck_assert(replaced);
}

static void set_up(void)
{
        temporary_dir_create(dir, "test");
        ck_assert_int_eq(symbol_index_open(dir, false, &index_of_test, NULL), ST_OK);
        table = table_of(1);
        load(&table);
}

static void tear_down(void)
{
        symbol_table_deinit(&table);
        symbol_index_close(index_of_test);
        temporary_dir_remove(dir);
}

struct visited {
        struct symbol_view *view;
        uint32_t count;   /* number of visited ranges */
        uint32_t at_once; /* pause after this many; 0: never */
        enum status answer;
};

static bool is_same_frame(struct symbol_view *view, const struct symbol_table_frame *want,
                          const struct symbol_frame *got)
{
        const char *name, *linkage, *path, *wanted = "";

        if (want->function != SYMBOL_NO_FUNCTION) {
                const struct symbol_function *f = &table.functions[want->function];

                wanted = table.strings + (f->linkage_name ? f->linkage_name : f->name);
        }
        return got->line == want->line &&
               (got->start_line == symbol_table_start_line(&table, want) ||
                (!got->start_line && symbol_table_start_line(&table, want) > INT32_MAX)) &&
               !symbol_view_get_function(view, got->function, &name, &linkage, NULL) && strcmp(linkage, wanted) == 0 &&
               !symbol_view_get_file(view, got->file, &path, NULL) && strcmp(path, table.strings + want->file) == 0;
}

static enum status visit(void *context, const struct walked_range *r, bool *pause, struct error *err)
{
        struct visited *v = context;
        const struct symbol_range *want = &table.ranges[v->count];
        const struct symbol_chain *chain = &table.chains[want->chain];

        (void)err;
        if (v->count++ == table.range_count || r->start != want->start || r->end != want->end ||
            r->frame_count != chain->frame_count)
                ck_abort_msg("range %u, [0x%llx, 0x%llx), differs", v->count - 1, (unsigned long long)r->start,
                             (unsigned long long)r->end);
        for (uint32_t i = 0; i < r->frame_count; i++)
                if (r->frames[i].inlined != (i + 1 < r->frame_count) ||
                    !is_same_frame(v->view, &table.frames[chain->first_frame + i], &r->frames[i]))
                        ck_abort_msg("frame %u of range %u differs", i, v->count - 1);
        *pause = v->at_once && v->count % v->at_once == 0;
        return v->answer;
}

static enum status resume_walk(struct range_walk *w, struct visited *v)
{
        enum status st;

        ck_assert_int_eq(symbol_view_begin(index_of_test, &v->view, NULL), ST_OK);
        st = range_walk_continue(w, v->view, visit, v, NULL);
        symbol_view_end(v->view);
        return st;
}

static void start(struct range_walk *w)
{
        ck_assert_int_eq(range_walk_init(w, &table.build_id, NULL), ST_OK);
}

START_TEST(walk_returns_the_ranges_of_the_table)
{
        struct visited v = { 0 };
        struct range_walk w;

        start(&w);
        ck_assert_int_eq(resume_walk(&w, &v), ST_OK);
        ck_assert(w.is_done);
        ck_assert_uint_eq(v.count, RANGES);
        range_walk_deinit(&w);
}
END_TEST

START_TEST(paused_walk_resumes)
{
        static const uint32_t at_once[] = { 7, 100, 4999, RANGES };

        for (size_t i = 0; i < sizeof at_once / sizeof *at_once; i++) {
                struct visited v = { .at_once = at_once[i] };
                struct range_walk w;

                start(&w);
                for (uint32_t step = 0; !w.is_done; step++) {
                        ck_assert_int_eq(resume_walk(&w, &v), ST_OK);
                        ck_assert_uint_le(v.count, (step + 1) * at_once[i]);
                }
                ck_assert_uint_eq(v.count, RANGES);
                range_walk_deinit(&w);
        }
}
END_TEST

START_TEST(replacing_symbols_ends_walk)
{
        struct visited v = { .at_once = 100 };
        struct symbol_table newer = table_of(2);
        struct range_walk w;

        start(&w);
        ck_assert_int_eq(resume_walk(&w, &v), ST_OK);
        load(&newer);
        ck_assert_int_eq(resume_walk(&w, &v), ST_BUSY);
        ck_assert_uint_eq(v.count, 100);
        range_walk_deinit(&w);
        symbol_table_deinit(&newer);
}
END_TEST

START_TEST(walk_of_unknown_object_is_not_found)
{
        struct build_id id = random_build_id(77);
        struct visited v = { 0 };
        struct range_walk w;

        ck_assert_int_eq(range_walk_init(&w, &id, NULL), ST_OK);
        ck_assert_int_eq(resume_walk(&w, &v), ST_NOT_FOUND);
        range_walk_deinit(&w);
}
END_TEST

START_TEST(failed_visitor_ends_walk)
{
        struct visited v = { .answer = ST_TOO_BIG };
        struct range_walk w;

        start(&w);
        ck_assert_int_eq(resume_walk(&w, &v), ST_TOO_BIG);
        ck_assert_uint_eq(v.count, 1);
        range_walk_deinit(&w);
}
END_TEST

/* Flip a bit of the third entry. */
static void damage(MDB_dbi dbi, size_t byte)
{
        uint8_t value_copy[4096], key_copy[64];
        MDB_cursor *cursor;
        MDB_val key, value;
        MDB_txn *txn;

        ck_assert_int_eq(mdb_txn_begin(index_of_test->env, NULL, 0, &txn), 0);
        ck_assert_int_eq(mdb_cursor_open(txn, dbi, &cursor), 0);
        for (int i = 0; i < 3; i++)
                ck_assert_int_eq(mdb_cursor_get(cursor, &key, &value, MDB_NEXT), 0);
        mdb_cursor_close(cursor);
        ck_assert_uint_lt(byte, value.mv_size);
        key.mv_data = memcpy(key_copy, key.mv_data, key.mv_size);
        value.mv_data = memcpy(value_copy, value.mv_data, value.mv_size);
        value_copy[byte] ^= 4;
        ck_assert_int_eq(mdb_put(txn, dbi, &key, &value, 0), 0);
        ck_assert_int_eq(mdb_txn_commit(txn), 0);
}

START_TEST(damaged_block_ends_walk_after_preceding_ones)
{
        struct visited v = { 0 };
        struct range_walk w;

        damage(index_of_test->blocks, 200);
        start(&w);
        ck_assert_int_eq(resume_walk(&w, &v), ST_BAD_DATA);
        ck_assert_uint_gt(v.count, 100);
        ck_assert_uint_lt(v.count, RANGES);
        range_walk_deinit(&w);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("range_walk", walk_returns_the_ranges_of_the_table, paused_walk_resumes,
                        replacing_symbols_ends_walk, walk_of_unknown_object_is_not_found, failed_visitor_ends_walk,
                        damaged_block_ends_walk_after_preceding_ones)
