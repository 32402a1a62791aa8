/* SPDX-License-Identifier: Apache-2.0 */
/* Frames and rows of enough stacks that several threads merge them: the result must equal that of one thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "query/engine/top.h"
#include "tests/support/suite.h"

#define LOCATIONS 400000 /* more frames than one slice has */
#define FUNCTIONS 1000
#define STACKS 200000
#define DEPTH 4

static char functions[FUNCTIONS][32];
static struct scan_frame frames[LOCATIONS][2];
static struct scan_location locations[LOCATIONS];
static uint32_t indexes[STACKS * DEPTH];
static size_t first[STACKS + 1];
static struct merged_entry entries[STACKS];

static uint32_t pick(uint32_t i, uint32_t below)
{
        return (uint32_t)((i + UINT64_C(1)) * UINT64_C(0x9e3779b97f4a7c15) >> 33) % below;
}

/*
 * Every third location also has an inlined function, every seventh no frame, and every tenth shares those of the first.
 */
static struct scan_stacks make_many_stacks(void)
{
        for (uint32_t i = 0; i < FUNCTIONS; i++)
                snprintf(functions[i], sizeof functions[i], "ns::function_%u(int)", i);
        for (uint32_t i = 0; i < LOCATIONS; i++) {
                uint32_t count = i % 7 == 0 ? 0 : i % 3 == 0 ? 2 : 1;

                for (uint32_t k = 0; k < 2; k++)
                        frames[i][k] = (struct scan_frame){ .function = functions[pick(2 * i + k, FUNCTIONS)],
                                                            .linkage_name = "",
                                                            .file = "f.cc",
                                                            .line = (int64_t)(i % 50) + 1,
                                                            .inlined = k == 0 && count == 2 };
                locations[i] = (struct scan_location){ .location_id = i,
                                                       .address = i % 1000,
                                                       .mapping = "/usr/bin/a",
                                                       .state = "resolved",
                                                       .frames = count ? frames[i] : NULL,
                                                       .frame_count = count };
                if (i % 10 == 9) {
                        locations[i].frames = frames[1];
                        locations[i].frame_count = 1;
                }
        }
        for (uint32_t i = 0; i < STACKS * DEPTH; i++)
                indexes[i] = pick(i, LOCATIONS);
        for (size_t i = 0; i <= STACKS; i++)
                first[i] = DEPTH * i;
        return (struct scan_stacks){
                .locations = locations, .location_count = LOCATIONS, .indexes = indexes, .first = first, .count = STACKS
        };
}

static void build_frames(struct frame_table *t, const struct scan_stacks *stacks, struct location_frames *ret)
{
        struct error err;

        frame_table_init(t, NULL);
        ck_assert_int_eq(location_frames_build(t, stacks, ret, &err), ST_OK);
}

START_TEST(each_location_has_its_frames)
{
        const struct scan_stacks stacks = make_many_stacks();
        _cleanup_frame_table_ struct frame_table t;
        struct location_frames l;
        char short_name[32], address[32];

        build_frames(&t, &stacks, &l);
        ck_assert_uint_eq(t.name_count, FUNCTIONS + 900); /* addresses that end in 9 are shared */
        for (uint32_t i = 0; i < LOCATIONS; i++) {
                const struct scan_location *from = &locations[i];

                ck_assert_uint_eq(l.end[i] - l.first[i], from->frame_count ? from->frame_count : 1);
                for (uint32_t k = 0; k < from->frame_count; k++) {
                        const struct scan_frame *s = &from->frames[from->frame_count - 1 - k];
                        const struct query_frame *f = &t.items[l.frames[l.first[i] + k]];

                        ck_assert_str_eq(f->function, s->function);
                        ck_assert_int_eq(f->kind, s->inlined ? FRAME_INLINED : FRAME_NATIVE);
                        ck_assert_int_eq(l.lines[l.first[i] + k], s->line);
                        snprintf(short_name, sizeof short_name, "%.*s", (int)strcspn(s->function, "("), s->function);
                        ck_assert_str_eq(f->short_name, short_name);
                }
                if (!from->frame_count) {
                        snprintf(address, sizeof address, "0x%x [a]", (unsigned)from->address);
                        ck_assert_str_eq(t.items[l.frames[l.first[i]]].function, address);
                        ck_assert_str_eq(t.items[l.frames[l.first[i]]].short_name, address);
                }
        }
        location_frames_deinit(&l);
}
END_TEST

/* A location of a foreign writer may have more frames than one slice. */
START_TEST(a_location_may_be_longer_than_a_slice)
{
        static struct scan_frame many[300000];
        struct scan_location long_ones[] = {
                { .mapping = "", .state = "resolved", .frames = many, .frame_count = 300000 },
                { .mapping = "", .state = "resolved", .frames = many + 1, .frame_count = 299999 }
        };
        const struct scan_stacks stacks = { .locations = long_ones, .location_count = 2 };
        _cleanup_frame_table_ struct frame_table t;
        struct location_frames l;

        for (uint32_t i = 0; i < 300000; i++)
                many[i] = (struct scan_frame){ .function = "f", .linkage_name = "f", .file = "", .line = i };
        build_frames(&t, &stacks, &l);
        ck_assert_uint_eq(t.count, 1);
        ck_assert_uint_eq(l.end[1], 599999);
        ck_assert_int_eq(l.lines[0], 299999);
        ck_assert_int_eq(l.lines[599998], 1);
        location_frames_deinit(&l);
}
END_TEST

/* The definition of a row of top_build(), computed entry by entry. */
static void add_entry(struct top_row *rows, const struct frame_table *t, const struct merged_profile *m, uint32_t entry,
                      uint8_t *seen)
{
        const struct location_frames *l = &m->locations;
        int64_t value = m->entries[entry].value;
        bool leaf = true;

        memset(seen, 0, t->name_count);
        for (size_t j = first[m->entries[entry].stack]; j < first[m->entries[entry].stack + 1]; j++) {
                for (uint32_t k = l->end[indexes[j]]; k-- > l->first[indexes[j]];) {
                        uint32_t name = t->items[l->frames[k]].name;

                        rows[name].frame = name;
                        rows[name].flat[0] += leaf ? value : 0;
                        leaf = false;
                        rows[name].cumulative[0] += seen[name] ? 0 : value;
                        seen[name] = 1;
                }
        }
}

START_TEST(rows_are_sums_of_their_entries)
{
        const struct scan_stacks stacks = make_many_stacks();
        _cleanup_frame_table_ struct frame_table t;
        struct merged_profile m = { .entries = entries, .count = STACKS, .stacks = &stacks };
        struct top_row *expected;
        uint8_t *seen;
        struct top top;
        struct error err;

        build_frames(&t, &stacks, &m.locations);
        expected = calloc(t.name_count, sizeof *expected);
        seen = calloc(t.name_count, 1);
        ck_assert(expected && seen);
        for (uint32_t i = 0; i < STACKS; i++) {
                entries[i] = (struct merged_entry){ .stack = i, .value = pick(i, 1000) };
                add_entry(expected, &t, &m, i, seen);
        }
        ck_assert_int_eq(
                top_build(&t, (struct top_side[2]){ top_side_of_all(&m) }, &(struct top_order){ 0 }, &top, &err),
                ST_OK);
        ck_assert_uint_eq(top.count, t.name_count);
        for (size_t i = 0; i < top.count; i++) {
                const struct top_row *row = &top.rows[i], *want = &expected[t.items[row->frame].name];

                ck_assert_int_eq(row->flat[0], want->flat[0]);
                ck_assert_int_eq(row->cumulative[0], want->cumulative[0]);
                ck_assert(i == 0 || row->flat[0] <= top.rows[i - 1].flat[0]);
        }
        top_deinit(&top);
        location_frames_deinit(&m.locations);
        free(expected);
        free(seen);
}
END_TEST

START_TEST(rows_are_written_in_their_order)
{
        const struct scan_stacks stacks = make_many_stacks();
        const struct top_form form = { 0 };
        _cleanup_frame_table_ struct frame_table t;
        _cleanup_buf_ struct buf whole, single;
        struct location_frames l;
        struct json_out a, b;
        struct top top = { .rows = calloc(LOCATIONS, sizeof *top.rows), .count = LOCATIONS };

        ck_assert_ptr_nonnull(top.rows);
        build_frames(&t, &stacks, &l);
        buf_init(&whole, MiB(256));
        buf_init(&single, MiB(256));
        json_out_init(&a, &whole);
        json_out_init(&b, &single);
        json_out_array(&a, NULL);
        json_out_array(&b, NULL);
        for (uint32_t i = 0; i < LOCATIONS; i++)
                top.rows[i] = (struct top_row){ .frame = pick(i, t.count), .flat = { i } };
        for (uint32_t i = 0; i < LOCATIONS; i += FUNCTIONS) {
                const struct top some = { .rows = &top.rows[i], .count = FUNCTIONS };

                top_put_rows(&some, &t, &form, NULL, NULL, &b);
        }
        top_put_rows(&top, &t, &form, NULL, NULL, &a);
        ck_assert_int_eq(buf_status(&whole, NULL, ""), ST_OK);
        ck_assert_uint_eq(whole.size, single.size);
        ck_assert_int_eq(memcmp(whole.data, single.data, whole.size), 0);
        top_deinit(&top);
        location_frames_deinit(&l);
}
END_TEST

START_TEST(rows_beyond_the_size_of_an_answer_fail)
{
        const struct scan_stacks stacks = make_many_stacks();
        const struct top_form form = { 0 };
        _cleanup_frame_table_ struct frame_table t;
        _cleanup_buf_ struct buf text;
        struct location_frames l;
        struct json_out j;
        struct top top = { .rows = calloc(LOCATIONS, sizeof *top.rows), .count = LOCATIONS };

        ck_assert_ptr_nonnull(top.rows);
        build_frames(&t, &stacks, &l);
        buf_init(&text, MiB(1));
        json_out_init(&j, &text);
        top_put_rows(&top, &t, &form, NULL, NULL, &j);
        ck_assert_int_eq(buf_status(&text, NULL, ""), ST_TOO_BIG);
        top_deinit(&top);
        location_frames_deinit(&l);
}
END_TEST

TEST_SUITE("threads_query", each_location_has_its_frames, a_location_may_be_longer_than_a_slice,
           rows_are_sums_of_their_entries, rows_are_written_in_their_order, rows_beyond_the_size_of_an_answer_fail)
