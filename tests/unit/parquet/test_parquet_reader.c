/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "parquet/column_cursor.h"
#include "parquet/encoding.h"
#include "parquet/parquet_reader.h"
#include "parquet/parquet_writer.h"
#include "tests/support/parquet_double.h"
#include "tests/support/suite.h"

#define OK(call)                                                                                                       \
        do {                                                                                                           \
                struct error err = { 0 };                                                                              \
                ck_assert_msg(!(call), "%s", err.text);                                                                \
        } while (0)

/* Open a file and read every column; returns the first failure. */
static enum status read_all(const void *data, size_t size, struct error *err)
{
        struct parquet_file *f = NULL;
        enum status st = parquet_file_open(data, size, "test", &f, err);

        if (st)
                return st;
        for (uint32_t g = 0; !st && g < parquet_file_row_groups(f); g++) {
                for (uint32_t i = 0; !st && i < parquet_file_schema(f)->column_count; i++) {
                        struct parquet_column c;

                        st = parquet_read_column(f, g, parquet_file_schema(f)->columns[i], &c, err);
                        if (!st)
                                parquet_column_deinit(&c);
                }
        }
        parquet_file_close(f);
        return st;
}

static unsigned read_directory(const char *dir, bool good)
{
        _cleanup_closedir_ DIR *d = opendir(dir);
        struct dirent *entry;
        unsigned seen = 0;

        ck_assert_msg(d != NULL, "cannot open %s", dir);
        while ((entry = readdir(d))) {
                _cleanup_free_ char *path = path_join(dir, entry->d_name);
                _cleanup_file_map_ struct file_map map = { 0 };
                struct error err = { 0 };
                enum status st;

                if (entry->d_name[0] == '.')
                        continue;
                ck_assert(!file_map_open(path, MiB(1), &map, &err));
                st = read_all(map.data, map.size, &err);
                ck_assert_msg(good ? !st : st == ST_BAD_DATA || st == ST_UNSUPPORTED || st == ST_TOO_BIG, "%s: %s",
                              path, st ? err.text : "read");
                ck_assert_msg(good || err.text[0], "%s has no message", path);
                seen++;
        }
        return seen;
}

START_TEST(every_bad_file_is_refused)
{
        ck_assert_uint_gt(read_directory("tests/corpus/parquet/bad", false), 50);
}
END_TEST

START_TEST(every_good_file_is_read)
{
        ck_assert_uint_ge(read_directory("tests/corpus/parquet/good", true), 5);
}
END_TEST

static uint64_t get_next_random(uint64_t *state)
{
        *state ^= *state << 13;
        *state ^= *state >> 7;
        return *state ^= *state << 17;
}

START_TEST(hybrid_round_trips_at_every_width)
{
        uint64_t dice = 7;

        for (unsigned width = 0; width <= 32; width++) {
                uint32_t values[1000], back[1000];
                _cleanup_buf_ struct buf b;
                struct reader r;

                buf_init(&b, MiB(1));
                for (size_t i = 0; i < 1000; i++) {
                        uint64_t v = get_next_random(&dice) & ((1ull << width) - 1);

                        values[i] = i && get_next_random(&dice) % 16 ? values[i - 1] : (uint32_t)v;
                }
                for (size_t n = 0; n <= 1000; n += n < 40 ? 1 : 137) {
                        buf_clear(&b);
                        encode_hybrid(&b, values, n, width);
                        ck_assert_uint_eq(b.size, encode_hybrid_size(values, n, width));
                        reader_init(&r, b.data, b.size);
                        ck_assert(decode_hybrid(&r, width, back, n));
                        ck_assert(!n || memcmp(values, back, n * sizeof *values) == 0);
                        ck_assert_uint_eq(reader_left(&r), 0);
                }
        }
}
END_TEST

/* Runs of both kinds that start at each bit of a byte, with counts that end inside one. */
START_TEST(levels_are_decoded_like_hybrid_values)
{
        uint64_t dice = 5;

        for (unsigned likelihood = 1; likelihood <= 64; likelihood *= 2) {
                uint32_t values[1000];
                uint8_t levels[1000];
                _cleanup_buf_ struct buf b;
                struct reader r;

                buf_init(&b, MiB(1));
                for (size_t n = 0; n <= 1000; n += n < 100 ? 1 : 137) {
                        for (size_t i = 0; i < n; i++)
                                values[i] = get_next_random(&dice) % likelihood == 0;
                        buf_clear(&b);
                        encode_hybrid(&b, values, n, 1);
                        reader_init(&r, b.data, b.size);
                        ck_assert(decode_levels(&r, 1, levels, n));
                        ck_assert_uint_eq(reader_left(&r), 0);
                        for (size_t i = 0; i < n; i++)
                                ck_assert_uint_eq(levels[i], values[i]);
                }
        }
}
END_TEST

START_TEST(delta_round_trips_with_wrap_around)
{
        static int64_t values[2000], back[2000];
        uint64_t dice = 9;
        _cleanup_buf_ struct buf b;
        struct reader r;

        buf_init(&b, MiB(1));
        for (int kind = 0; kind < 4; kind++) {
                for (int64_t i = 0; i < 2000; i++) {
                        uint64_t v = get_next_random(&dice);

                        values[i] = kind == 0   ? (int64_t)v
                                    : kind == 1 ? 1000 + i * 50
                                    : kind == 2 ? (int64_t)(v % 100)
                                    : v % 2     ? INT64_MIN
                                                : INT64_MAX;
                }
                for (size_t n = 0; n <= 2000; n += n < 300 ? 1 : 211) {
                        buf_clear(&b);
                        encode_delta(&b, values, n);
                        reader_init(&r, b.data, b.size);
                        ck_assert(decode_delta(&r, back, n));
                        ck_assert(!n || memcmp(values, back, n * sizeof *values) == 0);
                        ck_assert_uint_eq(reader_left(&r), 0);
                }
        }
}
END_TEST

static const struct parquet_field strings[] = {
        { .name = "s", .kind = PARQUET_STRING, .optional = true },
        { .name = "d", .kind = PARQUET_DOUBLE, .optional = true },
};

struct written {
        struct parquet_writer *w;
        int fd;
        struct file_map map;
        uint8_t *present;  /* what the reader required of the map */
        size_t damaged_at; /* 0: none; of what is required, until it is loaded anew */
        unsigned reloads;
        struct parquet_file *f;
};

static enum status copy_required_ranges(void *context, const struct file_range *ranges, size_t count, struct error *err)
{
        const struct written *x = context;

        (void)err;
        for (size_t i = 0; i < count; i++) {
                size_t at = x->damaged_at - ranges[i].offset; /* a great number before the range */

                ck_assert(ranges[i].offset <= x->map.size && ranges[i].size <= x->map.size - ranges[i].offset);
                memcpy(x->present + ranges[i].offset, (const uint8_t *)x->map.data + ranges[i].offset, ranges[i].size);
                if (x->damaged_at && at < ranges[i].size)
                        x->present[x->damaged_at] ^= 0x55;
        }
        return ST_OK;
}

static enum status copy_ranges_again(void *context, const struct file_range *ranges, size_t count, struct error *err)
{
        struct written *x = context;

        x->damaged_at = 0;
        x->reloads++;
        return copy_required_ranges(x, ranges, count, err);
}

static struct written begin(const struct parquet_field *fields, size_t count)
{
        struct written x = { .fd = memfd_create("test", MFD_CLOEXEC) };

        OK(parquet_writer_create(x.fd, "test", fields, count, NULL, &x.w, &err));
        return x;
}

static void open_written(struct written *x, uint64_t rows)
{
        OK(parquet_writer_end_rows(x->w, rows, &err));
        OK(parquet_writer_finish(x->w, &err));
        OK(file_map_fd(x->fd, MiB(64), "test", &x->map, &err));
        x->present = malloc(x->map.size);
        memset(x->present, 0xa5, x->map.size);
        OK(parquet_file_open_source(&(struct parquet_source){ .data = x->present,
                                                              .size = x->map.size,
                                                              .require = copy_required_ranges,
                                                              .reload = copy_ranges_again,
                                                              .context = x },
                                    "test", &x->f, &err));
}

static void end(struct written *x)
{
        parquet_file_close(x->f);
        free(x->present);
        file_map_close(&x->map);
        parquet_writer_destroy(x->w);
        close(x->fd);
}

START_TEST(statistics_are_bounds_with_exactness)
{
        struct written x = begin(strings, 2);
        struct parquet_stats s;
        char longest[200];

        memset(longest, 'z', sizeof longest);
        parquet_put_str(x.w, 1, "m");
        parquet_put_null(x.w, 1);
        parquet_put_bytes(x.w, 1, longest, sizeof longest);
        put_parquet_double(x.w, 2, 0.0);
        put_parquet_double(x.w, 2, 0.5);
        parquet_put_null(x.w, 2);
        open_written(&x, 3);
        parquet_file_stats(x.f, 0, 1, &s);
        ck_assert(s.has_null_count && s.null_count == 1 && s.value_count == 3);
        ck_assert(s.has_min && s.min_exact && s.min_size == 1 && s.min_bytes[0] == 'm');
        ck_assert(s.has_max && !s.max_exact && s.max_size == 64);
        ck_assert_int_gt(memcmp(s.max_bytes, longest, s.max_size), 0);
        parquet_file_stats(x.f, 0, 2, &s);
        ck_assert(s.has_max && s.max_double == 0.5);
        ck_assert(s.has_min && s.min_double == 0 && __builtin_signbit(s.min_double));
        end(&x);
}
END_TEST

START_TEST(maximum_that_cannot_be_rounded_up_is_omitted)
{
        static const struct parquet_field binary[] = { { .name = "b", .kind = PARQUET_BINARY } };
        struct written x = begin(binary, 1);
        struct parquet_stats s;
        uint8_t bytes[100];

        memset(bytes, 0xff, sizeof bytes);
        parquet_put_bytes(x.w, 1, bytes, sizeof bytes);
        open_written(&x, 1);
        parquet_file_stats(x.f, 0, 1, &s);
        ck_assert(!s.has_max && s.has_min && !s.min_exact);
        end(&x);
}
END_TEST

START_TEST(nan_prevents_bounds)
{
        struct written x = begin(strings, 2);
        struct parquet_stats s;

        parquet_put_null(x.w, 1);
        parquet_put_null(x.w, 1);
        put_parquet_double(x.w, 2, __builtin_nan(""));
        put_parquet_double(x.w, 2, 1);
        open_written(&x, 2);
        parquet_file_stats(x.f, 0, 2, &s);
        ck_assert(!s.has_min && !s.has_max);
        end(&x);
}
END_TEST

START_TEST(bytes_that_are_not_utf8_become_replacement_characters)
{
        struct written x = begin(strings, 2);
        struct parquet_column c;

        parquet_put_bytes(x.w, 1, "a\xff\xc3(", 4);
        parquet_put_null(x.w, 2);
        open_written(&x, 1);
        OK(parquet_read_column(x.f, 0, 1, &c, &err));
        ck_assert_uint_eq(c.dict[c.codes[0]].size, 8);
        ck_assert_mem_eq(c.dict[c.codes[0]].data, "a\xef\xbf\xbd\xef\xbf\xbd(", 8);
        parquet_column_deinit(&c);
        OK(parquet_read_column(x.f, 0, 2, &c, &err));
        ck_assert(c.valid && !c.valid[0] && c.doubles[0] == 0);
        parquet_column_deinit(&c);
        end(&x);
}
END_TEST

START_TEST(dictionary_codes_are_equal_if_and_only_if_values_are)
{
        struct written x = begin(strings, 2);
        struct parquet_column c;

        for (int i = 0; i < 1000; i++) {
                parquet_put_str(x.w, 1, i % 3 ? "b" : "a");
                parquet_put_null(x.w, 2);
        }
        open_written(&x, 1000);
        OK(parquet_read_column(x.f, 0, 1, &c, &err));
        ck_assert_uint_eq(c.dict_count, 2);
        ck_assert_ptr_null(c.valid);
        for (int i = 3; i < 1000; i++)
                ck_assert_int_eq(c.codes[i] == c.codes[0], i % 3 == 0);
        parquet_column_deinit(&c);
        end(&x);
}
END_TEST

/* Like location ids of stacks: almost all of the first thousand values are distinct. */
START_TEST(late_repetitions_use_a_dictionary)
{
        static const struct parquet_field fields[] = { { .name = "id", .kind = PARQUET_INT64 } };
        struct written x = begin(fields, 1);
        struct parquet_column c;
        uint64_t dice = 5;

        for (int i = 0; i < 100000; i++)
                parquet_put_int(x.w, 1, (int64_t)(get_next_random(&dice) % 10000 * 0x9e3779b97f4a7c15u));
        open_written(&x, 100000);
        ck_assert_uint_lt(x.map.size, 10000 * 8 + 100000 * 14 / 8 + 5000); /* entries, codes of 14 bits, the rest */
        OK(parquet_read_column(x.f, 0, 1, &c, &err));
        dice = 5;
        for (int i = 0; i < 100000; i++)
                ck_assert_int_eq(c.ints[i], (int64_t)(get_next_random(&dice) % 10000 * 0x9e3779b97f4a7c15u));
        parquet_column_deinit(&c);
        end(&x);
}
END_TEST

static enum status compare_pieces(struct parquet_cursor *cursor, const struct parquet_column *c, uint32_t at_once)
{
        for (uint64_t row = 0; row < c->row_count;) {
                struct parquet_piece p;
                uint64_t left = c->row_count - row;
                uint32_t count;

                enum status st = parquet_cursor_read(cursor, left < at_once ? (uint32_t)left : at_once, &p, NULL);

                if (st)
                        return st;
                for (uint32_t i = 0; i < p.count; i++, row++) {
                        uint32_t at = p.is_run ? 0 : i;

                        if (c->ints)
                                ck_assert_int_eq(p.ints[at], c->ints[row]);
                        else if (c->codes[row] == PARQUET_NULL_CODE)
                                ck_assert_uint_eq(p.codes[at], PARQUET_NULL_CODE);
                        else
                                ck_assert_uint_eq(parquet_cursor_dict(cursor, &count)[p.codes[at]].data[0],
                                                  c->dict[c->codes[row]].data[0]);
                }
        }
        return ST_OK;
}

START_TEST(cursor_agrees_with_column_on_sparse_values)
{
        static const struct parquet_field sparse[] = {
                { .name = "text", .kind = PARQUET_STRING, .optional = true },
                { .name = "number", .kind = PARQUET_INT64, .optional = true },
        };
        struct parquet_cursor *cursor = parquet_cursor_create(NULL, NULL);
        uint64_t dice = 11;

        for (unsigned one_of = 1; one_of <= 1024; one_of *= 2) {
                for (unsigned rows = 1; rows <= 5000; rows = rows * 3 + 1) {
                        struct written x = begin(sparse, 2);

                        for (unsigned i = 0; i < rows; i++) {
                                uint64_t v = get_next_random(&dice);

                                if (v % one_of) {
                                        parquet_put_null(x.w, 1);
                                        parquet_put_null(x.w, 2);
                                } else {
                                        parquet_put_str(x.w, 1, (char[]){ (char)('a' + v / one_of % 26), 0 });
                                        parquet_put_int(x.w, 2, (int64_t)(v >> 1));
                                }
                        }
                        open_written(&x, rows);
                        for (uint32_t node = 1; node <= 2; node++) {
                                struct parquet_column c;

                                OK(parquet_read_column(x.f, 0, node, &c, &err));
                                memset(x.present, 0xa5, x.map.size); /* the cursor requires it, too */
                                OK(parquet_cursor_open(cursor, x.f, 0, node, &err));
                                OK(compare_pieces(cursor, &c, 700));
                                parquet_column_deinit(&c);
                        }
                        end(&x);
                }
        }
        parquet_cursor_destroy(cursor);
}
END_TEST

START_TEST(rows_that_do_not_match_are_refused_by_the_writer)
{
        static const struct parquet_field element[] = { { .name = "element", .kind = PARQUET_INT64 } };
        static const struct parquet_field fields[] = {
                { .name = "n", .kind = PARQUET_INT32 },
                { .name = "l", .kind = PARQUET_LIST, .children = element, .child_count = 1 },
        };

        for (int mistake = 0; mistake < 5; mistake++) {
                struct written x = begin(fields, 2);

                if (mistake != 0)
                        parquet_put_int(x.w, 1, mistake == 1 ? INT64_MAX : 1);
                parquet_put_list(x.w, 2, mistake == 2 ? 4 : 3);
                for (int i = 0; i < 3; i++)
                        parquet_put_int(x.w, 4, i);
                if (mistake == 3)
                        parquet_put_int(x.w, 4, 1);
                if (mistake == 4)
                        parquet_put_null(x.w, 1);
                ck_assert_int_eq(parquet_writer_end_rows(x.w, 1, NULL), ST_USAGE);
                end(&x);
        }
}
END_TEST

START_TEST(invalid_schemas_are_refused)
{
        static const struct parquet_field leaf[] = { { .name = "x", .kind = PARQUET_INT64 } };
        static const struct parquet_field list[] = {
                { .name = "l", .kind = PARQUET_LIST, .children = leaf, .child_count = 1 },
        };
        static const struct parquet_field nested[] = {
                { .name = "ll", .kind = PARQUET_LIST, .children = list, .child_count = 1 },
        };
        static const struct parquet_field twice[] = { { .name = "x", .kind = PARQUET_INT64 },
                                                      { .name = "x", .kind = PARQUET_INT64 } };
        static const struct parquet_field childless[] = { { .name = "s", .kind = PARQUET_STRUCT } };
        struct parquet_writer *w = NULL;

        ck_assert_int_eq(parquet_writer_create(-1, "x", nested, 1, NULL, &w, NULL), ST_USAGE);
        ck_assert_int_eq(parquet_writer_create(-1, "x", twice, 2, NULL, &w, NULL), ST_USAGE);
        ck_assert_int_eq(parquet_writer_create(-1, "x", childless, 1, NULL, &w, NULL), ST_USAGE);
        ck_assert_int_eq(parquet_writer_create(-1, "x", leaf, 0, NULL, &w, NULL), ST_USAGE);
        ck_assert_ptr_null(w);
}
END_TEST

START_TEST(truncations_and_flipped_bytes_do_not_crash)
{
        struct written x = begin(strings, 2);
        _cleanup_free_ uint8_t *copy = NULL;
        unsigned refused = 0;

        for (int i = 0; i < 40; i++) {
                parquet_put_str(x.w, 1, i % 3 ? "b" : "aaaa");
                if (i % 2)
                        parquet_put_null(x.w, 2);
                else
                        put_parquet_double(x.w, 2, i);
        }
        open_written(&x, 40);
        for (size_t n = 0; n < x.map.size; n++) {
                copy = realloc(copy, n + 1);
                memcpy(copy, x.map.data, n);
                ck_assert_int_eq(read_all(copy, n, NULL), ST_BAD_DATA);
        }
        copy = realloc(copy, x.map.size);
        for (size_t i = 0; i < x.map.size; i++) {
                for (unsigned flip = 1; flip < 256; flip = flip * 2 + 1) {
                        memcpy(copy, x.map.data, x.map.size);
                        copy[i] ^= (uint8_t)flip;
                        refused += read_all(copy, x.map.size, NULL) != ST_OK;
                }
        }
        ck_assert_uint_gt(refused, 1000);
        end(&x);
}
END_TEST

static void open_sparse_file(struct written *x, unsigned rows)
{
        static const struct parquet_field sparse[] = {
                { .name = "text", .kind = PARQUET_STRING, .optional = true },
                { .name = "number", .kind = PARQUET_INT64, .optional = true },
        };
        uint64_t dice = 11;

        *x = begin(sparse, 2);
        for (unsigned i = 0; i < rows; i++) {
                uint64_t v = get_next_random(&dice);

                if (v % 3) {
                        parquet_put_null(x->w, 1);
                        parquet_put_null(x->w, 2);
                } else {
                        parquet_put_str(x->w, 1, (char[]){ (char)('a' + v / 3 % 26), 0 });
                        parquet_put_int(x->w, 2, (int64_t)(v >> 1));
                }
        }
        open_written(x, rows);
}

static bool are_equal_columns(const struct parquet_column *a, const struct parquet_column *b)
{
        for (uint64_t i = 0; i < a->row_count; i++) {
                if (a->ints ? a->ints[i] != b->ints[i]
                            : (a->codes[i] == PARQUET_NULL_CODE) != (b->codes[i] == PARQUET_NULL_CODE) ||
                                      (a->codes[i] != PARQUET_NULL_CODE &&
                                       a->dict[a->codes[i]].data[0] != b->dict[b->codes[i]].data[0]))
                        return false;
        }
        return a->row_count == b->row_count;
}

/*
 * Each byte of each column. A page's header is the only part without a checksum: a cursor may have given rows when it
 * finds that one is damaged, and then only the next one succeeds.
 */
START_TEST(damage_that_another_copy_lacks_is_repaired)
{
        struct parquet_cursor *cursor = parquet_cursor_create(NULL, NULL);
        unsigned bytes = 0, repaired = 0, refused = 0;
        struct written x;

        open_sparse_file(&x, 300);
        for (uint32_t node = 1; node <= 2; node++) {
                struct file_range chunk = parquet_file_get_chunk_range(x.f, 0, node);
                struct parquet_column good, c;

                OK(parquet_read_column(x.f, 0, node, &good, &err));
                for (size_t at = chunk.offset; at < chunk.offset + chunk.size; at++) {
                        x.damaged_at = at;
                        x.reloads = 0;
                        OK(parquet_read_column(x.f, 0, node, &c, &err));
                        ck_assert(are_equal_columns(&good, &c));
                        parquet_column_deinit(&c);
                        bytes++;
                        repaired += x.reloads;
                        x.damaged_at = at;
                        OK(parquet_cursor_open(cursor, x.f, 0, node, &err));
                        if (!compare_pieces(cursor, &good, 70))
                                continue;
                        refused++;
                        OK(parquet_cursor_open(cursor, x.f, 0, node, &err));
                        OK(compare_pieces(cursor, &good, 70));
                }
                parquet_column_deinit(&good);
        }
        ck_assert_uint_gt(repaired, bytes * 9 / 10); /* the others are statistics */
        ck_assert_uint_lt(refused, bytes / 50);
        parquet_cursor_destroy(cursor);
        end(&x);
}
END_TEST

static enum status refuse_cursor_memory(void *context, size_t n, struct error *err)
{
        (void)context, (void)n;
        return error_set(err, ST_TOO_BIG, "no memory for this query");
}

START_TEST(a_limit_of_memory_is_no_damage)
{
        struct parquet_cursor *cursor = parquet_cursor_create(refuse_cursor_memory, NULL);
        struct parquet_piece p;
        struct written x;

        open_sparse_file(&x, 300);
        OK(parquet_cursor_open(cursor, x.f, 0, 1, &err));
        ck_assert_int_eq(parquet_cursor_read(cursor, 10, &p, NULL), ST_TOO_BIG);
        ck_assert_uint_eq(x.reloads, 0);
        parquet_cursor_destroy(cursor);
        end(&x);
}
END_TEST

TEST_SUITE("parquet_reader", every_bad_file_is_refused, every_good_file_is_read, hybrid_round_trips_at_every_width,
           levels_are_decoded_like_hybrid_values, delta_round_trips_with_wrap_around,
           statistics_are_bounds_with_exactness, maximum_that_cannot_be_rounded_up_is_omitted, nan_prevents_bounds,
           bytes_that_are_not_utf8_become_replacement_characters, dictionary_codes_are_equal_if_and_only_if_values_are,
           late_repetitions_use_a_dictionary, cursor_agrees_with_column_on_sparse_values,
           rows_that_do_not_match_are_refused_by_the_writer, invalid_schemas_are_refused,
           truncations_and_flipped_bytes_do_not_crash, damage_that_another_copy_lacks_is_repaired,
           a_limit_of_memory_is_no_damage)
