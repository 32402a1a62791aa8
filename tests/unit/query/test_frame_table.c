/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of scans are numbered by function, file and kind, their names by function and file. */
#include <string.h>

#include "query/engine/location_frames.h"
#include "tests/support/suite.h"

static struct scan_frame make_frame(const char *function, const char *file, bool inlined)
{
        return (struct scan_frame){ .function = function, .linkage_name = function, .file = file, .inlined = inlined };
}

static struct scan_location make_location(const struct scan_frame *frames, uint32_t count, bool is_kernel)
{
        return (struct scan_location){ .mapping = "/lib/a.so",
                                       .state = "resolved",
                                       .frames = frames,
                                       .frame_count = count,
                                       .is_kernel = is_kernel };
}

static void build(struct frame_table *t, struct scan_location *locations, size_t count, struct location_frames *ret)
{
        const struct scan_stacks stacks = { .locations = locations, .location_count = count };
        struct error err;

        ck_assert_int_eq(location_frames_build(t, &stacks, ret, &err), ST_OK);
}

START_TEST(kinds_of_one_function_share_its_name)
{
        _cleanup_frame_table_ struct frame_table t;
        const struct scan_frame native[] = { make_frame("f", "f.c", false) },
                                inlined[] = { make_frame("f", "f.c", true) },
                                elsewhere[] = { make_frame("f", "g.c", false) };
        struct scan_location locations[] = { make_location(native, 1, false), make_location(inlined, 1, false),
                                             make_location(native, 1, true), make_location(elsewhere, 1, false) };
        struct location_frames l, again;

        frame_table_init(&t, NULL);
        build(&t, locations, 4, &l);
        build(&t, locations, 4, &again);
        ck_assert_uint_eq(t.count, 4);
        ck_assert_uint_eq(t.name_count, 2);
        for (uint32_t i = 0; i < 4; i++) {
                ck_assert_uint_eq(l.frames[l.first[i]], i);
                ck_assert_uint_eq(again.frames[again.first[i]], i);
                ck_assert_uint_eq(t.items[i].name, i == 3);
        }
        ck_assert_int_eq(t.items[0].kind, FRAME_NATIVE);
        ck_assert_int_eq(t.items[1].kind, FRAME_INLINED);
        ck_assert_int_eq(t.items[2].kind, FRAME_KERNEL);
        location_frames_deinit(&l);
        location_frames_deinit(&again);
}
END_TEST

/* The texts of a scan are freed at its end, and those of the next scan may be at the same addresses. */
START_TEST(texts_of_different_scans_are_not_confused)
{
        _cleanup_frame_table_ struct frame_table t;
        char file[] = "a.c", mapping[] = "/lib/a.so";
        const struct scan_frame first[] = { make_frame("f", file, false) }, second[] = { make_frame("g", file, false) };
        struct scan_location location = make_location(first, 1, false);
        struct location_frames l;

        location.mapping = mapping;
        frame_table_init(&t, NULL);
        build(&t, &location, 1, &l);
        location_frames_deinit(&l);
        file[0] = 'b';
        mapping[5] = 'b';
        location.frames = second;
        build(&t, &location, 1, &l);
        location_frames_deinit(&l);
        ck_assert_str_eq(t.items[0].file, "a.c");
        ck_assert_str_eq(t.items[0].mapping, "/lib/a.so");
        ck_assert_str_eq(t.items[1].file, "b.c");
        ck_assert_str_eq(t.items[1].mapping, "/lib/b.so");
}
END_TEST

TEST_SUITE("frame_table", kinds_of_one_function_share_its_name, texts_of_different_scans_are_not_confused)
