/* SPDX-License-Identifier: Apache-2.0 */
/* Locations with hundreds of inlined calls: memory stays bounded, and shallow locations come first. */
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "profile-store/rows/frame_chains.h"
#include "profile-store/rows/location_rows.h"
#include "symbol-index/index_load.h"
#include "symbolizer/table/symbol_table_builder.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

#define START 0x1000u
#define DEEP_BYTES 60000u /* of code, with DEPTH frames at each address: 15 million frames */
#define DEPTH 250u
#define SHALLOW_COUNT 100u

static char dir[TEMPORARY_DIR_BYTES];
static struct symbol_index *symbols;
static struct arena texts;

static void set_up(void)
{
        struct error err;

        temporary_dir_create(dir, "location-rows");
        check_ok(symbol_index_open(dir, false, &symbols, &err), &err);
        arena_init(&texts, LIMIT_FLUSH_MEMORY_BYTES);
}

static void tear_down(void)
{
        arena_deinit(&texts);
        symbol_index_close(symbols);
        temporary_dir_remove(dir);
}

static struct build_id make_id(uint8_t last)
{
        struct build_id id = { .size = 20 };

        id.bytes[19] = last;
        return id;
}

/* An object with byte_count bytes of code and depth frames at each byte; lines change every `step` bytes. */
static void load_object(uint8_t id, uint32_t byte_count, uint32_t depth, uint32_t step)
{
        struct symbol_table_frame frames[DEPTH] = { 0 };
        struct symbol_segment segment = { .address = START, .file_size = byte_count };
        struct symbol_table_builder b;
        struct symbol_table table;
        struct error err;
        char name[16];
        uint64_t generation;
        bool replaced;

        symbol_table_builder_init(&b);
        for (uint32_t i = 0; i < depth; i++) {
                snprintf(name, sizeof name, "f%u", i);
                frames[i].function = symbol_table_builder_add_function(&b, name, name);
        }
        for (uint32_t at = 0; at < byte_count; at += step) {
                frames[0].line = 1 + at / step;
                symbol_table_builder_add_range(&b, START + at, START + at + step,
                                               symbol_table_builder_add_chain(&b, frames, depth));
        }
        check_ok(symbol_table_builder_finish(&b, &table, &err), &err);
        table.build_id = make_id(id);
        table.quality = QUALITY_LINES;
        table.segments = &segment;
        table.segment_count = 1;
        check_ok(symbol_index_load(symbols, &table, &replaced, &generation, &err), &err);
        ck_assert(replaced);
        table.segments = NULL;
        table.segment_count = 0;
        symbol_table_deinit(&table);
        symbol_table_builder_deinit(&b);
}

static void make_row(struct location_row *row, uint8_t id, uint64_t address)
{
        static struct build_id ids[UINT8_MAX + 1];

        ids[id] = make_id(id);
        *row = (struct location_row){ .kind = ADDRESS_OBJECT, .state = SYMBOL_NO_DEBUGINFO };
        row->shown = (struct scan_location){ .location_id = address << 8 | id,
                                             .address = address,
                                             .build_id = &ids[id],
                                             .mapping = "",
                                             .state = symbol_state_name(SYMBOL_NO_DEBUGINFO) };
}

/* Rows of the deep object, of the shallow one, then of the deep one again. */
static struct location_row *make_rows(size_t *count_ret)
{
        struct location_row *rows = calloc(DEEP_BYTES + SHALLOW_COUNT, sizeof *rows);
        size_t n = 0;

        ck_assert_ptr_nonnull(rows);
        for (uint32_t i = 0; i < DEEP_BYTES; i++) {
                if (i == DEEP_BYTES - 10)
                        for (uint32_t k = 0; k < SHALLOW_COUNT; k++)
                                make_row(&rows[n++], 2, START + k);
                make_row(&rows[n++], 1, START + i);
        }
        *count_ret = n;
        return rows;
}

struct counts {
        uint64_t resolved, too_large, shallow, frames;
};

static struct counts count_rows(const struct location_row *rows, size_t count)
{
        struct counts c = { 0 };

        for (size_t i = 0; i < count; i++) {
                bool is_shallow = rows[i].shown.build_id->bytes[19] == 2;

                ck_assert(rows[i].state == SYMBOL_RESOLVED || rows[i].state == SYMBOL_TOO_LARGE);
                ck_assert_str_eq(rows[i].shown.state, symbol_state_name(rows[i].state));
                ck_assert_uint_eq(rows[i].shown.frame_count, rows[i].state == SYMBOL_TOO_LARGE ? 0
                                                             : is_shallow                      ? 2
                                                                                               : DEPTH);
                c.resolved += rows[i].state == SYMBOL_RESOLVED;
                c.too_large += rows[i].state == SYMBOL_TOO_LARGE;
                c.shallow += is_shallow && rows[i].state == SYMBOL_RESOLVED;
                c.frames += rows[i].shown.frame_count;
        }
        return c;
}

START_TEST(deep_locations_share_frames_and_do_not_exhaust_memory)
{
        size_t count;
        _cleanup_free_ struct location_row *rows = make_rows(&count);
        struct counts c;
        struct error err;

        load_object(1, DEEP_BYTES, DEPTH, DEEP_BYTES);
        load_object(2, SHALLOW_COUNT, 2, 1);
        check_ok(location_rows_resolve(rows, count, symbols, &texts, NULL, &err), &err);
        c = count_rows(rows, count);
        ck_assert_uint_eq(c.shallow, SHALLOW_COUNT);
        ck_assert_uint_le(c.frames, LIMIT_FLUSH_FRAMES);
        ck_assert_uint_gt(c.frames, LIMIT_FLUSH_FRAMES - 2 * DEPTH);
        ck_assert_uint_gt(c.too_large, 0);
        ck_assert_ptr_eq(rows[0].shown.frames, rows[1].shown.frames);
        ck_assert_uint_lt(texts.used, KiB(64)); /* 8 million frames of 40 bytes each if they were not shared */
        ck_assert_str_eq(rows[0].shown.frames[0].function, "f0");
        ck_assert_str_eq(rows[0].shown.frames[DEPTH - 1].function, "f249");
}
END_TEST

START_TEST(locations_over_arena_limit_are_resolved_later)
{
        size_t count = 5000;
        _cleanup_free_ struct location_row *rows = calloc(count, sizeof *rows);
        _cleanup_free_ uint8_t *changed = calloc(count, 1);
        _cleanup_arena_ struct arena small;
        struct counts c;
        struct error err;

        load_object(1, 5000, DEPTH, 1);
        for (size_t i = 0; i < count; i++)
                make_row(&rows[i], 1, START + i);
        arena_init(&small, MiB(1)); /* a hundred distinct chains of 10,000 bytes */
        check_ok(location_rows_resolve(rows, count, symbols, &small, NULL, &err), &err);
        c = count_rows(rows, count);
        ck_assert_uint_gt(c.resolved, 50);
        ck_assert_uint_gt(c.too_large, 4000);

        check_ok(location_rows_resolve(rows, count, symbols, &texts, changed, &err), &err);
        c = count_rows(rows, count);
        ck_assert_uint_eq(c.resolved, count);
        ck_assert_uint_eq(changed[0], 0);
        ck_assert_uint_eq(changed[count - 1], 1);
        for (size_t i = 0; i < count; i++)
                ck_assert_int_eq(rows[i].shown.frames[0].line, (int64_t)i + 1);
}
END_TEST

START_TEST(frames_of_a_lookup_are_reserved_from_the_budget)
{
        enum { COUNT = 5000 };
        _cleanup_free_ struct location_row *rows = calloc(COUNT, sizeof *rows);
        struct memory_reservation other = { .use = MEMORY_FLUSH };
        struct arena budgeted;
        struct error err;

        load_object(1, COUNT, DEPTH, 1);
        check_ok(memory_budget_set_limit(MiB(512), &err), &err);
        arena_init_budget(&budgeted, MiB(512), MEMORY_FLUSH);
        /* COUNT * DEPTH frames of 16 bytes are 20 MB */
        check_ok(memory_reserve(&other, memory_use_ceiling(MEMORY_FLUSH) - MiB(16), &err), &err);
        for (size_t i = 0; i < COUNT; i++)
                make_row(&rows[i], 1, START + i);
        ck_assert_int_eq(location_rows_resolve(rows, COUNT, symbols, &budgeted, NULL, &err), ST_BUSY);
        ck_assert_int_eq(rows[0].state, SYMBOL_NO_DEBUGINFO);
        check_ok(location_rows_resolve(rows, 500, symbols, &budgeted, NULL, &err), &err);
        ck_assert_uint_eq(rows[499].shown.frame_count, DEPTH);
        arena_deinit(&budgeted);
        ck_assert_uint_eq(memory_use_held(MEMORY_FLUSH), other.bytes);
}
END_TEST

START_TEST(existing_frames_are_kept_without_memory_for_better_ones)
{
        static const struct scan_frame old = { .function = "old", .linkage_name = "", .file = "" };
        struct location_row row;
        _cleanup_arena_ struct arena none;
        uint8_t changed = 0;
        struct error err;

        load_object(1, 100, DEPTH, 1);
        make_row(&row, 1, START);
        row.state = SYMBOL_RESOLVED;
        row.shown.state = symbol_state_name(row.state);
        row.shown.frames = &old;
        row.shown.frame_count = 1;
        arena_init(&none, 16);
        check_ok(location_rows_resolve(&row, 1, symbols, &none, &changed, &err), &err);
        ck_assert_int_eq(row.state, SYMBOL_RESOLVED);
        ck_assert_ptr_eq(row.shown.frames, &old);
        ck_assert_uint_eq(changed, 0);
}
END_TEST

START_TEST(chains_are_shared_when_all_frames_are_equal)
{
        _cleanup_(frame_chains_deinit) struct frame_chains c = { .arena = &texts };
        const struct scan_frame *first[3], *again;

        for (int line = 0; line < 3; line++) {
                struct scan_frame *f = frame_chain_begin(&c, 2);

                f[0].function = f[1].function = "f";
                f[0].line = line;
                ck_assert_int_eq(frame_chain_end(&c, 2, &first[line], NULL), ST_OK);
        }
        frame_chain_begin(&c, 2)[0].function = "f";
        c.scratch[1].function = "f";
        c.scratch[0].line = 1;
        ck_assert_int_eq(frame_chain_end(&c, 2, &again, NULL), ST_OK);
        ck_assert_ptr_eq(again, first[1]);
        ck_assert_ptr_ne(first[0], first[1]);
        ck_assert_uint_eq(c.count, 3);
        (void)frame_chain_begin(&c, 0);
        ck_assert_int_eq(frame_chain_end(&c, 0, &again, NULL), ST_OK);
}
END_TEST

/* One byte of an object: g, declared at a line, inlined into f, whose declaration is not in the index. */
static void load_declared_object(uint8_t id, uint32_t start_line, uint32_t byte_count)
{
        struct symbol_segment segment = { .address = START, .file_size = byte_count };
        struct symbol_function g = { .start_line = start_line };
        struct symbol_table_frame frames[2] = { { .line = 12 }, { .line = 20 } };
        struct symbol_table_builder b;
        struct symbol_table table;
        struct error err;
        uint64_t generation;
        bool replaced;

        symbol_table_builder_init(&b);
        g.name = symbol_table_builder_add_string(&b, "g");
        g.file = frames[0].file = symbol_table_builder_add_string(&b, "/src/g.c");
        frames[0].function = symbol_table_builder_intern_function(&b, &g);
        frames[1].function = symbol_table_builder_add_function(&b, "", "f");
        symbol_table_builder_add_range(&b, START, START + byte_count, symbol_table_builder_add_chain(&b, frames, 2));
        check_ok(symbol_table_builder_finish(&b, &table, &err), &err);
        table.build_id = make_id(id);
        table.quality = QUALITY_DWARF;
        table.segments = &segment;
        table.segment_count = 1;
        check_ok(symbol_index_load(symbols, &table, &replaced, &generation, &err), &err);
        table.segments = NULL;
        symbol_table_deinit(&table);
        symbol_table_builder_deinit(&b);
}

START_TEST(start_lines_are_from_index_or_sender)
{
        struct scan_frame sent[] = { { .function = "f", .linkage_name = "", .file = "", .line = 3, .start_line = 18 },
                                     { .function = "g", .linkage_name = "", .file = "", .line = 3, .start_line = 99 } };
        struct location_row row;
        uint8_t changed = 0;
        struct error err;

        load_declared_object(1, 10, 4);
        make_row(&row, 1, START);
        row.state = SYMBOL_SENDER;
        row.shown.frames = sent;
        row.shown.frame_count = 2;
        check_ok(location_rows_resolve(&row, 1, symbols, &texts, &changed, &err), &err);
        ck_assert_int_eq(row.state, SYMBOL_RESOLVED);
        ck_assert_uint_eq(changed, 1);
        ck_assert_uint_eq(row.shown.frame_count, 2);
        ck_assert_str_eq(row.shown.frames[0].function, "g");
        ck_assert_int_eq(row.shown.frames[0].start_line, 10);
        ck_assert_str_eq(row.shown.frames[1].function, "f");
        ck_assert_int_eq(row.shown.frames[1].start_line, 18);

        /* The same symbols again, under a new generation. */
        changed = 0;
        load_declared_object(1, 10, 4);
        check_ok(location_rows_resolve(&row, 1, symbols, &texts, &changed, &err), &err);
        ck_assert_uint_eq(changed, 0);

        /* A new start line alone causes the row to be written again. */
        load_declared_object(1, 11, 4);
        check_ok(location_rows_resolve(&row, 1, symbols, &texts, &changed, &err), &err);
        ck_assert_uint_eq(changed, 1);
        ck_assert_int_eq(row.shown.frames[0].start_line, 11);
        ck_assert_int_eq(row.shown.frames[1].start_line, 18);
}
END_TEST

START_TEST(better_frames_of_another_index_are_kept)
{
        struct scan_frame better = { .function = "f", .linkage_name = "", .file = "/src/f.c", .line = 7 };
        struct location_row row;
        uint8_t changed = 0;
        struct error err;

        load_object(1, 4, 2, 1);
        make_row(&row, 1, START);
        row.state = SYMBOL_RESOLVED;
        row.generation = 1000;
        row.shown.quality = QUALITY_DWARF;
        row.shown.frames = &better;
        row.shown.frame_count = 1;
        check_ok(location_rows_resolve(&row, 1, symbols, &texts, &changed, &err), &err);
        ck_assert_uint_eq(changed, 0);
        ck_assert_int_eq(row.shown.quality, QUALITY_DWARF);
        ck_assert_uint_eq(row.shown.frame_count, 1);

        /* Of this index, whose symbols were replaced by worse ones. */
        row.is_own = true;
        check_ok(location_rows_resolve(&row, 1, symbols, &texts, &changed, &err), &err);
        ck_assert_uint_eq(changed, 1);
        ck_assert_int_eq(row.shown.quality, QUALITY_LINES);
        ck_assert_uint_eq(row.shown.frame_count, 2);

        /* As good, but of other symbols. */
        row.is_own = false;
        row.generation = 1000;
        row.shown.frames = &better;
        row.shown.frame_count = 1;
        row.shown.quality = QUALITY_LINES;
        check_ok(location_rows_resolve(&row, 1, symbols, &texts, &changed, &err), &err);
        ck_assert_uint_eq(changed, 1);
        ck_assert_uint_eq(row.shown.frame_count, 2);
}
END_TEST

START_TEST(equal_generation_of_another_index_does_not_keep_worse_frames)
{
        struct scan_frame old = { .function = "f", .linkage_name = "", .file = "" };
        struct location_row row;
        uint8_t changed = 0;
        struct error err;

        load_declared_object(1, 10, 4);
        make_row(&row, 1, START);
        check_ok(location_rows_resolve(&row, 1, symbols, &texts, &changed, &err), &err);
        ck_assert_int_eq(row.shown.quality, QUALITY_DWARF);

        row.shown.frames = &old;
        row.shown.frame_count = 1;
        row.shown.quality = QUALITY_SYMTAB;
        changed = 0;
        check_ok(location_rows_resolve(&row, 1, symbols, &texts, &changed, &err), &err);
        ck_assert_uint_eq(changed, 1);
        ck_assert_uint_eq(row.shown.frame_count, 2);
        ck_assert_int_eq(row.shown.quality, QUALITY_DWARF);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("location_rows", deep_locations_share_frames_and_do_not_exhaust_memory,
                        locations_over_arena_limit_are_resolved_later, frames_of_a_lookup_are_reserved_from_the_budget,
                        existing_frames_are_kept_without_memory_for_better_ones, start_lines_are_from_index_or_sender,
                        chains_are_shared_when_all_frames_are_equal,
                        equal_generation_of_another_index_does_not_keep_worse_frames,
                        better_frames_of_another_index_are_kept)
