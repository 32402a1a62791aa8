/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <dirent.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "symbolizer/formats/portable_symbols.h"
#include "tests/support/compare_tables.h"
#include "tests/support/portable_symbols_fix.h"
#include "tests/support/random_table.h"
#include "tests/support/suite.h"

static const struct build_id no_id;

static struct symbol_table make_sample_table(uint32_t ranges)
{
        return random_table(&(struct random_table_spec){ .seed = 7,
                                                         .range_count = ranges,
                                                         .function_count = 40,
                                                         .file_count = 9,
                                                         .base = 0xffffffff81000000,
                                                         .version = 3,
                                                         .quality = QUALITY_LINES });
}

static int write_table(const struct symbol_table *t)
{
        int fd = portable_symbols_make_file(NULL, 0);
        struct error err;

        ck_assert_msg(portable_symbols_write(t, &no_id, fd, &err) == ST_OK, "%s", err.text);
        return fd;
}

static void report_difference(void *context, const struct table_difference *d)
{
        (void)context;
        ck_abort_msg("differs at 0x%llx", (unsigned long long)d->start);
}

START_TEST(table_round_trips_with_equal_lookups)
{
        struct symbol_table t = make_sample_table(60000), back; /* more than one chunk */
        _cleanup_close_ int fd = write_table(&t);
        struct error err;

        ck_assert_msg(portable_symbols_read(fd, "s", &back, NULL, &err) == ST_OK, "%s", err.text);
        ck_assert_uint_eq(compare_tables(&t, &back, report_difference, NULL), 0);
        ck_assert_uint_eq(back.range_count, t.range_count);
        ck_assert_int_eq(back.quality, QUALITY_LINES);
        ck_assert(build_id_equal(&back.build_id, &t.build_id));
        ck_assert(back.is_complete);
        symbol_table_deinit(&back);
        symbol_table_deinit(&t);
}
END_TEST

START_TEST(other_fields_round_trip)
{
        static char strings[] = "\0half of it";
        struct symbol_segment segments[] = { { 0x1000, 0x2000, UINT64_MAX } };
        struct symbol_range ranges[] = { { 0, UINT64_MAX, 0 } };
        struct symbol_chain chains[] = { { 0, 1 } };
        struct symbol_table_frame frames[] = { { SYMBOL_NO_FUNCTION, 0, UINT32_MAX } };
        struct symbol_table t = { .quality = QUALITY_DYNSYM,
                                  .strings = strings,
                                  .string_bytes = sizeof strings,
                                  .partial = 1,
                                  .segments = segments,
                                  .segment_count = 1,
                                  .ranges = ranges,
                                  .range_count = 1,
                                  .chains = chains,
                                  .chain_count = 1,
                                  .frames = frames,
                                  .frame_count = 1 };
        _cleanup_close_ int fd = portable_symbols_make_file(NULL, 0);
        struct symbol_table back;
        struct build_id go_id, go_id_back;

        ck_assert(build_id_from_bytes(&go_id, "abcdefghijabcdefghij", 20));
        ck_assert_int_eq(portable_symbols_write(&t, &go_id, fd, NULL), ST_OK);
        ck_assert_int_eq(portable_symbols_read(fd, "s", &back, &go_id_back, NULL), ST_OK);
        ck_assert(build_id_equal(&go_id, &go_id_back));
        ck_assert_uint_eq(back.build_id.size, 0);
        ck_assert_uint_eq(back.segments[0].address, UINT64_MAX);
        ck_assert_uint_eq(back.ranges[0].end, UINT64_MAX);
        ck_assert_uint_eq(back.frames[0].function, SYMBOL_NO_FUNCTION);
        ck_assert_uint_eq(back.frames[0].line, UINT32_MAX);
        ck_assert_str_eq(symbol_table_partial_text(&back), "half of it");
        symbol_table_deinit(&back);
}
END_TEST

/* The position of chains among the frames is up to the writer: they may share frames and come in any order. */
START_TEST(chains_that_share_frames_round_trip)
{
        struct symbol_table t = make_sample_table(50), back;
        _cleanup_close_ int fd = -1;

        t.chains[0] = t.chains[t.chain_count - 1];
        fd = write_table(&t);
        ck_assert_int_eq(portable_symbols_read(fd, "s", &back, NULL, NULL), ST_OK);
        ck_assert_uint_eq(compare_tables(&t, &back, report_difference, NULL), 0);
        symbol_table_deinit(&back);
        symbol_table_deinit(&t);
}
END_TEST

START_TEST(every_flipped_byte_is_detected)
{
        struct symbol_table t = make_sample_table(30), back = { 0 };
        _cleanup_close_ int fd = write_table(&t);
        off_t size = lseek(fd, 0, SEEK_END);

        for (off_t i = 0; i < size; i++) {
                uint8_t byte;
                enum status st;

                ck_assert_int_eq(pread(fd, &byte, 1, i), 1);
                byte ^= 0x20;
                ck_assert_int_eq(pwrite(fd, &byte, 1, i), 1);
                st = portable_symbols_read(fd, "s", &back, NULL, NULL);
                ck_assert_msg(st == ST_BAD_DATA || st == ST_UNSUPPORTED, "byte %d: %d", (int)i, st);
                ck_assert_ptr_null(back.ranges);
                byte ^= 0x20;
                ck_assert_int_eq(pwrite(fd, &byte, 1, i), 1);
        }
        symbol_table_deinit(&t);
}
END_TEST

START_TEST(every_shorter_and_longer_file_is_refused)
{
        struct symbol_table t = make_sample_table(30), back;
        _cleanup_close_ int fd = write_table(&t);
        off_t whole = lseek(fd, 0, SEEK_END);

        for (off_t size = whole + 1; size >= 0; size--) {
                ck_assert_int_eq(ftruncate(fd, size), 0);
                if (size != whole)
                        ck_assert_int_eq(portable_symbols_read(fd, "s", &back, NULL, NULL), ST_BAD_DATA);
        }
        symbol_table_deinit(&t);
}
END_TEST

/*
 * The same with corrected checksums, as from a malicious writer: the file is read or refused, and a table that is read
 * keeps its invariants.
 */
START_TEST(forged_byte_gives_valid_table_or_error)
{
        struct symbol_table t = make_sample_table(30), back;
        _cleanup_close_ int fd = write_table(&t);
        size_t size = (size_t)lseek(fd, 0, SEEK_END);
        uint8_t *file = malloc(size);

        ck_assert_int_eq(pread(fd, file, size, 0), size);
        for (size_t i = 0; i < size; i++) {
                for (int bit = 0; bit < 8; bit += 3) {
                        _cleanup_close_ int forged = -1;

                        file[i] ^= (uint8_t)(1 << bit);
                        portable_symbols_fix_checksums(file, size);
                        forged = portable_symbols_make_file(file, size);
                        if (portable_symbols_read(forged, "s", &back, NULL, NULL) == ST_OK) {
                                ck_assert_int_eq(symbol_table_check(&back, NULL), ST_OK);
                                symbol_table_deinit(&back);
                        }
                        file[i] ^= (uint8_t)(1 << bit);
                }
        }
        free(file);
        symbol_table_deinit(&t);
}
END_TEST

START_TEST(file_over_the_limit_is_refused_unread)
{
        _cleanup_close_ int fd = portable_symbols_make_file(NULL, 0);
        struct symbol_table back;

        ck_assert_int_eq(ftruncate(fd, (off_t)LIMIT_SYMBOL_FILE_BYTES + 1), 0);
        ck_assert_int_eq(portable_symbols_read(fd, "s", &back, NULL, NULL), ST_TOO_BIG);
}
END_TEST

static unsigned replay(const char *dir, bool is_good)
{
        _cleanup_closedir_ DIR *d = opendir(dir);
        struct dirent *e;
        unsigned count = 0;

        ck_assert_ptr_nonnull(d);
        while ((e = readdir(d))) {
                _cleanup_free_ char *path = path_join(dir, e->d_name);
                _cleanup_close_ int fd = -1;
                _cleanup_buf_ struct buf b;
                struct symbol_table t;
                enum status st;

                buf_init(&b, MiB(1));
                if (e->d_name[0] == '.')
                        continue;
                ck_assert_int_eq(file_read(path, &b, NULL), ST_OK);
                portable_symbols_fix_checksums(b.data, b.size);
                fd = portable_symbols_make_file(b.data, b.size);
                st = portable_symbols_read(fd, path, &t, NULL, NULL);
                ck_assert_msg((st == ST_OK) == is_good, "%s: %d", path, st);
                if (!st)
                        symbol_table_deinit(&t);
                count++;
        }
        return count;
}

static uint32_t read_start_line(const char *path)
{
        _cleanup_close_ int fd = -1;
        _cleanup_buf_ struct buf b;
        struct symbol_table t;
        uint32_t line;

        buf_init(&b, MiB(1));
        ck_assert_int_eq(file_read(path, &b, NULL), ST_OK);
        portable_symbols_fix_checksums(b.data, b.size);
        fd = portable_symbols_make_file(b.data, b.size);
        ck_assert_int_eq(portable_symbols_read(fd, path, &t, NULL, NULL), ST_OK);
        ck_assert_str_eq(t.strings + t.functions[0].name, "main");
        ck_assert_uint_eq(t.frames[0].line, 3);
        line = symbol_table_start_line(&t, &t.frames[0]);
        symbol_table_deinit(&t);
        return line;
}

START_TEST(start_lines_of_declarations_are_read)
{
        ck_assert_uint_eq(read_start_line("tests/corpus/portable_symbols/good/two-ranges"), 2);
}
END_TEST

START_TEST(good_corpus_files_are_read_and_bad_ones_refused)
{
        ck_assert_uint_eq(replay("tests/corpus/portable_symbols/good", true), 6);
        ck_assert_uint_ge(replay("tests/corpus/portable_symbols/bad", false), 30);
}
END_TEST

TEST_SUITE("portable_symbols", table_round_trips_with_equal_lookups, other_fields_round_trip,
           chains_that_share_frames_round_trip, every_flipped_byte_is_detected,
           every_shorter_and_longer_file_is_refused, forged_byte_gives_valid_table_or_error,
           file_over_the_limit_is_refused_unread, start_lines_of_declarations_are_read,
           good_corpus_files_are_read_and_bad_ones_refused)
