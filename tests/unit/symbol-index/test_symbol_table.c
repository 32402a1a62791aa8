/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "symbol-index/symbol_table.h"
#include "tests/support/suite.h"

static struct symbol_segment segments[] = { { .file_offset = 0x1000, .file_size = 0x2000, .address = 0x401000 } };
static struct symbol_range ranges[] = { { 0x401000, 0x401010, 0 },
                                        { 0x401010, 0x401020, 1 },
                                        { 0x402000, 0x402001, 0 } };
static struct symbol_chain chains[] = { { 0, 1 }, { 1, 2 } };
static struct symbol_table_frame frames[] = { { 0, 6, 10 }, { SYMBOL_NO_FUNCTION, 6, 11 }, { 0, 0, 0 } };
static struct symbol_function functions[] = { { 0, 1, 6, 9 } };
static char strings[] = "\0main\0a.c\0half of it"; /* includes the literal's NUL */

static struct symbol_table make_sample_table(void)
{
        struct symbol_table t = { .quality = QUALITY_DWARF };

        ck_assert(build_id_from_bytes(&t.build_id, "0123456789abcdefghij", 20));
        t.segments = segments;
        t.segment_count = 1;
        t.ranges = ranges;
        t.range_count = 3;
        t.chains = chains;
        t.chain_count = 2;
        t.frames = frames;
        t.frame_count = 3;
        t.functions = functions;
        t.function_count = 1;
        t.strings = strings;
        t.string_bytes = sizeof strings;
        t.partial = 10;
        return t;
}

static int write_table(const struct symbol_table *t)
{
        int fd = memfd_create("symbol-table", MFD_CLOEXEC);

        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(symbol_table_write(t, fd, NULL), ST_OK);
        return fd;
}

START_TEST(written_table_round_trips)
{
        struct symbol_table t = make_sample_table(), back;
        struct error err;
        _cleanup_close_ int fd = write_table(&t);

        ck_assert_msg(symbol_table_read(fd, "t", &back, &err) == ST_OK, "%s", err.text);
        ck_assert(build_id_equal(&back.build_id, &t.build_id));
        ck_assert_int_eq(back.quality, QUALITY_DWARF);
        ck_assert_uint_eq(back.segments[0].address, 0x401000);
        ck_assert_uint_eq(back.range_count, 3);
        ck_assert_uint_eq(back.ranges[1].end, 0x401020);
        ck_assert_uint_eq(back.chains[1].frame_count, 2);
        ck_assert_uint_eq(back.frames[1].function, SYMBOL_NO_FUNCTION);
        ck_assert_str_eq(back.strings + back.functions[0].name, "main");
        ck_assert_str_eq(back.strings + back.frames[0].file, "a.c");
        ck_assert_uint_eq(symbol_table_start_line(&back, &back.frames[0]), 9);
        ck_assert_uint_eq(symbol_table_start_line(&back, &back.frames[1]), 0); /* no function */
        ck_assert_uint_eq(symbol_table_start_line(&back, &back.frames[2]),
                          0); /* in another file than its declaration */
        ck_assert_str_eq(symbol_table_partial_text(&back), "half of it");
        symbol_table_deinit(&back);
}
END_TEST

START_TEST(every_flipped_byte_is_detected)
{
        struct symbol_table t = make_sample_table(), back = { 0 };
        _cleanup_close_ int fd = write_table(&t);
        off_t size = lseek(fd, 0, SEEK_END);

        for (off_t i = 0; i < size; i++) {
                uint8_t byte;
                enum status st;

                ck_assert_int_eq(pread(fd, &byte, 1, i), 1);
                byte ^= 0x20;
                ck_assert_int_eq(pwrite(fd, &byte, 1, i), 1);
                st = symbol_table_read(fd, "t", &back, NULL);
                ck_assert_msg(st == ST_BAD_DATA || st == ST_UNSUPPORTED, "byte %d: %d", (int)i, st);
                ck_assert_ptr_null(back.ranges);
                byte ^= 0x20;
                ck_assert_int_eq(pwrite(fd, &byte, 1, i), 1);
        }
}
END_TEST

START_TEST(every_shorter_file_is_refused)
{
        struct symbol_table t = make_sample_table(), back;
        _cleanup_close_ int fd = write_table(&t);

        for (off_t size = lseek(fd, 0, SEEK_END) - 1; size >= 0; size--) {
                ck_assert_int_eq(ftruncate(fd, size), 0);
                ck_assert_int_eq(symbol_table_read(fd, "t", &back, NULL), ST_BAD_DATA);
        }
}
END_TEST

/* Checksums do not protect against malicious writers: invariants are tested separately. */
static void assert_refused(struct symbol_table *t, const char *text)
{
        struct symbol_table back;
        struct error err;
        _cleanup_close_ int fd = write_table(t);

        ck_assert_int_eq(symbol_table_read(fd, "t", &back, &err), ST_BAD_DATA);
        ck_assert_msg(strstr(err.text, text), "%s", err.text);
}

START_TEST(overlapping_ranges_are_refused)
{
        struct symbol_range bad[] = { { 0x10, 0x20, 0 }, { 0x1f, 0x30, 0 } };
        struct symbol_table t = make_sample_table();

        t.ranges = bad;
        t.range_count = 2;
        assert_refused(&t, "out of order");
}
END_TEST

START_TEST(an_empty_range_is_refused)
{
        struct symbol_range bad[] = { { 0x10, 0x10, 0 } };
        struct symbol_table t = make_sample_table();

        t.ranges = bad;
        t.range_count = 1;
        assert_refused(&t, "empty");
}
END_TEST

START_TEST(a_chain_past_the_frames_is_refused)
{
        struct symbol_chain bad[] = { { 0, 1 }, { 2, UINT32_MAX } };
        struct symbol_table t = make_sample_table();

        t.chains = bad;
        assert_refused(&t, "outside the frames");
}
END_TEST

START_TEST(a_chain_without_frames_is_refused)
{
        struct symbol_chain bad[] = { { 0, 1 }, { 1, 0 } };
        struct symbol_table t = make_sample_table();

        t.chains = bad;
        assert_refused(&t, "outside the frames");
}
END_TEST

START_TEST(a_range_without_its_chain_is_refused)
{
        struct symbol_range bad[] = { { 0x10, 0x20, 2 } };
        struct symbol_table t = make_sample_table();

        t.ranges = bad;
        t.range_count = 1;
        assert_refused(&t, "no chain");
}
END_TEST

START_TEST(a_frame_without_its_function_is_refused)
{
        struct symbol_table_frame bad[] = { { 1, 0, 0 }, { 0, 0, 0 }, { 0, 0, 0 } };
        struct symbol_table t = make_sample_table();

        t.frames = bad;
        assert_refused(&t, "no function");
}
END_TEST

START_TEST(a_string_past_the_end_is_refused)
{
        struct symbol_function bad[] = { { sizeof strings, 0, 0, 0 } }, bad_file[] = { { 0, 1, sizeof strings, 1 } };
        struct symbol_table t = make_sample_table();

        t.functions = bad;
        assert_refused(&t, "its name outside the strings");
        t.functions = bad_file;
        assert_refused(&t, "its file outside the strings");
}
END_TEST

START_TEST(missing_parts_are_described_in_one_line)
{
        static char two_lines[] = "\0two\nlines";
        struct symbol_table t = make_sample_table();

        t.partial = t.string_bytes;
        ck_assert_int_eq(symbol_table_check(&t, NULL), ST_BAD_DATA);
        t.partial = 0;
        ck_assert_str_eq(symbol_table_partial_text(&t), "");
        t.range_count = t.chain_count = t.frame_count = t.function_count = 0;
        t.strings = two_lines;
        t.string_bytes = sizeof two_lines;
        ck_assert_int_eq(symbol_table_check(&t, NULL), ST_OK);
        t.partial = 1;
        ck_assert_int_eq(symbol_table_check(&t, NULL), ST_BAD_DATA);
}
END_TEST

START_TEST(an_unterminated_last_string_is_refused)
{
        struct symbol_table t = make_sample_table();

        t.string_bytes--;
        assert_refused(&t, "NUL");
}
END_TEST

START_TEST(find_returns_covering_range_or_none)
{
        struct symbol_table t = make_sample_table();

        ck_assert_ptr_null(symbol_table_find(&t, 0x400fff));
        ck_assert_ptr_eq(symbol_table_find(&t, 0x401000), &ranges[0]);
        ck_assert_ptr_eq(symbol_table_find(&t, 0x40100f), &ranges[0]);
        ck_assert_ptr_eq(symbol_table_find(&t, 0x401010), &ranges[1]);
        ck_assert_ptr_null(symbol_table_find(&t, 0x401020));
        ck_assert_ptr_eq(symbol_table_find(&t, 0x402000), &ranges[2]);
        ck_assert_ptr_null(symbol_table_find(&t, 0x402001));
        ck_assert_ptr_null(symbol_table_find(&t, UINT64_MAX));
}
END_TEST

TEST_SUITE("symbol_table", written_table_round_trips, every_flipped_byte_is_detected, every_shorter_file_is_refused,
           overlapping_ranges_are_refused, an_empty_range_is_refused, a_chain_past_the_frames_is_refused,
           a_chain_without_frames_is_refused, a_range_without_its_chain_is_refused,
           a_frame_without_its_function_is_refused, a_string_past_the_end_is_refused,
           missing_parts_are_described_in_one_line, an_unterminated_last_string_is_refused,
           find_returns_covering_range_or_none)
