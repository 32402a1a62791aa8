/* SPDX-License-Identifier: Apache-2.0 */
/* Writing to the index: the state after loads, marks and crashes. */
#include <check.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbol-index/index_load.h"
#include "symbol-index/index_verify.h"
#include "symbol-index/symbol_index_internal.h"
#include "symbol-index/text_hash_index.h"
#include "tests/support/random_table.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

static char dir[TEMPORARY_DIR_BYTES]; /* of this test; empty until it is created */

static void make_dir(void)
{
        temporary_dir_create(dir, "test");
}

/* Number of steps until this process is killed, one before and one after each commit; 0: never. */
static unsigned steps_to_live;

static void step(void)
{
        if (steps_to_live && --steps_to_live == 0)
                raise(SIGKILL);
}

/* Interposes LMDB's function, so that a test can kill the process before or after it. */
int mdb_txn_commit(MDB_txn *txn)
{
        int (*commit)(MDB_txn *) = (int (*)(MDB_txn *))dlsym(RTLD_NEXT, "mdb_txn_commit");
        int rc;

        step();
        rc = commit(txn);
        step();
        return rc;
}

static struct symbol_index *open_index(bool read_only)
{
        struct symbol_index *index = NULL;
        struct error err = { 0 };

        if (!dir[0])
                make_dir();
        ck_assert_msg(symbol_index_open(dir, read_only, &index, &err) == ST_OK, "%s", err.text);
        return index;
}

static void finish(struct symbol_index *index)
{
        symbol_index_close(index);
        temporary_dir_remove(dir);
        dir[0] = 0;
}

static struct symbol_table table_of(uint32_t ranges, uint32_t version, enum symbol_quality quality)
{
        return random_table(&(struct random_table_spec){ .seed = 7,
                                                         .range_count = ranges,
                                                         .function_count = 200,
                                                         .file_count = 20,
                                                         .base = 0x1000,
                                                         .version = version,
                                                         .quality = quality });
}

static struct symbol_table table_with_names(uint32_t functions)
{
        return random_table(&(struct random_table_spec){ .seed = 8,
                                                         .range_count = functions,
                                                         .function_count = functions,
                                                         .file_count = 20,
                                                         .base = 0x1000,
                                                         .version = 1,
                                                         .quality = QUALITY_DWARF });
}

static uint64_t load(struct symbol_index *index, const struct symbol_table *t, bool expect_replaced)
{
        struct error err = { 0 };
        uint64_t generation = 0;
        bool replaced = !expect_replaced;

        ck_assert_msg(symbol_index_load(index, t, &replaced, &generation, &err) == ST_OK, "%s", err.text);
        ck_assert_int_eq(replaced, expect_replaced);
        return generation;
}

static struct symbol_object object_of(struct symbol_index *index, const struct build_id *id)
{
        struct symbol_view *view;
        struct symbol_object o;

        ck_assert_int_eq(symbol_view_begin(index, &view, NULL), ST_OK);
        ck_assert_int_eq(symbol_view_get_object(view, id, &o, NULL), ST_OK);
        symbol_view_end(view);
        return o;
}

/* The line of the outermost frame at the table's first address; -1 and the state if it is not resolved. */
static int64_t first_line(struct symbol_index *index, const struct symbol_table *t, enum symbol_state *state_ret)
{
        struct symbol_key key = { .build_id = &t->build_id, .address = t->ranges[0].start };
        struct symbol_batch batch = { 0 };
        struct symbol_view *view;
        int64_t line = -1;

        ck_assert_int_eq(symbol_view_begin(index, &view, NULL), ST_OK);
        ck_assert_int_eq(symbol_view_lookup(view, &key, 1, &batch, NULL), ST_OK);
        symbol_view_end(view);
        if (batch.results[0].state == SYMBOL_RESOLVED)
                line = batch.frames[batch.results[0].first_frame + batch.results[0].frame_count - 1].line;
        *state_ret = batch.results[0].state;
        symbol_batch_deinit(&batch);
        return line;
}

static size_t entries(struct symbol_index *index, MDB_dbi dbi)
{
        MDB_txn *txn;
        MDB_stat s;

        ck_assert_int_eq(mdb_txn_begin(index->env, NULL, MDB_RDONLY, &txn), 0);
        ck_assert_int_eq(mdb_stat(txn, dbi, &s), 0);
        mdb_txn_abort(txn);
        return s.ms_entries;
}

static void fail_with(void *context, const char *text)
{
        (void)context;
        ck_abort_msg("%s", text);
}

static struct index_verify check_index(struct symbol_index *index)
{
        struct index_verify v = { .problem = fail_with };

        ck_assert_int_eq(symbol_index_verify(index, &v, NULL), ST_OK);
        return v;
}

START_TEST(unknown_object_is_absent)
{
        struct symbol_index *index = open_index(false);
        struct build_id id = random_build_id(1);
        struct symbol_object o = object_of(index, &id);

        ck_assert_int_eq(o.state, OBJECT_ABSENT);
        ck_assert_uint_eq(o.generation, 0);
        finish(index);
}
END_TEST

START_TEST(each_load_takes_a_greater_generation_and_deletes_the_old_blocks)
{
        struct symbol_index *index = open_index(false);
        struct symbol_table t = table_of(20000, 1, QUALITY_DWARF);
        uint64_t first = load(index, &t, true), second;
        size_t blocks = entries(index, index->blocks);

        ck_assert_uint_gt(blocks, 10);
        second = load(index, &t, true);
        ck_assert_uint_gt(second, first);
        ck_assert_uint_eq(entries(index, index->blocks), blocks);
        ck_assert_uint_eq(entries(index, index->garbage), 0);
        ck_assert_uint_eq(object_of(index, &t.build_id).generation, second);
        ck_assert_uint_eq(check_index(index).shared_blocks, 0);
        symbol_table_deinit(&t);
        finish(index);
}
END_TEST

START_TEST(worse_symbols_never_replace_better_ones)
{
        struct symbol_index *index = open_index(false);
        struct symbol_table good = table_of(100, 1, QUALITY_DWARF), bad = table_of(100, 2, QUALITY_SYMTAB);
        enum symbol_state state;
        uint64_t generation;

        generation = load(index, &bad, true);
        ck_assert_uint_gt(load(index, &good, true), generation);
        generation = object_of(index, &good.build_id).generation;
        ck_assert_uint_eq(load(index, &bad, false), generation);
        ck_assert_int_eq(first_line(index, &good, &state) / 100000, 1);
        symbol_table_deinit(&good);
        symbol_table_deinit(&bad);
        finish(index);
}
END_TEST

START_TEST(marks_keep_the_symbols_in_use)
{
        struct symbol_index *index = open_index(false);
        struct symbol_table t = table_of(100, 1, QUALITY_DWARF), worse = table_of(100, 2, QUALITY_DYNSYM);
        uint64_t generation = load(index, &t, true);
        enum symbol_state state;

        ck_assert_int_eq(symbol_index_set_state(index, &t.build_id, OBJECT_PENDING, NULL, NULL, NULL), ST_OK);
        ck_assert_int_eq(object_of(index, &t.build_id).state, OBJECT_PENDING);
        ck_assert_int_eq(first_line(index, &t, &state) / 100000, 1);
        ck_assert_int_eq(symbol_index_set_state(index, &t.build_id, OBJECT_FAILED, "out of luck", NULL, NULL), ST_OK);
        ck_assert_str_eq(object_of(index, &t.build_id).reason, "out of luck");
        ck_assert_int_eq(first_line(index, &t, &state) / 100000, 1);
        ck_assert_uint_eq(load(index, &worse, false), generation);
        ck_assert_int_eq(object_of(index, &t.build_id).state, OBJECT_INDEXED);
        ck_assert_str_eq(object_of(index, &t.build_id).reason, "");
        symbol_table_deinit(&t);
        symbol_table_deinit(&worse);
        finish(index);
}
END_TEST

START_TEST(mark_of_object_without_symbols_is_its_state)
{
        struct symbol_index *index = open_index(false);
        struct symbol_table t = table_of(10, 1, QUALITY_DWARF);
        enum symbol_state state;

        first_line(index, &t, &state);
        ck_assert_int_eq(state, SYMBOL_NO_DEBUGINFO);
        ck_assert_int_eq(symbol_index_set_state(index, &t.build_id, OBJECT_PENDING, NULL, NULL, NULL), ST_OK);
        first_line(index, &t, &state);
        ck_assert_int_eq(state, SYMBOL_PENDING);
        ck_assert_int_eq(symbol_index_set_state(index, &t.build_id, OBJECT_FAILED, "x", NULL, NULL), ST_OK);
        first_line(index, &t, &state);
        ck_assert_int_eq(state, SYMBOL_FAILED);
        ck_assert_int_eq(symbol_index_set_state(index, &t.build_id, OBJECT_ABSENT, NULL, NULL, NULL), ST_OK);
        first_line(index, &t, &state);
        ck_assert_int_eq(state, SYMBOL_NO_DEBUGINFO);
        ck_assert_uint_eq(entries(index, index->objects), 0);
        symbol_table_deinit(&t);
        finish(index);
}
END_TEST

/* Mark the table as partial; its strings grow. */
static void make_partial(struct symbol_table *t, const char *text)
{
        size_t n = strlen(text) + 1;

        t->strings = realloc(t->strings, t->string_bytes + n);
        memcpy(t->strings + t->string_bytes, text, n);
        t->partial = t->string_bytes;
        t->string_bytes += (uint32_t)n;
}

START_TEST(partial_symbols_do_not_replace_complete_ones)
{
        struct symbol_index *index = open_index(false);
        struct symbol_table whole = table_of(10, 1, QUALITY_SYMTAB), partial = table_of(10, 2, QUALITY_SYMTAB);
        uint64_t generation;

        make_partial(&partial, "1 of 2 units");
        generation = load(index, &partial, true);
        ck_assert_str_eq(object_of(index, &partial.build_id).partial, "1 of 2 units");
        ck_assert_int_eq(symbol_index_set_state(index, &whole.build_id, OBJECT_FAILED, "out of luck", NULL, NULL),
                         ST_OK);
        ck_assert_str_eq(object_of(index, &partial.build_id).partial, "1 of 2 units");
        ck_assert_uint_gt(load(index, &partial, true), generation); /* as good as the stored one */
        generation = load(index, &whole, true);
        ck_assert_str_eq(object_of(index, &whole.build_id).partial, "");
        ck_assert_uint_eq(load(index, &partial, false), generation);
        ck_assert_str_eq(object_of(index, &whole.build_id).partial, "");
        partial.quality = QUALITY_DWARF;
        load(index, &partial, true); /* a better quality takes precedence */
        ck_assert_str_eq(object_of(index, &whole.build_id).partial, "1 of 2 units");
        symbol_table_deinit(&whole);
        symbol_table_deinit(&partial);
        finish(index);
}
END_TEST

START_TEST(texts_of_second_build_are_shared)
{
        struct symbol_index *index = open_index(false);
        struct symbol_table t = table_of(3000, 1, QUALITY_DWARF);
        size_t pages, ids;

        load(index, &t, true);
        pages = entries(index, index->texts.pages);
        ids = entries(index, index->texts.ids);
        ck_assert_uint_gt(object_of(index, &t.build_id).function_count, 150);
        ck_assert_uint_eq(object_of(index, &t.build_id).file_count, 20);
        t.build_id = random_build_id(99);
        load(index, &t, true);
        ck_assert_uint_eq(entries(index, index->texts.pages), pages);
        ck_assert_uint_eq(entries(index, index->texts.ids), ids);
        ck_assert_uint_eq(object_of(index, &t.build_id).string_bytes, 0);
        symbol_table_deinit(&t);
        finish(index);
}
END_TEST

START_TEST(moved_blocks_of_second_build_are_shared)
{
        struct symbol_index *index = open_index(false);
        struct symbol_table t = table_of(20000, 1, QUALITY_DWARF);
        struct build_id first = t.build_id;
        struct index_object_blocks own;
        struct index_verify v;
        size_t blocks;

        load(index, &t, true);
        blocks = entries(index, index->blocks);
        t.build_id = random_build_id(99);
        for (uint32_t i = 0; i < t.range_count; i++) {
                t.ranges[i].start += 0x7fff00001230;
                t.ranges[i].end += 0x7fff00001230;
        }
        load(index, &t, true);
        ck_assert_uint_eq(entries(index, index->blocks), blocks);
        ck_assert_uint_lt(object_of(index, &t.build_id).index_bytes * 20, object_of(index, &first).index_bytes);
        v = check_index(index);
        ck_assert_uint_eq(v.shared_blocks, blocks);
        ck_assert_int_eq(symbol_index_measure_blocks(index, &t.build_id, &own, NULL), ST_OK);
        ck_assert_uint_eq(own.blocks, blocks);
        ck_assert_uint_eq(own.shared, blocks);
        symbol_table_deinit(&t);
        finish(index);
}
END_TEST

/* A range in the middle is longer, so that following ranges are shifted relative to preceding ones. */
START_TEST(change_in_the_middle_rewrites_adjacent_blocks)
{
        struct symbol_index *index = open_index(false);
        struct symbol_table t = table_of(20000, 1, QUALITY_DWARF);
        size_t blocks;

        load(index, &t, true);
        blocks = entries(index, index->blocks);
        t.build_id = random_build_id(99);
        t.ranges[10000].end += 16;
        for (uint32_t i = 10001; i < t.range_count; i++) {
                t.ranges[i].start += 16;
                t.ranges[i].end += 16;
        }
        load(index, &t, true);
        ck_assert_uint_gt(blocks, 20);
        ck_assert_uint_gt(entries(index, index->blocks), blocks);
        ck_assert_uint_le(entries(index, index->blocks), blocks + 3);
        check_index(index);
        symbol_table_deinit(&t);
        finish(index);
}
END_TEST

START_TEST(blocks_used_by_another_object_are_kept)
{
        struct symbol_index *index = open_index(false);
        struct symbol_table one = table_of(20000, 1, QUALITY_DWARF), two = table_of(20000, 2, QUALITY_DWARF);
        enum symbol_state state;
        size_t blocks;

        load(index, &one, true);
        blocks = entries(index, index->blocks);
        one.build_id = random_build_id(99);
        load(index, &one, true);
        /* The first object gets other symbols; the second one keeps the shared blocks. */
        load(index, &two, true);
        check_index(index);
        ck_assert_uint_gt(entries(index, index->blocks), blocks);
        ck_assert_int_eq(first_line(index, &one, &state) / 100000, 1);
        ck_assert_int_eq(first_line(index, &two, &state) / 100000, 2);
        two.build_id = one.build_id;
        load(index, &two, true);
        check_index(index);
        ck_assert_int_eq(first_line(index, &one, &state) / 100000, 2);
        ck_assert_uint_le(entries(index, index->blocks), blocks + 5);
        symbol_table_deinit(&one);
        symbol_table_deinit(&two);
        finish(index);
}
END_TEST

START_TEST(verify_reports_missing_block)
{
        struct symbol_index *index = open_index(false);
        struct symbol_table t = table_of(5000, 1, QUALITY_DWARF);
        struct index_verify v = { 0 };
        uint32_t second = htobe32(2);
        MDB_val key = { sizeof second, &second };
        struct index_write w;

        load(index, &t, true);
        ck_assert_int_eq(index_write_begin(&w, index, NULL), ST_OK);
        ck_assert_int_eq(mdb_del(w.txn, index->blocks, &key, NULL), 0);
        ck_assert_int_eq(index_write_commit(&w, NULL), ST_OK);
        ck_assert_int_eq(symbol_index_verify(index, &v, NULL), ST_OK);
        /* Its object needs it, and its anchor refers to nothing. */
        ck_assert_uint_eq(v.problems, 2);
        symbol_table_deinit(&t);
        finish(index);
}
END_TEST

START_TEST(content_persists_after_closing)
{
        struct symbol_index *index = open_index(false);
        struct symbol_table t = table_of(100, 3, QUALITY_LINES);
        uint64_t generation = load(index, &t, true);
        struct symbol_object o;
        enum symbol_state state;

        symbol_index_close(index);
        index = open_index(true);
        o = object_of(index, &t.build_id);
        ck_assert_uint_eq(o.generation, generation);
        ck_assert_int_eq(o.quality, QUALITY_LINES);
        ck_assert_uint_eq(o.range_count, 100);
        ck_assert_int_eq(first_line(index, &t, &state) / 100000, 3);
        ck_assert_int_eq(symbol_index_set_state(index, &t.build_id, OBJECT_PENDING, NULL, NULL, NULL), ST_USAGE);
        symbol_table_deinit(&t);
        finish(index);
}
END_TEST

START_TEST(second_writer_is_refused)
{
        struct symbol_index *index = open_index(false), *second = NULL;
        struct error err;
        int status;
        pid_t pid = fork();

        if (pid == 0)
                _exit(symbol_index_open(dir, false, &second, &err) == ST_BUSY && strstr(err.text, dir) ? 0 : 1);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_int_eq(status, 0);
        finish(index);
}
END_TEST

START_TEST(opening_missing_index_for_reading_is_not_found)
{
        struct symbol_index *index = NULL;
        struct error err;

        make_dir();
        ck_assert_int_eq(symbol_index_open(dir, true, &index, &err), ST_NOT_FOUND);
        ck_assert_ptr_null(index);
        ck_assert_ptr_nonnull(strstr(err.text, dir));
        finish(NULL);
}
END_TEST

START_TEST(another_format_is_refused)
{
        struct symbol_index *index = open_index(false), *again = NULL;
        struct index_write w;
        struct error err;
        uint32_t format = 77;

        ck_assert_int_eq(index_write_begin(&w, index, NULL), ST_OK);
        ck_assert_int_eq(index_write_put(&w, index->meta, &(struct index_record){ "version", 7, &format, 4 }, 0, NULL),
                         ST_OK);
        ck_assert_int_eq(index_write_commit(&w, NULL), ST_OK);
        symbol_index_close(index);
        ck_assert_int_eq(symbol_index_open(dir, false, &again, &err), ST_UNSUPPORTED);
        ck_assert_ptr_nonnull(strstr(err.text, "77"));
        ck_assert_int_eq(symbol_index_open_or_reset(dir, &again, &err), ST_UNSUPPORTED);
        ck_assert_ptr_null(again);
        finish(NULL);
}
END_TEST

/* As programs before the first release wrote it: with another key for the version. */
START_TEST(an_index_without_a_version_is_refused_unchanged)
{
        struct symbol_index *index = open_index(false);
        struct symbol_table t = table_of(3000, 1, QUALITY_DWARF);
        struct index_write w;
        struct error err;
        MDB_val key = { 7, (void *)"version" };

        load(index, &t, true);
        ck_assert_int_eq(index_write_begin(&w, index, NULL), ST_OK);
        ck_assert_int_eq(mdb_del(w.txn, index->meta, &key, NULL), 0);
        ck_assert_int_eq(index_write_put(&w, index->meta, &(struct index_record){ "format", 6, "\5\0\0", 4 }, 0, NULL),
                         ST_OK);
        ck_assert_int_eq(index_write_commit(&w, NULL), ST_OK);
        symbol_index_close(index);
        for (int read_only = 0; read_only < 2; read_only++) {
                ck_assert_int_eq(symbol_index_open(dir, read_only, &index, &err), ST_UNSUPPORTED);
                ck_assert_ptr_nonnull(strstr(err.text, "older than cairn 0.1.0"));
        }
        ck_assert_int_eq(symbol_index_open_or_reset(dir, &index, &err), ST_UNSUPPORTED);
        finish(NULL);
        symbol_table_deinit(&t);
}
END_TEST

START_TEST(older_format_is_refused_or_recreated_with_later_generations)
{
        struct symbol_index *index = open_index(false);
        struct symbol_table t = table_of(3000, 1, QUALITY_DWARF);
        uint64_t generation = load(index, &t, true);
        struct index_write w;
        struct error err;
        uint32_t format = 0;

        ck_assert_int_eq(index_write_begin(&w, index, NULL), ST_OK);
        ck_assert_int_eq(index_write_put(&w, index->meta, &(struct index_record){ "version", 7, &format, 4 }, 0, NULL),
                         ST_OK);
        ck_assert_int_eq(index_write_commit(&w, NULL), ST_OK);
        symbol_index_close(index);
        for (int read_only = 0; read_only < 2; read_only++) {
                ck_assert_int_eq(symbol_index_open(dir, read_only, &index, &err), ST_UNSUPPORTED);
                ck_assert_ptr_nonnull(strstr(err.text, "cairn serve"));
        }
        ck_assert_int_eq(symbol_index_open_or_reset(dir, &index, &err), ST_OK);
        ck_assert_int_eq(object_of(index, &t.build_id).state, OBJECT_ABSENT);
        ck_assert_uint_eq(check_index(index).blocks, 0);
        ck_assert_uint_gt(load(index, &t, true), generation);
        symbol_index_close(index);
        index = open_index(false);
        ck_assert_int_eq(object_of(index, &t.build_id).state, OBJECT_INDEXED);
        finish(index);
        symbol_table_deinit(&t);
}
END_TEST

/* A process reads while this one writes; each view is of one generation. */
START_TEST(concurrent_reader_sees_complete_generations)
{
        struct symbol_index *index = open_index(false);
        struct symbol_table t = table_of(500, 1, QUALITY_DWARF);
        struct symbol_index *reader;
        int status, ready[2];
        enum symbol_state state;
        char c;
        pid_t pid;

        load(index, &t, true);
        ck_assert_int_eq(pipe(ready), 0);
        pid = fork();
        if (pid == 0) {
                if (symbol_index_open(dir, true, &reader, NULL))
                        _exit(2);
                while (object_of(reader, &t.build_id).generation < 20) {
                        if (first_line(reader, &t, &state) / 100000 != 1)
                                _exit(3);
                        (void)!write(ready[1], "x", 1);
                }
                _exit(0);
        }
        close(ready[1]);
        ck_assert_int_eq(read(ready[0], &c, 1), 1);
        while (load(index, &t, true) < 20)
                ;
        while (read(ready[0], &c, 1) > 0)
                ;
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_int_eq(status, 0);
        close(ready[0]);
        symbol_table_deinit(&t);
        finish(index);
}
END_TEST

/* Ids may be fewer than texts by a few: texts of one hash and one group share an id. */
static bool lacks_many_ids(struct symbol_index *index)
{
        struct text_hash_chunk *chunk = calloc(1, sizeof *chunk);
        uint32_t last = 0, ids = 0;
        uint64_t hash = 0;
        MDB_txn *txn;

        ck_assert_ptr_nonnull(chunk);
        ck_assert_int_eq(mdb_txn_begin(index->env, NULL, MDB_RDONLY, &txn), 0);
        ck_assert_int_eq(string_dict_last_number(&index->texts, txn, &last, NULL), ST_OK);
        while (hash < 1u << TEXT_HASH_BITS) {
                ck_assert_int_eq(text_hash_index_find_chunk(txn, index->texts.ids, (uint32_t)hash, chunk, NULL), ST_OK);
                ids += chunk->count;
                hash = (uint64_t)chunk->last + 1;
        }
        mdb_txn_abort(txn);
        free(chunk);
        return ids + 50 < last;
}

/* Loads a table whose names are new, in small transactions, in a child that is killed at a step. */
static bool check_killed_new_names(unsigned steps, unsigned *without_ids)
{
        struct symbol_table one = table_of(200, 1, QUALITY_DWARF), two = table_with_names(3000);
        struct symbol_index *index = open_index(false);
        int status;
        pid_t pid;

        load(index, &one, true);
        symbol_index_close(index);
        pid = fork();
        if (pid == 0) {
                index = open_index(false);
                index->write_bytes = 1; /* each page and chunk is a commit */
                steps_to_live = steps;
                load(index, &two, true);
                _exit(0);
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        /* As a reader finds it while a service loads, then after the sweep. */
        index = open_index(true);
        check_index(index);
        symbol_index_close(index);
        index = open_index(false);
        check_index(index);
        *without_ids += lacks_many_ids(index);
        symbol_table_deinit(&one);
        symbol_table_deinit(&two);
        finish(index);
        return WIFEXITED(status);
}

START_TEST(texts_of_interrupted_load_are_not_damage)
{
        unsigned steps = 1, without_ids = 0;

        while (!check_killed_new_names(steps, &without_ids))
                steps++;
        ck_assert_uint_gt(without_ids, 0);
}
END_TEST

START_TEST(verify_reports_texts_in_use_without_ids)
{
        struct symbol_index *index = open_index(false);
        struct symbol_table t = table_of(5000, 1, QUALITY_DWARF);
        struct index_verify v = { 0 };
        struct index_write w;

        load(index, &t, true);
        ck_assert_int_eq(index_write_begin(&w, index, NULL), ST_OK);
        ck_assert_int_eq(mdb_drop(w.txn, index->texts.ids, 0), 0);
        ck_assert_int_eq(index_write_commit(&w, NULL), ST_OK);
        ck_assert_int_eq(symbol_index_verify(index, &v, NULL), ST_OK);
        ck_assert_uint_eq(v.problems, v.string_pages);
        symbol_table_deinit(&t);
        finish(index);
}
END_TEST

/*
 * A child replaces version 1 by version 2 in many small transactions and is killed after some of them; afterwards
 * exactly one of the two must be complete.
 */
static bool check_killed_load(unsigned steps)
{
        struct symbol_table one = table_of(30000, 1, QUALITY_DWARF), two = table_of(30000, 2, QUALITY_DWARF);
        struct symbol_index *index = open_index(false);
        size_t blocks;
        enum symbol_state state;
        int64_t line;
        int status;
        bool finished;
        pid_t pid;

        load(index, &one, true);
        blocks = entries(index, index->blocks);
        symbol_index_close(index);
        pid = fork();
        if (pid == 0) {
                index = open_index(false);
                index->write_bytes = 16384;
                steps_to_live = steps;
                load(index, &two, true);
                _exit(0);
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        finished = WIFEXITED(status);
        ck_assert(finished || WTERMSIG(status) == SIGKILL);
        index = open_index(false);
        line = first_line(index, &one, &state);
        ck_assert_int_eq(state, SYMBOL_RESOLVED);
        ck_assert(line / 100000 == 1 || line / 100000 == 2);
        /* Version 2 differs only in its lines, which may change the sizes of a few blocks. */
        ck_assert_uint_ge(entries(index, index->blocks) + 5, blocks);
        ck_assert_uint_le(entries(index, index->blocks), blocks + 5);
        ck_assert_uint_eq(entries(index, index->garbage), 0);
        check_index(index);
        load(index, &two, true);
        ck_assert_int_eq(first_line(index, &one, &state) / 100000, 2);
        check_index(index);
        symbol_table_deinit(&one);
        symbol_table_deinit(&two);
        finish(index);
        return finished;
}

START_TEST(load_killed_at_any_commit_leaves_old_or_new_symbols)
{
        unsigned steps = 1;

        while (!check_killed_load(steps))
                steps++;
        ck_assert_uint_gt(steps, 20);
}
END_TEST

TEST_SUITE("index", unknown_object_is_absent, each_load_takes_a_greater_generation_and_deletes_the_old_blocks,
           worse_symbols_never_replace_better_ones, marks_keep_the_symbols_in_use,
           partial_symbols_do_not_replace_complete_ones, an_index_without_a_version_is_refused_unchanged,
           mark_of_object_without_symbols_is_its_state, texts_of_second_build_are_shared,
           moved_blocks_of_second_build_are_shared, change_in_the_middle_rewrites_adjacent_blocks,
           blocks_used_by_another_object_are_kept, verify_reports_missing_block,
           texts_of_interrupted_load_are_not_damage, verify_reports_texts_in_use_without_ids,
           content_persists_after_closing, second_writer_is_refused, opening_missing_index_for_reading_is_not_found,
           another_format_is_refused, older_format_is_refused_or_recreated_with_later_generations,
           concurrent_reader_sees_complete_generations, load_killed_at_any_commit_leaves_old_or_new_symbols)
