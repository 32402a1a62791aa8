/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes Parquet files with all shapes of columns, and the same rows as JSON lines generated without Parquet; Cairn's
 * reader must return the same lines. tests/e2e/store/parquet-readers.t does the same with other readers:
 * PARQUET_SAMPLES is the directory where the files are kept, and PARQUET_FOREIGN a directory whose *.parquet files are
 * read into
 * *.ours.jsonl.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "common/files/file.h"
#include "common/json/json_out.h"
#include "common/limits.h"
#include "parquet/parquet_writer.h"
#include "tests/support/parquet_double.h"
#include "tests/support/parquet_json.h"
#include "tests/support/suite.h"

struct sample {
        const char *dir;
        struct parquet_writer *w;
        char *path;
        int fd;
        struct buf json;
        struct json_out out;
};

static const char *sample_dir(char template[32])
{
        const char *dir = getenv("PARQUET_SAMPLES");

        return dir ? dir : mkdtemp(template);
}

static void sample_open(struct sample *s, const char *name, const struct parquet_field *fields, size_t count,
                        const struct parquet_writer_options *options)
{
        static char template[32] = "/tmp/parquet-samples-XXXXXX";
        struct error err = { 0 };

        s->dir = sample_dir(template);
        ck_assert_ptr_nonnull(s->dir);
        ck_assert_int_gt(asprintf(&s->path, "%s/%s.parquet", s->dir, name), 0);
        s->fd = open(s->path, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0644);
        ck_assert_int_ge(s->fd, 0);
        ck_assert_msg(!parquet_writer_create(s->fd, s->path, fields, count, options, &s->w, &err), "%s", err.text);
        buf_init(&s->json, MiB(512));
        json_out_init(&s->out, &s->json);
}

static void sample_row_begin(struct sample *s)
{
        json_out_init(&s->out, &s->json);
        json_out_object(&s->out, NULL);
}

static void sample_row_end(struct sample *s)
{
        struct error err = { 0 };

        json_out_object_end(&s->out);
        buf_append_str(&s->json, "\n");
        ck_assert_msg(!parquet_writer_end_rows(s->w, 1, &err), "%s", err.text);
}

static void sample_close(struct sample *s)
{
        _cleanup_free_ char *json_path = NULL;
        _cleanup_buf_ struct buf read;
        struct error err = { 0 };
        off_t size;

        ck_assert_msg(!parquet_writer_finish(s->w, &err), "%s", err.text);
        size = lseek(s->fd, 0, SEEK_END);
        ck_assert_uint_eq((uint64_t)size, parquet_writer_bytes(s->w));
        parquet_writer_destroy(s->w);
        close(s->fd);
        buf_init(&read, MiB(512));
        ck_assert_msg(!parquet_json_lines(s->path, &read, &err), "%s", err.text);
        ck_assert_uint_eq(read.size, s->json.size);
        ck_assert(!read.size || memcmp(read.data, s->json.data, read.size) == 0);
        ck_assert_int_gt(asprintf(&json_path, "%.*s.jsonl", (int)(strlen(s->path) - strlen(".parquet")), s->path), 0);
        ck_assert(!buf_status(&s->json, &err, "json"));
        ck_assert_msg(!file_write_durable(json_path, s->json.data, s->json.size, &err), "%s", err.text);
        if (!getenv("PARQUET_SAMPLES"))
                ck_assert(!file_remove_tree(s->dir, &err));
        buf_deinit(&s->json);
        free(s->path);
}

static uint64_t get_next_random(uint64_t *state)
{
        uint64_t z = *state += 0x9e3779b97f4a7c15u;

        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        return z ^ z >> 31;
}

/* One number, written to the row and the JSON; randomly null. */
static void add_number(struct sample *s, const char *key, uint32_t node, bool is_null, int64_t v)
{
        if (is_null) {
                parquet_put_null(s->w, node);
                json_out_str(&s->out, key, NULL);
        } else {
                parquet_put_int(s->w, node, v);
                json_out_int(&s->out, key, v);
        }
}

static void add_boolean(struct sample *s, const char *key, uint32_t node, bool is_null, bool v)
{
        if (is_null) {
                parquet_put_null(s->w, node);
                json_out_str(&s->out, key, NULL);
        } else {
                parquet_put_int(s->w, node, v);
                json_out_bool(&s->out, key, v);
        }
}

static void add_text(struct sample *s, const char *key, uint32_t node, const char *v)
{
        if (v)
                parquet_put_str(s->w, node, v);
        else
                parquet_put_null(s->w, node);
        json_out_str(&s->out, key, v);
}

/* JSON cannot represent bytes: hexadecimal. */
static void add_binary(struct sample *s, const char *key, uint32_t node, const uint8_t *v, size_t n)
{
        char hex[2 * 64 + 1] = "";

        for (size_t i = 0; i < n; i++)
                snprintf(hex + 2 * i, 3, "%02x", v[i]);
        parquet_put_bytes(s->w, node, v, n);
        json_out_str(&s->out, key, hex);
}

#define LONG_Z "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"
static const char *const words[] = { "",       "main",     "std::vector<int>::push_back", "größe",
                                     "日本語", "🙂🙃", "a\"quoted\\path\n",           (LONG_Z LONG_Z "🙂") };
#define WORDS (sizeof words / sizeof *words)

START_TEST(flat_columns_of_every_type_in_several_row_groups)
{
        static const struct parquet_field fields[] = {
                { .name = "time", .kind = PARQUET_TIMESTAMP },
                { .name = "value", .kind = PARQUET_INT64 },
                { .name = "wild", .kind = PARQUET_INT64, .optional = true },
                { .name = "small", .kind = PARQUET_INT32, .optional = true },
                { .name = "flag", .kind = PARQUET_BOOL },
                { .name = "maybe", .kind = PARQUET_BOOL, .optional = true },
                { .name = "word", .kind = PARQUET_STRING, .optional = true },
                { .name = "unique", .kind = PARQUET_STRING },
                { .name = "id", .kind = PARQUET_BINARY },
                { .name = "nothing", .kind = PARQUET_STRING, .optional = true },
                { .name = "ratio", .kind = PARQUET_DOUBLE },
        };
        static const struct parquet_sort sort[] = { { .path = "time" } };
        static const struct parquet_key_value metadata[] = { { "cairn.test", "flat" } };
        struct parquet_writer_options options = PARQUET_WRITER_OPTIONS;
        struct sample s = { 0 };
        uint32_t node[11];
        uint64_t dice = 1;

        options.row_group_rows = 10000;
        options.page_rows = 3000;
        options.sort = sort;
        options.sort_count = 1;
        options.metadata = metadata;
        options.metadata_count = 1;
        sample_open(&s, "flat", fields, 11, &options);
        for (size_t i = 0; i < 11; i++)
                node[i] = parquet_writer_node(s.w, fields[i].name);
        for (int64_t i = 0; i < 25000; i++) {
                uint64_t r = get_next_random(&dice);
                char unique[64];
                uint8_t id[16];
                double ratio = (double)(int64_t)(r % 2000) / 8 - 100;

                snprintf(unique, sizeof unique, "row %" PRId64 " %016" PRIx64, i, r);
                memset(id, 0, sizeof id);
                id[0] = (uint8_t)(r % 50);
                id[15] = 0xff;
                sample_row_begin(&s);
                add_number(&s, "time", node[0], false, 1763650000000000 + i * 52631 + (int64_t)(r % 1000));
                add_number(&s, "value", node[1], false, (int64_t)(r % 7) - 3);
                add_number(&s, "wild", node[2], r % 3 == 0,
                           r % 100 == 1   ? INT64_MIN
                           : r % 100 == 2 ? INT64_MAX
                                          : (int64_t)get_next_random(&dice));
                add_number(&s, "small", node[3], r % 11 == 0, (int32_t)(r >> 32));
                add_boolean(&s, "flag", node[4], false, r % 2);
                add_boolean(&s, "maybe", node[5], r % 5 == 0, r % 2);
                add_text(&s, "word", node[6], i > 12000 && i < 21000 ? NULL : words[r % WORDS]);
                add_text(&s, "unique", node[7], unique);
                add_binary(&s, "id", node[8], id, sizeof id);
                add_text(&s, "nothing", node[9], NULL);
                put_parquet_double(s.w, node[10], ratio);
                json_out_double(&s.out, "ratio", ratio);
                sample_row_end(&s);
        }
        sample_close(&s);
}
END_TEST

START_TEST(nested_columns_with_nulls_and_empty_lists)
{
        static const struct parquet_field element[] = { { .name = "element", .kind = PARQUET_INT64 } };
        static const struct parquet_field frame_fields[] = {
                { .name = "function", .kind = PARQUET_STRING, .optional = true },
                { .name = "linkage_name", .kind = PARQUET_STRING, .optional = true },
                { .name = "file", .kind = PARQUET_STRING, .optional = true },
                { .name = "line", .kind = PARQUET_INT64, .optional = true },
                { .name = "inlined", .kind = PARQUET_BOOL, .optional = true },
        };
        static const struct parquet_field frame[] = {
                { .name = "element",
                  .kind = PARQUET_STRUCT,
                  .optional = true,
                  .children = frame_fields,
                  .child_count = 5 },
        };
        static const struct parquet_field key_value[] = {
                { .name = "key", .kind = PARQUET_STRING },
                { .name = "value", .kind = PARQUET_STRING, .optional = true },
        };
        static const struct parquet_field inner[] = {
                { .name = "number", .kind = PARQUET_INT64 },
                { .name = "tags", .kind = PARQUET_LIST, .optional = true, .children = element, .child_count = 1 },
        };
        static const struct parquet_field fields[] = {
                { .name = "stack", .kind = PARQUET_LIST, .children = element, .child_count = 1 },
                { .name = "frames", .kind = PARQUET_LIST, .optional = true, .children = frame, .child_count = 1 },
                { .name = "labels", .kind = PARQUET_MAP, .optional = true, .children = key_value, .child_count = 2 },
                { .name = "inner", .kind = PARQUET_STRUCT, .optional = true, .children = inner, .child_count = 2 },
        };
        struct parquet_writer_options options = PARQUET_WRITER_OPTIONS;
        struct sample s = { 0 };
        uint64_t dice = 2;
        uint32_t stack, frames, frame_node, function, linkage, file, line, inlined, labels, key, value, inner_node,
                inner_number, tags;

        options.row_group_rows = 4000;
        options.page_rows = 900;
        sample_open(&s, "nested", fields, 4, &options);
        stack = parquet_writer_node(s.w, "stack");
        frames = parquet_writer_node(s.w, "frames");
        frame_node = parquet_writer_node(s.w, "frames.list.element");
        function = parquet_writer_node(s.w, "frames.list.element.function");
        linkage = parquet_writer_node(s.w, "frames.list.element.linkage_name");
        file = parquet_writer_node(s.w, "frames.list.element.file");
        line = parquet_writer_node(s.w, "frames.list.element.line");
        inlined = parquet_writer_node(s.w, "frames.list.element.inlined");
        labels = parquet_writer_node(s.w, "labels");
        key = parquet_writer_node(s.w, "labels.key_value.key");
        value = parquet_writer_node(s.w, "labels.key_value.value");
        inner_node = parquet_writer_node(s.w, "inner");
        inner_number = parquet_writer_node(s.w, "inner.number");
        tags = parquet_writer_node(s.w, "inner.tags");
        for (int i = 0; i < 10000; i++) {
                uint64_t r = get_next_random(&dice);
                size_t depth = r % 23;
                int64_t ids[23];

                sample_row_begin(&s);
                json_out_array(&s.out, "stack");
                for (size_t k = 0; k < depth; k++) {
                        ids[k] = (int64_t)(get_next_random(&dice) % 500) * 0x123456789;
                        json_out_int(&s.out, NULL, ids[k]);
                }
                json_out_array_end(&s.out);
                parquet_put_int_list(s.w, stack, ids, depth);

                if (r % 10 == 0) {
                        parquet_put_null(s.w, frames);
                        json_out_str(&s.out, "frames", NULL);
                } else {
                        size_t count = r / 16 % 5;

                        parquet_put_list(s.w, frames, count);
                        json_out_array(&s.out, "frames");
                        for (size_t k = 0; k < count; k++) {
                                uint64_t f = get_next_random(&dice);

                                if (f % 13 == 0) {
                                        parquet_put_null(s.w, frame_node);
                                        json_out_str(&s.out, NULL, NULL);
                                        continue;
                                }
                                json_out_object(&s.out, NULL);
                                add_text(&s, "function", function, f % 3 ? words[f / 4 % WORDS] : NULL);
                                add_text(&s, "linkage_name", linkage, f % 5 ? words[f / 8 % WORDS] : NULL);
                                add_text(&s, "file", file, f % 7 ? "src/main.c" : NULL);
                                add_number(&s, "line", line, f % 4 == 0, (int64_t)(f % 3000));
                                add_boolean(&s, "inlined", inlined, f % 6 == 1, k > 0);
                                json_out_object_end(&s.out);
                        }
                        json_out_array_end(&s.out);
                }

                if (r % 9 == 0) {
                        parquet_put_null(s.w, labels);
                        json_out_str(&s.out, "labels", NULL);
                } else {
                        size_t count = r / 32 % 3;

                        parquet_put_list(s.w, labels, count);
                        json_out_object(&s.out, "labels");
                        for (size_t k = 0; k < count; k++) {
                                const char *name = k ? "region" : "pod";
                                const char *v =
                                        get_next_random(&dice) % 4 ? words[get_next_random(&dice) % WORDS] : NULL;

                                parquet_put_str(s.w, key, name);
                                add_text(&s, name, value, v);
                        }
                        json_out_object_end(&s.out);
                }

                if (r % 8 == 0) {
                        parquet_put_null(s.w, inner_node);
                        json_out_str(&s.out, "inner", NULL);
                } else {
                        json_out_object(&s.out, "inner");
                        add_number(&s, "number", inner_number, false, i);
                        if (r % 7 == 0) {
                                parquet_put_null(s.w, tags);
                                json_out_str(&s.out, "tags", NULL);
                        } else {
                                size_t count = r % 3;

                                parquet_put_int_list(s.w, tags, ids, depth < count ? depth : count);
                                json_out_array(&s.out, "tags");
                                for (size_t k = 0; k < count && k < depth; k++)
                                        json_out_int(&s.out, NULL, ids[k]);
                                json_out_array_end(&s.out);
                        }
                        json_out_object_end(&s.out);
                }
                sample_row_end(&s);
        }
        sample_close(&s);
}
END_TEST

START_TEST(dictionary_over_the_limit_is_abandoned)
{
        static const struct parquet_field fields[] = {
                { .name = "big", .kind = PARQUET_STRING },
                { .name = "hash", .kind = PARQUET_INT64 },
                { .name = "run", .kind = PARQUET_STRING },
        };
        struct sample s = { 0 };
        uint64_t dice = 3;
        uint32_t big, hash, run;

        sample_open(&s, "overflow", fields, 3, NULL);
        big = parquet_writer_node(s.w, "big");
        hash = parquet_writer_node(s.w, "hash");
        run = parquet_writer_node(s.w, "run");
        for (int i = 0; i < 20000; i++) {
                char v[256];
                uint64_t r = get_next_random(&dice);

                snprintf(v, sizeof v, "%0200" PRIu64, r % 15000);
                sample_row_begin(&s);
                add_text(&s, "big", big, v);
                add_number(&s, "hash", hash, false, (int64_t)r);
                add_text(&s, "run", run, words[i / 3000]);
                sample_row_end(&s);
        }
        sample_close(&s);
}
END_TEST

START_TEST(file_without_rows)
{
        static const struct parquet_field fields[] = {
                { .name = "a", .kind = PARQUET_INT64 },
                { .name = "b", .kind = PARQUET_STRING, .optional = true },
        };
        struct sample s = { 0 };

        sample_open(&s, "empty", fields, 2, NULL);
        sample_close(&s);
}
END_TEST

START_TEST(files_of_other_writers_are_read)
{
        const char *dir = getenv("PARQUET_FOREIGN");
        _cleanup_closedir_ DIR *d = dir ? opendir(dir) : NULL;
        struct dirent *entry;

        while (d && (entry = readdir(d))) {
                _cleanup_free_ char *path = path_join(dir, entry->d_name);
                _cleanup_free_ char *out = NULL;
                _cleanup_buf_ struct buf lines;
                struct error err = { 0 };
                size_t n = strlen(path);

                buf_init(&lines, MiB(512));
                if (n < 8 || strcmp(path + n - 8, ".parquet") != 0)
                        continue;
                ck_assert_msg(!parquet_json_lines(path, &lines, &err), "%s", err.text);
                ck_assert_int_gt(asprintf(&out, "%.*s.ours.jsonl", (int)n - 8, path), 0);
                ck_assert_msg(!file_write_durable(out, lines.data, lines.size, &err), "%s", err.text);
        }
}
END_TEST

TEST_SUITE("parquet_samples", files_of_other_writers_are_read, flat_columns_of_every_type_in_several_row_groups,
           nested_columns_with_nulls_and_empty_lists, dictionary_over_the_limit_is_abandoned, file_without_rows)
