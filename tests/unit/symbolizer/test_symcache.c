/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "symbolizer/formats/symcache.h"
#include "tests/support/symcache_walk.h"
#include "tests/support/random_table.h"
#include "tests/support/suite.h"

#define BASE 0x401000

static struct symbol_table make_table(uint32_t range_count, uint32_t function_count)
{
        const struct random_table_spec spec = { .seed = 7,
                                                .range_count = range_count,
                                                .function_count = function_count,
                                                .file_count = 40,
                                                .base = BASE,
                                                .quality = QUALITY_DWARF };
        struct symbol_table t = random_table(&spec);

        t.is_complete = true;
        return t;
}

static int write_symcache(const struct symbol_table *t)
{
        int fd = symcache_make_file(NULL, 0);
        struct error err;

        ck_assert_msg(symcache_write(t, fd, &err) == ST_OK, "%s", err.text);
        return fd;
}

static struct symcache open_symcache(int fd)
{
        struct symcache b;
        struct error err;

        ck_assert_msg(symcache_open(fd, "b", &b, &err) == ST_OK, "%s", err.text);
        return b;
}

/* The bytes of a table's symcache. */
static uint8_t *get_symcache_bytes(const struct symbol_table *t, size_t *size_ret)
{
        _cleanup_close_ int fd = write_symcache(t);
        off_t size = lseek(fd, 0, SEEK_END);
        uint8_t *bytes = malloc((size_t)size);

        ck_assert_ptr_nonnull(bytes);
        ck_assert_int_eq(pread(fd, bytes, (size_t)size, 0), size);
        *size_ret = (size_t)size;
        return bytes;
}

/* Open a possibly damaged symcache and read it. @return the status of opening, otherwise of reading. */
static enum status read_symcache(const uint8_t *bytes, size_t size)
{
        _cleanup_close_ int fd = symcache_make_file(bytes, size);
        _cleanup_free_ uint8_t *copy = NULL;
        struct symcache b;
        enum status st = symcache_open(fd, "b", &b, NULL);

        if (st)
                return st;
        symcache_move_to_heap(&b, &copy);
        st = symcache_walk(&b);
        symcache_close(&b);
        return st;
}

/* libcheck writes each of its assertions to a file: long loops use SYMCACHE_CHECK instead. */
static void compare_lookups(const struct symbol_table *t, size_t batch)
{
        _cleanup_close_ int fd = write_symcache(t);
        struct symcache b = open_symcache(fd);
        uint64_t start = t->ranges[0].start - 3, end = t->ranges[t->range_count - 1].end + 3;
        _cleanup_free_ uint64_t *addresses = calloc(batch, sizeof *addresses);
        _cleanup_free_ uint32_t *found = calloc(batch, sizeof *found);

        for (; start < end; start += batch) {
                for (size_t i = 0; i < batch; i++)
                        addresses[i] = start + i;
                SYMCACHE_CHECK(symcache_find(&b, addresses, batch, found, NULL) == ST_OK);
                for (size_t i = 0; i < batch; i++)
                        symcache_check_lookup(&b, found[i], t, addresses[i]);
        }
        symcache_close(&b);
}

START_TEST(lookups_agree_with_table)
{
        struct symbol_table t = make_table(700, 100);

        compare_lookups(&t, 1);
        compare_lookups(&t, SYMCACHE_LOOKUP_BATCH);
        compare_lookups(&t, 2 * SYMCACHE_LOOKUP_BATCH + 1);
        symbol_table_deinit(&t);
}
END_TEST

START_TEST(lookups_over_many_chunks_agree_with_table)
{
        struct symbol_table t = make_table(5000, 3000);

        compare_lookups(&t, 100);
        symbol_table_deinit(&t);
}
END_TEST

static struct symbol_range far_apart[] = { { 0, 1, 0 }, { 0x1000, 0x1001, 1 }, { UINT64_MAX - 1, UINT64_MAX, 0 } };
static struct symbol_chain chains[] = { { 0, 1 }, { 1, 2 } };
static struct symbol_table_frame frames[] = { { SYMBOL_NO_FUNCTION, 0, 0 }, { 0, 0, 11 }, { 1, 5, 7 } };
static struct symbol_function functions[] = { { 1, 0, 0, 0 }, { 0, 9, 0, 0 } };
static char strings[] = "\0_Z1fv\0g\0.c\0half of it";
static struct symbol_segment segments[] = { { .file_size = 0x2000, .address = 0 } };

static struct symbol_table make_sample_table(void)
{
        return (struct symbol_table){
                .build_id = random_build_id(1),
                .quality = QUALITY_SYMTAB,
                .is_complete = true,
                .partial = 12,
                .segments = segments,
                .segment_count = 1,
                .ranges = far_apart,
                .range_count = 3,
                .chains = chains,
                .chain_count = 2,
                .frames = frames,
                .frame_count = 3,
                .functions = functions,
                .function_count = 2,
                .strings = strings,
                .string_bytes = sizeof strings,
        };
}

START_TEST(ranges_may_start_and_end_at_extreme_addresses)
{
        const uint64_t addresses[] = { 0, 1, 0xfff, 0x1000, 0x1001, UINT64_MAX - 2, UINT64_MAX - 1, UINT64_MAX };
        struct symbol_table t = make_sample_table();
        _cleanup_close_ int fd = write_symcache(&t);
        struct symcache b = open_symcache(fd);
        uint32_t found[8];

        ck_assert_int_eq(symcache_find(&b, addresses, 8, found, NULL), ST_OK);
        for (size_t i = 0; i < 8; i++)
                symcache_check_lookup(&b, found[i], &t, addresses[i]);
        ck_assert_uint_ne(found[0], 0);
        ck_assert_uint_eq(found[7], 0);
        symcache_close(&b);
}
END_TEST

START_TEST(names_are_stored_demangled)
{
        const uint64_t address = 0x1000;
        struct symbol_table t = make_sample_table();
        _cleanup_close_ int fd = write_symcache(&t);
        struct symcache b = open_symcache(fd);
        struct symcache_text readable, linkage;
        struct symcache_frame f;
        uint32_t found;

        ck_assert_int_eq(symcache_find(&b, &address, 1, &found, NULL), ST_OK);
        ck_assert_int_eq(symcache_get_frame(&b, found, &f, NULL), ST_OK);
        ck_assert_int_eq(symcache_get_names(&b, f.function, &readable, &linkage, NULL), ST_OK);
        ck_assert_str_eq(readable.data, "f()");
        ck_assert_str_eq(linkage.data, "_Z1fv");
        symcache_close(&b);
}
END_TEST

/* A function's two names share the mark; it is the same at each access. */
/* Nodes have the position of their frame and the declaration of its function. */
START_TEST(details_are_stored_per_frame)
{
        struct symbol_table t = make_table(500, 50);
        uint32_t first;

        t.has_positions = true;
        t.position_count = t.frame_count;
        t.positions = calloc(t.position_count, sizeof *t.positions);
        ck_assert_ptr_nonnull(t.positions);
        for (uint32_t i = 0; i < t.frame_count; i++) {
                t.positions[i] = (struct symbol_position){ { t.frames[i].line, i % 7, i % 3 },
                                                           i % 5 ? 0x1000 + i % 5 : UINT64_MAX };
                t.frames[i].line = i;
        }
        t.functions[0].file = t.frames[0].file;
        t.functions[0].start_line = 77;

        _cleanup_close_ int fd = write_symcache(&t);
        struct symcache b = open_symcache(fd);

        for (uint32_t r = 0; r < t.range_count; r++) {
                const struct symbol_chain *c = &t.chains[t.ranges[r].chain];
                const struct symbol_table_frame *f = &t.frames[c->first_frame];
                const struct symbol_position *p = &t.positions[f->line];
                struct symcache_frame_detail detail;
                struct symcache_frame got;
                struct symcache_text path;

                ck_assert_int_eq(symcache_find(&b, &t.ranges[r].start, 1, &first, NULL), ST_OK);
                SYMCACHE_CHECK(symcache_get_frame(&b, first, &got, NULL) == ST_OK);
                SYMCACHE_CHECK(symcache_get_detail(&b, first, &detail, NULL) == ST_OK);
                SYMCACHE_CHECK(got.line == p->place.line && detail.column == p->place.column);
                SYMCACHE_CHECK(detail.discriminator == p->place.discriminator && detail.entry == p->entry);
                if (f->function != 0)
                        continue;
                SYMCACHE_CHECK(detail.start_line == 77);
                SYMCACHE_CHECK(symcache_get_path(&b, detail.start_file, &path, NULL) == ST_OK);
                SYMCACHE_CHECK(strcmp(path.data, t.strings + t.functions[0].file) == 0);
        }
        SYMCACHE_CHECK(symcache_walk(&b) == ST_OK);
        symcache_close(&b);
        symbol_table_deinit(&t);
}
END_TEST

START_TEST(texts_are_marked_as_plain)
{
        static const struct {
                const char *linkage_name, *name;
                bool is_plain;
        } cases[] = { { "_Z1fv", "", true },        { "", "plain name", true },
                      { "", "a\x1b[2J", false },    { "_Z1gv\xe2\x80\xae", "", false },
                      { "", "caf\xc3\xa9", false }, { "", "operator\"\"", false } };

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                struct symbol_table t = make_sample_table();
                struct symbol_function one[] = { { 1, 0, 0, 0 }, { 0, 41, 0, 0 } };
                char texts[64] = { 0 };
                struct symcache b;
                int fd;

                snprintf(texts + 1, 40, "%s", cases[i].linkage_name);
                snprintf(texts + 41, 23, "%s", cases[i].name);
                t.partial = 0;
                t.strings = texts;
                t.string_bytes = sizeof texts;
                t.functions = one;
                frames[1].function = *cases[i].linkage_name ? 0 : 1;
                fd = write_symcache(&t);
                b = open_symcache(fd);
                for (int again = 0; again < 2; again++) {
                        const uint64_t address = 0x1000;
                        struct symcache_text readable, linkage;
                        struct symcache_frame f;
                        uint32_t found;

                        ck_assert_int_eq(symcache_find(&b, &address, 1, &found, NULL), ST_OK);
                        ck_assert_int_eq(symcache_get_frame(&b, found, &f, NULL), ST_OK);
                        ck_assert_int_eq(symcache_get_names(&b, f.function, &readable, &linkage, NULL), ST_OK);
                        ck_assert_int_eq(readable.is_plain, cases[i].is_plain);
                        ck_assert_int_eq(linkage.is_plain, cases[i].is_plain);
                }
                symcache_close(&b);
                close(fd);
        }
        frames[1].function = 0;
}
END_TEST

START_TEST(object_information_round_trips)
{
        struct symbol_table t = make_sample_table();
        _cleanup_close_ int fd = write_symcache(&t);
        struct symcache b = open_symcache(fd);

        ck_assert(build_id_equal(&b.build_id, &t.build_id));
        ck_assert_int_eq(b.quality, QUALITY_SYMTAB);
        ck_assert(b.is_complete);
        ck_assert_str_eq(b.partial, symbol_table_partial_text(&t));
        ck_assert_int_eq(symcache_gap_state(&b, 0x1500), SYMBOL_UNCOVERED);
        ck_assert_int_eq(symcache_gap_state(&b, 0x2000), SYMBOL_NOT_IN_OBJECT);
        symcache_close(&b);
}
END_TEST

START_TEST(table_without_ranges_gives_empty_symcache)
{
        const uint64_t addresses[] = { 0, BASE, UINT64_MAX };
        struct symbol_table t = { .strings = strings, .string_bytes = 1, .is_complete = true };
        _cleanup_close_ int fd = write_symcache(&t);
        struct symcache b = open_symcache(fd);
        uint32_t found[3] = { 1, 1, 1 };

        ck_assert_int_eq(symcache_find(&b, addresses, 3, found, NULL), ST_OK);
        ck_assert_uint_eq(found[0] | found[1] | found[2], 0);
        ck_assert_int_eq(symcache_gap_state(&b, BASE), SYMBOL_STRIPPED);
        ck_assert_int_eq(symcache_walk(&b), ST_OK);
        symcache_close(&b);
}
END_TEST

START_TEST(invalid_frames_and_texts_are_refused)
{
        struct symbol_table t = make_sample_table();
        _cleanup_close_ int fd = write_symcache(&t);
        struct symcache b = open_symcache(fd);
        struct symcache_frame f;
        struct symcache_text x, y;

        for (uint64_t i = b.at.node_count; i <= UINT32_MAX; i = i * 2 + 1)
                ck_assert_int_eq(symcache_get_frame(&b, (uint32_t)i, &f, NULL), ST_BAD_DATA);
        for (uint64_t i = b.at.text_bytes / SYMCACHE_TEXT_ALIGNMENT; i <= UINT32_MAX; i = i * 2 + 1) {
                ck_assert_int_eq(symcache_get_names(&b, (uint32_t)i, &x, &y, NULL), ST_BAD_DATA);
                ck_assert_int_eq(symcache_get_path(&b, (uint32_t)i, &x, NULL), ST_BAD_DATA);
        }
        symcache_close(&b);
}
END_TEST

START_TEST(every_shorter_and_longer_file_is_refused)
{
        struct symbol_table t = make_table(50, 20);
        size_t size;
        _cleanup_free_ uint8_t *bytes = get_symcache_bytes(&t, &size);
        _cleanup_close_ int fd = symcache_make_file(bytes, size);
        struct symcache b;

        ck_assert_uint_gt(size, SYMCACHE_ALIGNMENT);
        for (size_t n = size + 100; n-- > 0;) {
                if (n == size)
                        continue;
                SYMCACHE_CHECK(ftruncate(fd, (off_t)n) == 0 && symcache_open(fd, "b", &b, NULL) == ST_BAD_DATA);
        }
        symbol_table_deinit(&t);
}
END_TEST

/* Every chunk is read, so that only the zero bytes after the checksums can be changed without detection. */
START_TEST(every_flipped_byte_is_detected)
{
        struct symbol_table t = make_table(50, 20);
        size_t size;
        _cleanup_free_ uint8_t *bytes = get_symcache_bytes(&t, &size);
        struct symcache_header h;
        struct symcache_layout l;

        memcpy(&h, bytes, sizeof h);
        ck_assert(symcache_compute_layout(&h, &l) && symcache_chunk_count(&l) == 1);
        ck_assert_int_eq(read_symcache(bytes, size), ST_OK);
        for (size_t i = 0; i < size; i++) {
                if (i >= symcache_front_bytes(&h) + sizeof(uint64_t) && i < l.body)
                        continue;
                bytes[i] ^= 0x20;
                if (read_symcache(bytes, size) == ST_OK)
                        ck_abort_msg("byte %zu", i);
                bytes[i] ^= 0x20;
        }
        symbol_table_deinit(&t);
}
END_TEST

/* With corrected checksums, so that errors are only detected by bounds checks. */
START_TEST(forged_byte_does_not_cause_overread)
{
        const uint8_t flips[] = { 0x01, 0xff };
        struct symbol_table t = make_table(20, 10);
        size_t size, refused = 0;
        _cleanup_free_ uint8_t *bytes = get_symcache_bytes(&t, &size), *forged = malloc(size);

        for (size_t i = 0; i < size; i++) {
                for (size_t k = 0; k < sizeof flips; k++) {
                        if (!bytes[i] && i > 1000 && i < SYMCACHE_ALIGNMENT)
                                continue;
                        memcpy(forged, bytes, size);
                        forged[i] ^= flips[k];
                        symcache_fix_checksums(forged, size);
                        refused += read_symcache(forged, size) != ST_OK;
                }
        }
        ck_assert_uint_gt(refused, 1000);
        symbol_table_deinit(&t);
}
END_TEST

START_TEST(damaged_chunk_fails_only_its_content)
{
        struct symbol_table t = make_table(5000, 3000);
        size_t size;
        _cleanup_free_ uint8_t *bytes = get_symcache_bytes(&t, &size);
        uint64_t address = t.ranges[0].start;
        uint32_t found = 0;

        bytes[size - 1] ^= 1;
        _cleanup_close_ int fd = symcache_make_file(bytes, size);
        struct symcache b = open_symcache(fd);

        ck_assert_uint_gt(symcache_chunk_count(&b.at), 4);
        ck_assert_int_eq(symcache_find(&b, &address, 1, &found, NULL), ST_OK);
        symcache_check_lookup(&b, found, &t, address);
        ck_assert_int_eq(symcache_walk(&b), ST_BAD_DATA);
        symcache_close(&b);
        symbol_table_deinit(&t);
}
END_TEST

/* The seeds of the fuzz target must not be refused. */
START_TEST(good_corpus_files_are_read)
{
        static const char *const names[] = { "inlined", "partial-and-a-gap", "no-ranges" };

        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
                _cleanup_buf_ struct buf b;
                char path[128];

                buf_init(&b, MiB(1));
                snprintf(path, sizeof path, "tests/corpus/symcache/good/%s", names[i]);
                ck_assert_int_eq(file_read(path, &b, NULL), ST_OK);
                symcache_fix_checksums(b.data, b.size);
                ck_assert_msg(read_symcache(b.data, b.size) == ST_OK, "%s", names[i]);
        }
}
END_TEST

TEST_SUITE("symcache", lookups_agree_with_table, lookups_over_many_chunks_agree_with_table,
           ranges_may_start_and_end_at_extreme_addresses, names_are_stored_demangled, details_are_stored_per_frame,
           texts_are_marked_as_plain, object_information_round_trips, table_without_ranges_gives_empty_symcache,
           invalid_frames_and_texts_are_refused, every_shorter_and_longer_file_is_refused,
           every_flipped_byte_is_detected, forged_byte_does_not_cause_overread, damaged_chunk_fails_only_its_content,
           good_corpus_files_are_read)
