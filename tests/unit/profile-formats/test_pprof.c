/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <string.h>

#include "common/compress/compress.h"
#include "common/limits.h"
#include "profile-formats/folded.h"
#include "profile-formats/perf_script.h"
#include "profile-formats/pprof/pprof.h"
#include "profile-formats/pprof/pprof_fields.h"
#include "profile-formats/profile_type.h"
#include "profile-formats/sample_count.h"
#include "profile-formats/proto/pprof.pb-c.h"
#include "profile-formats/pyroscope_type.h"
#include "profile-formats/wire.h"
#include "tests/support/profile_text.h"
#include "tests/support/suite.h"

/*
 * A file with two sample types, one mapping and two locations; the struct contains the differences from a valid file.
 */
struct file {
        uint64_t location_in_sample, function_in_line, mapping_in_location, string_in_function, second_location_id,
                mapping_in_second_location;
        int values;
        bool no_types;
        const char *build_id;
};

static const struct file good_file = { .location_in_sample = 900,
                                       .function_in_line = 50,
                                       .mapping_in_location = 7,
                                       .string_in_function = 5,
                                       .second_location_id = 901,
                                       .values = 2,
                                       .build_id = "0123456789abcdef0123456789abcdef01234567" };

static void put_file(struct buf *b, const struct file *q)
{
        const char *const strings[] = { "",     "samples",  "count",     "cpu",    "nanoseconds",
                                        "work", "/bin/app", q->build_id, "thread", "bytes" };
        size_t m, l;

        for (int i = 0; i < 2 && !q->no_types; i++) {
                m = wire_begin(b, PPROF_SAMPLE_TYPE);
                wire_put_varint(b, PPROF_VALUE_TYPE_TYPE, i ? 3 : 1);
                wire_put_varint(b, PPROF_VALUE_TYPE_UNIT, i ? 4 : 2);
                wire_end(b, m);
        }
        m = wire_begin(b, PPROF_SAMPLE);
        wire_put_varint(b, PPROF_SAMPLE_LOCATION_ID, q->location_in_sample);
        wire_put_varint(b, PPROF_SAMPLE_LOCATION_ID, q->second_location_id);
        for (int i = 0; i < q->values; i++)
                wire_put_varint(b, PPROF_SAMPLE_VALUE, i ? 30000000 : 3);
        l = wire_begin(b, PPROF_SAMPLE_LABEL);
        wire_put_varint(b, PPROF_LABEL_KEY, 8);
        wire_put_varint(b, PPROF_LABEL_STR, 5);
        wire_end(b, l);
        l = wire_begin(b, PPROF_SAMPLE_LABEL);
        wire_put_varint(b, PPROF_LABEL_KEY, 9);
        wire_put_varint(b, PPROF_LABEL_NUM, (uint64_t)-5);
        wire_end(b, l);
        l = wire_begin(b, PPROF_SAMPLE_LABEL); /* with an empty text: a missing label */
        wire_put_varint(b, PPROF_LABEL_KEY, 3);
        wire_put_varint(b, PPROF_LABEL_STR, 0);
        wire_end(b, l);
        wire_end(b, m);
        m = wire_begin(b, PPROF_MAPPING);
        wire_put_varint(b, PPROF_ID, 7);
        wire_put_varint(b, PPROF_MAPPING_START, 0x55b87a6bc000);
        wire_put_varint(b, PPROF_MAPPING_LIMIT, 0x55b87a6bd000);
        wire_put_varint(b, PPROF_MAPPING_FILE_OFFSET, 0x1000);
        wire_put_varint(b, PPROF_MAPPING_FILENAME, 6);
        wire_put_varint(b, PPROF_MAPPING_BUILD_ID, 7);
        wire_end(b, m);
        m = wire_begin(b, PPROF_LOCATION);
        wire_put_varint(b, PPROF_ID, 900);
        wire_put_varint(b, PPROF_LOCATION_MAPPING_ID, q->mapping_in_location);
        wire_put_varint(b, PPROF_LOCATION_ADDRESS, 0x55b87a6bc15a);
        wire_end(b, m);
        m = wire_begin(b, PPROF_LOCATION);
        wire_put_varint(b, PPROF_ID, q->second_location_id);
        wire_put_varint(b, PPROF_LOCATION_MAPPING_ID, q->mapping_in_second_location);
        wire_put_varint(b, PPROF_LOCATION_ADDRESS, 0x55b87a6bc1b3);
        l = wire_begin(b, PPROF_LOCATION_LINE);
        wire_put_varint(b, PPROF_LINE_FUNCTION_ID, q->function_in_line);
        wire_put_varint(b, PPROF_LINE_LINE, 12);
        wire_end(b, l);
        wire_end(b, m);
        m = wire_begin(b, PPROF_FUNCTION);
        wire_put_varint(b, PPROF_ID, 50);
        wire_put_varint(b, PPROF_FUNCTION_NAME, q->string_in_function);
        wire_end(b, m);
        for (size_t i = 0; i < sizeof strings / sizeof *strings; i++)
                wire_put_bytes(b, PPROF_STRING_TABLE, strings[i], strlen(strings[i]));
        wire_put_varint(b, PPROF_TIME_NANOS, 1700000000000000000);
        wire_put_varint(b, PPROF_DURATION_NANOS, 10000000000);
        m = wire_begin(b, PPROF_PERIOD_TYPE);
        wire_put_varint(b, PPROF_VALUE_TYPE_TYPE, 3);
        wire_put_varint(b, PPROF_VALUE_TYPE_UNIT, 4);
        wire_end(b, m);
        wire_put_varint(b, PPROF_PERIOD, 10000000);
}

static enum status decode_file(const struct file *q, struct profile *ret, struct error *err)
{
        _cleanup_buf_ struct buf b;

        *err = (struct error){ 0 };
        buf_init(&b, MiB(1));
        put_file(&b, q);
        return pprof_decode(b.data, b.size, NULL, ret, err);
}

START_TEST(process_addresses_become_file_offsets_of_the_build_id)
{
        _cleanup_profile_ struct profile p;
        _cleanup_free_ char *text = NULL;
        struct error err;

        ck_assert_msg(decode_file(&good_file, &p, &err) == ST_OK, "%s", err.text);
        text = profile_to_text(&p);
        ck_assert_str_eq(
                text,
                "process_cpu:cpu:nanoseconds:cpu:nanoseconds nanoseconds 10000000 t=1700000000000000000 "
                "d=10000000000 v=30000000 000000000000000000000000000000000000000000000000 {__pprof_num_bytes=-5} "
                "{thread=work} [1 0x115a /bin/app@0123456789abcdef0123456789abcdef01234567] "
                "[0 0x55b87a6bc1b3 work||:12]\n"
                "process_cpu:samples:count:cpu:nanoseconds count 10000000 t=1700000000000000000 "
                "d=10000000000 v=3 000000000000000000000000000000000000000000000000 {__pprof_num_bytes=-5} "
                "{thread=work} [1 0x115a /bin/app@0123456789abcdef0123456789abcdef01234567] "
                "[0 0x55b87a6bc1b3 work||:12]\n");
}
END_TEST

START_TEST(placeholder_of_a_mapping_is_no_build_id)
{
        static const char *const placeholders[] = { "00", "0000000000000000000000000000000000000000", "0a0b" };

        for (size_t i = 0; i < sizeof placeholders / sizeof *placeholders; i++) {
                _cleanup_profile_ struct profile p;
                _cleanup_free_ char *text = NULL;
                struct file file = good_file;
                struct error err;

                file.build_id = placeholders[i];
                ck_assert_msg(decode_file(&file, &p, &err) == ST_OK, "%s", err.text);
                text = profile_to_text(&p);
                ck_assert_ptr_nonnull(strstr(text, " /bin/app@]"));
        }
}
END_TEST

START_TEST(encoded_profile_round_trips)
{
        _cleanup_profile_ struct profile p, q;
        _cleanup_free_ char *before = NULL, *after = NULL;
        _cleanup_buf_ struct buf b;
        struct error err;

        ck_assert_int_eq(decode_file(&good_file, &p, &err), ST_OK);
        buf_init(&b, MiB(1));
        ck_assert_int_eq(pprof_encode(&p, &b, &err), ST_OK);
        ck_assert(gzip_detect(b.data, b.size));
        ck_assert_msg(pprof_decode(b.data, b.size, NULL, &q, &err) == ST_OK, "%s", err.text);
        before = profile_to_text(&p);
        after = profile_to_text(&q);
        ck_assert_str_eq(before, after);
}
END_TEST

static void put_number_label(struct buf *b, uint64_t key, int64_t number, uint64_t unit)
{
        size_t l = wire_begin(b, PPROF_SAMPLE_LABEL);

        wire_put_varint(b, PPROF_LABEL_KEY, key);
        wire_put_varint(b, PPROF_LABEL_NUM, (uint64_t)number);
        wire_put_varint(b, PPROF_LABEL_NUM_UNIT, unit);
        wire_end(b, l);
}

/* A heap profile whose only sample has numeric labels, and whose default sample type is the first of two. */
static void put_heap_file(struct buf *b)
{
        static const char *const strings[] = { "",        "alloc_space", "bytes", "inuse_space",
                                               "request", "kilobytes",   "span",  "space" };
        size_t m;

        for (int i = 0; i < 2; i++) {
                m = wire_begin(b, PPROF_SAMPLE_TYPE);
                wire_put_varint(b, PPROF_VALUE_TYPE_TYPE, i ? 3 : 1);
                wire_put_varint(b, PPROF_VALUE_TYPE_UNIT, 2);
                wire_end(b, m);
        }
        m = wire_begin(b, PPROF_SAMPLE);
        wire_put_varint(b, PPROF_SAMPLE_VALUE, 4096);
        wire_put_varint(b, PPROF_SAMPLE_VALUE, 512);
        put_number_label(b, 2, 512, 0);
        put_number_label(b, 4, INT64_MIN, 5);
        put_number_label(b, 6, 0, 2); /* a number, since it has a unit */
        put_number_label(b, 3, 0, 0); /* no label */
        wire_end(b, m);
        for (size_t i = 0; i < sizeof strings / sizeof *strings; i++)
                wire_put_bytes(b, PPROF_STRING_TABLE, strings[i], strlen(strings[i]));
        m = wire_begin(b, PPROF_PERIOD_TYPE);
        wire_put_varint(b, PPROF_VALUE_TYPE_TYPE, 7);
        wire_put_varint(b, PPROF_VALUE_TYPE_UNIT, 2);
        wire_end(b, m);
        wire_put_varint(b, PPROF_PERIOD, 512);
        wire_put_varint(b, PPROF_DEFAULT_SAMPLE_TYPE, 1);
}

static bool is_pprof_text(const Pprof__Profile *file, int64_t index, const char *text)
{
        const ProtobufCBinaryData *s = &file->string_table[index];

        ck_assert_uint_lt((uint64_t)index, file->n_string_table);
        return s->len == strlen(text) && (!s->len || memcmp(s->data, text, s->len) == 0);
}

static void check_number_label(const Pprof__Profile *file, const char *key, int64_t number, const char *unit)
{
        const Pprof__Sample *s = file->sample[0];
        size_t i = 0;

        while (i < s->n_label && !is_pprof_text(file, s->label[i]->key, key))
                i++;
        ck_assert_msg(i < s->n_label, "no label %s", key);
        ck_assert_int_eq(s->label[i]->str, 0);
        ck_assert_int_eq(s->label[i]->num, number);
        ck_assert(is_pprof_text(file, s->label[i]->num_unit, unit));
}

START_TEST(numeric_labels_and_default_type_come_back)
{
        _cleanup_profile_ struct profile p;
        _cleanup_free_ char *text = NULL;
        _cleanup_buf_ struct buf b, out;
        Pprof__Profile *file;
        bool are_stacks;
        struct error err;

        buf_init(&b, MiB(1));
        buf_init(&out, MiB(1));
        put_heap_file(&b);
        ck_assert_msg(pprof_decode(b.data, b.size, NULL, &p, &err) == ST_OK, "%s", err.text);
        text = profile_to_text(&p);
        ck_assert_ptr_nonnull(strstr(text, "{__pprof_default_type=alloc_space} {__pprof_num_bytes=512} "
                                           "{__pprof_num_request=-9223372036854775808 kilobytes} "
                                           "{__pprof_num_span=0 bytes}"));
        ck_assert_uint_eq(profile_count_samples(&p, &are_stacks), 1); /* not 4096 / 512: an allocation is one sample */
        ck_assert(are_stacks);
        ck_assert_int_eq(pprof_encode_plain(&p, &out, &err), ST_OK);
        file = pprof__profile__unpack(NULL, out.size, out.data);
        ck_assert_ptr_nonnull(file);
        ck_assert_uint_eq(file->n_sample, 1);
        ck_assert_uint_eq(file->sample[0]->n_label, 3);
        check_number_label(file, "bytes", 512, "");
        check_number_label(file, "request", INT64_MIN, "kilobytes");
        check_number_label(file, "span", 0, "bytes");
        ck_assert(is_pprof_text(file, file->default_sample_type, "alloc_space"));
        pprof__profile__free_unpacked(file, NULL);
}
END_TEST

/* Types that differ by more than the name of their sample type come back, and each has a name of its own. */
START_TEST(sample_types_of_one_name_come_back)
{
        static const struct {
                const char *id, *name;
        } types[] = {
                { "process_cpu:cpu:nanoseconds:cpu:nanoseconds", "cpu" },
                { "process_cpu:samples:count:cpu:nanoseconds", "samples" },
                { "process_cpu:samples:count::", "process_cpu_samples" },
                { "exceptions:samples:count::", "exceptions_samples" },
                { "block:delay:nanoseconds::", "block_delay" },
                { "mutex:delay:nanoseconds::", "mutex_delay" },
                { "block:contentions:count::", "block_contentions" },
                { "mutex:contentions:count:contentions:count", "mutex_contentions" },
                { "memory:alloc:bytes:space:bytes", "memory_alloc_bytes" },
                { "memory:alloc:count:space:bytes", "memory_alloc_count" },
                { "memory:live:count:space:bytes", "memory_live_count_space_bytes" },
                { "memory:live:count::", "memory_live_count" },
                { "wall:wall:nanoseconds:cpu:nanoseconds", "wall_wall" },
                { "x:wall:nanoseconds::", "x_wall_nanoseconds" },
                { "y:x_wall:nanoseconds::", "y_x_wall" },
        };
        enum { COUNT = sizeof types / sizeof *types };
        _cleanup_profile_ struct profile p, back, named;
        _cleanup_buf_ struct buf b;
        Pprof__Profile *file;
        struct error err;

        ck_assert_int_eq(profile_init(&p, MiB(1), NULL), ST_OK);
        for (uint32_t i = 0; i < COUNT; i++) {
                struct profile_sample s = { .value = (int64_t)i + 1 };
                uint32_t number;

                ck_assert_int_eq(profile_type_add_id(&p, types[i].id, 1000, &s.type, NULL), ST_OK);
                ck_assert_int_eq(profile_add_stack(&p, NULL, 0, &s.stack, NULL), ST_OK);
                ck_assert_int_eq(profile_add_sample(&p, &s, &number, NULL), ST_OK);
        }
        p.first_shown_type = 1;
        buf_init(&b, MiB(1));
        ck_assert_int_eq(pprof_encode_plain(&p, &b, &err), ST_OK);
        file = pprof__profile__unpack(NULL, b.size, b.data);
        ck_assert_ptr_nonnull(file);
        ck_assert_uint_eq(file->n_sample_type, COUNT);
        for (uint32_t i = 0; i < COUNT; i++)
                ck_assert_msg(is_pprof_text(file, file->sample_type[i]->type, types[i].name), "%s", types[i].name);
        for (size_t i = 0; i < file->n_comment; i++)
                ck_assert_int_eq(file->string_table[file->comment[i]].data[0], '#'); /* not shown by readers */
        ck_assert(is_pprof_text(file, file->default_sample_type, "cpu"));
        pprof__profile__free_unpacked(file, NULL);

        ck_assert_msg(pprof_decode(b.data, b.size, NULL, &back, &err) == ST_OK, "%s", err.text);
        ck_assert_uint_eq(back.types.count, COUNT);
        ck_assert(back.states_types);
        ck_assert_int_eq(pyroscope_name_types(&back, NULL, &err), ST_OK); /* which names types of other files */
        for (uint32_t i = 0; i < COUNT; i++) {
                const struct profile_type *t = &back.types.items[back.samples.items[i].type];
                const bool has_period = strstr(types[i].id, ":cpu:nanoseconds") != NULL;

                ck_assert_str_eq(profile_text(&back, t->id), types[i].id);
                ck_assert_int_eq(t->period, has_period ? 1000 : 0);
                ck_assert_int_eq(back.samples.items[i].value, i + 1);
        }
        /* A sender's name of the profile is that of its types. */
        ck_assert_int_eq(pprof_decode(b.data, b.size, "heap", &named, &err), ST_OK);
        ck_assert_str_eq(profile_text(&named, named.types.items[4].id), "heap:block_delay:nanoseconds:cpu:nanoseconds");
        ck_assert(!named.states_types);
}
END_TEST

START_TEST(comments_that_state_no_type_are_ignored)
{
        static const char *const comments[] = { "built by make", TYPE_COMMENT_PREFIX "cpu = a:b",
                                                TYPE_COMMENT_PREFIX "cpu = a:b:c:d:e:f", TYPE_COMMENT_PREFIX "cpux",
                                                TYPE_COMMENT_PREFIX };
        _cleanup_profile_ struct profile p;
        _cleanup_buf_ struct buf b;
        struct error err;

        buf_init(&b, MiB(1));
        put_file(&b, &good_file);
        for (size_t i = 0; i < sizeof comments / sizeof *comments; i++)
                wire_put_bytes(&b, PPROF_STRING_TABLE, comments[i], strlen(comments[i]));
        for (uint64_t i = 0; i < 20; i++) /* some of them outside of the table */
                wire_put_varint(&b, PPROF_COMMENT, i);
        wire_put_varint(&b, PPROF_COMMENT, UINT64_MAX);
        ck_assert_msg(pprof_decode(b.data, b.size, NULL, &p, &err) == ST_OK, "%s", err.text);
        ck_assert(!p.states_types);
        ck_assert_str_eq(profile_text(&p, p.types.items[1].id), "process_cpu:cpu:nanoseconds:cpu:nanoseconds");
}
END_TEST

START_TEST(dangling_references_are_refused)
{
        static const struct {
                size_t member;
                uint64_t value;
                const char *text;
        } cases[] = {
                { offsetof(struct file, location_in_sample), 5, "refers to unknown location 5" },
                { offsetof(struct file, location_in_sample), 0, "refers to unknown location 0" },
                { offsetof(struct file, function_in_line), 51, "refers to unknown function 51" },
                { offsetof(struct file, string_in_function), 10, "string index 10 is outside the table of 10" },
                { offsetof(struct file, string_in_function), (uint64_t)-1, "string index -1 is outside" },
                { offsetof(struct file, second_location_id), 900,
                  "two locations with id 900; it may be several concatenated profiles" },
                { offsetof(struct file, second_location_id), 0, "location 1 has no id" },
        };
        struct error err;
        struct profile p;

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                struct file q = good_file;

                memcpy((char *)&q + cases[i].member, &cases[i].value, sizeof cases[i].value);
                ck_assert_msg(decode_file(&q, &p, &err) == ST_BAD_DATA, "case %zu", i);
                ck_assert_msg(strstr(err.text, cases[i].text), "case %zu: %s", i, err.text);
        }
}
END_TEST

/* Also where all ids differ: such a profile would have the texts of another one. */
START_TEST(concatenated_profiles_are_refused)
{
        struct file q = good_file;
        _cleanup_buf_ struct buf b;
        struct error err;
        struct profile p;

        buf_init(&b, KiB(64));
        put_file(&b, &q);
        wire_put_varint(&b, PPROF_TIME_NANOS, 1700000000000000000); /* of a second profile without tables */
        ck_assert_int_eq(pprof_decode(b.data, b.size, NULL, &p, &err), ST_BAD_DATA);
        ck_assert_msg(strstr(err.text, "several concatenated profiles"), "%s", err.text);
}
END_TEST

/*
 * Senders without mappings may number them nevertheless; go tool pprof takes such a location for one of an unknown
 * mapping.
 */
START_TEST(a_location_of_an_unknown_mapping_is_one_without_mapping)
{
        static const uint64_t ids[] = { 0, 8, UINT64_MAX };
        _cleanup_free_ char *expected = NULL;

        for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
                struct file q = good_file;
                struct error err;
                _cleanup_profile_ struct profile p;
                _cleanup_free_ char *text = NULL;

                q.mapping_in_location = ids[i];
                q.mapping_in_second_location = ids[i];
                ck_assert_msg(decode_file(&q, &p, &err) == ST_OK, "%s", err.text);
                text = profile_to_text(&p);
                ck_assert_ptr_nonnull(strstr(text, "[0 0x55b87a6bc15a] [0 0x55b87a6bc1b3 work||:12]\n"));
                if (expected)
                        ck_assert_str_eq(text, expected);
                else
                        expected = steal_ptr(text);
        }
}
END_TEST

/* ---- drop_frames and keep_frames ---- */

/* A file under construction; numbers are assigned at the first use. */
struct named_file {
        struct buf b;
        char strings[64][2048];
        size_t string_count, function_count, location_count;
};

static uint64_t add_text(struct named_file *f, const char *text)
{
        for (size_t i = 0; i < f->string_count; i++)
                if (strcmp(f->strings[i], text) == 0)
                        return i;
        ck_assert_uint_lt(f->string_count, sizeof f->strings / sizeof *f->strings);
        snprintf(f->strings[f->string_count], sizeof *f->strings, "%s", text);
        return f->string_count++;
}

/* A location of functions, the outermost first, separated by ','; "NAME=LINKAGE" has a linkage name. */
static uint64_t add_named_location(struct named_file *f, const char *names)
{
        _cleanup_free_ char *copy = strdup(names);
        size_t first = f->function_count + 1, m, l;

        for (char *at = copy, *name; (name = strsep(&at, ","));) {
                char *linkage = strchr(name, '=');

                if (linkage)
                        *linkage++ = 0;
                m = wire_begin(&f->b, PPROF_FUNCTION);
                wire_put_varint(&f->b, PPROF_ID, ++f->function_count);
                wire_put_varint(&f->b, PPROF_FUNCTION_NAME, add_text(f, name));
                wire_put_varint(&f->b, PPROF_FUNCTION_SYSTEM_NAME, add_text(f, linkage ? linkage : name));
                wire_end(&f->b, m);
        }
        m = wire_begin(&f->b, PPROF_LOCATION);
        wire_put_varint(&f->b, PPROF_ID, ++f->location_count);
        for (size_t i = f->function_count; i >= first; i--) {
                l = wire_begin(&f->b, PPROF_LOCATION_LINE);
                wire_put_varint(&f->b, PPROF_LINE_FUNCTION_ID, i);
                wire_end(&f->b, l);
        }
        wire_end(&f->b, m);
        return f->location_count;
}

/* A file with one sample. @param stack  locations from the root, separated by ';'. */
static void put_named_file(struct named_file *f, const char *drop, const char *keep, const char *stack)
{
        _cleanup_free_ char *copy = strdup(stack);
        uint64_t locations[16];
        size_t count = 0, m;

        f->string_count = f->function_count = f->location_count = 0;
        buf_init(&f->b, MiB(1));
        add_text(f, "");
        for (char *at = copy, *names; (names = strsep(&at, ";"));)
                locations[count++] = add_named_location(f, names);
        m = wire_begin(&f->b, PPROF_SAMPLE_TYPE);
        wire_put_varint(&f->b, PPROF_VALUE_TYPE_TYPE, add_text(f, "space"));
        wire_put_varint(&f->b, PPROF_VALUE_TYPE_UNIT, add_text(f, "bytes"));
        wire_end(&f->b, m);
        m = wire_begin(&f->b, PPROF_SAMPLE);
        while (count)
                wire_put_varint(&f->b, PPROF_SAMPLE_LOCATION_ID, locations[--count]);
        wire_put_varint(&f->b, PPROF_SAMPLE_VALUE, 1);
        wire_end(&f->b, m);
        wire_put_varint(&f->b, PPROF_DROP_FRAMES, add_text(f, drop));
        wire_put_varint(&f->b, PPROF_KEEP_FRAMES, add_text(f, keep));
        for (size_t i = 0; i < f->string_count; i++)
                wire_put_bytes(&f->b, PPROF_STRING_TABLE, f->strings[i], strlen(f->strings[i]));
}

/* The functions of the first sample from the root, as in put_named_file() without linkage names. */
static void list_stack_names(const struct profile *p, struct buf *ret)
{
        const struct profile_stack *s = &p->stacks.items[p->samples.items[0].stack];

        for (uint32_t i = s->location_count; i-- > 0;) {
                const struct profile_location *l = &p->locations.items[p->stack_locations.items[s->first_location + i]];

                for (uint32_t k = l->line_count; k-- > 0;) {
                        if (ret->size)
                                buf_append_u8(ret, k + 1 == l->line_count ? ';' : ',');
                        buf_append_str(ret, profile_text(p, p->lines.items[l->first_line + k].function));
                }
        }
}

static void check_kept_frames(const char *drop, const char *keep, const char *stack, const char *expected,
                              const char *note)
{
        static struct named_file f;
        _cleanup_buf_ struct buf names;
        struct profile p;
        struct error err;

        put_named_file(&f, drop, keep, stack);
        buf_init(&names, KiB(4));
        ck_assert_msg(pprof_decode(f.b.data, f.b.size, NULL, &p, &err) == ST_OK, "%s", err.text);
        list_stack_names(&p, &names);
        ck_assert_str_eq(buf_cstr(&names), expected);
        ck_assert_msg(*note ? strstr(p.note, note) != NULL : !*p.note, "%s", p.note);
        profile_deinit(&p);
        buf_deinit(&f.b);
}

/* The expected stacks are those of go tool pprof. */
START_TEST(frame_expressions_end_a_stack_at_their_caller)
{
        static const struct {
                const char *drop, *keep, *stack, *expected;
        } cases[] = {
                { "malloc", "", "main;foo;malloc", "main;foo" },
                { "malloc", "", "main;bar;malloc;leaf", "main;bar" },
                { "malloc", "", "main;malloc;callback;malloc", "main" },   /* the one nearest to the root */
                { "start|malloc", "", "start;main;malloc", "start;main" }, /* not above the first other function */
                { "start|malloc", "", "start;malloc", "start;malloc" },
                { "malloc", "", "malloc2;xmalloc", "malloc2;xmalloc" }, /* whole names */
                { "m.*", "main|malloc", "main;malloc;memcpy;leaf", "main;malloc" },
                { "", "main", "main;malloc", "main;malloc" },
                { "malloc", "", "root;main,outer,malloc,inner;leaf",
                  "root;main,outer" }, /* the caller of an inlined function */
                { "malloc", "", "main;malloc,inner;leaf", "main" },
                { "malloc", "", "main;outer,malloc,inner,malloc,leaf", "main;outer" },
                { "operator new", "", "main;operator new(unsigned long)", "main" },
                { "f|\\(anonymous namespace\\)::g", "", "main;(anonymous namespace)::g(int)=_Z1g", "main" },
                { "a::operator\\(\\)", "", "main;a::operator()(int)=_Z1a", "main" },
                { "work", "", "main;.work", "main" },
                { "(?i)MALLOC|free", "", "main;malloc", "main" },
                { "free|(?i)MALLOC", "", "main;malloc", "main" },
                { "\\Qa|(\\E|malloc", "", "main;malloc", "main" },
                { "[]|x]|mall[[:alpha:]|]", "", "main;|", "main" },
                /* names of C++ without template arguments, unless the sender has already simplified them */
                { "a::allocate", "", "main;a<b<int> >::allocate(int)", "main" },
                { "a::allocate", "", "main;a<int>::allocate=_Z1a", "main;a<int>::allocate" },
                { "C\\.<init>", "", "main;C.<init>", "main" },
                { "a::operator<", "", "main;a::operator<(a const&)", "main" },
        };

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
                check_kept_frames(cases[i].drop, cases[i].keep, cases[i].stack, cases[i].expected, "");
}
END_TEST

/* The expression of an allocator has more bytes than one of a query may have. */
START_TEST(long_expressions_drop_frames)
{
        char drop[LIMIT_REGEX_BYTES * 3], flagged[sizeof drop + 16];
        size_t n = (size_t)snprintf(drop, sizeof drop, "first(_[a|b])?");

        while (n + 40 < sizeof drop)
                n += (size_t)snprintf(drop + n, sizeof drop - n, "|(std|my)::allocator_%zu::allocate", n);
        snprintf(drop + n, sizeof drop - n, "|last");
        check_kept_frames(drop, "", "main;first_a", "main", "");
        check_kept_frames(drop, "", "main;last", "main", "");
        check_kept_frames(drop, "", "main;my::allocator_14::allocate", "main", "");
        check_kept_frames(drop, drop, "main;last", "main;last", "");
        snprintf(flagged, sizeof flagged, "(?is)%s|\\QX|Y", drop);
        check_kept_frames(flagged, "", "main;LAST", "main", "");
        check_kept_frames(flagged, "", "main;x|y", "main", "");
        check_kept_frames(drop, "", "main;my::allocator_15::allocate", "main;my::allocator_15::allocate", "");
}
END_TEST

START_TEST(unusable_expressions_drop_nothing_and_are_noted)
{
        static const char *const bad[] = { "malloc|(", "malloc|a{1000}{1000}", "malloc|\\pL" };
        char name[2048], stack[2100];

        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
                check_kept_frames(bad[i], "", "main;malloc", "main;malloc", "drop_frames and keep_frames are ignored");
                check_kept_frames("malloc", bad[i], "main;malloc", "main;malloc", "are ignored");
        }
        memset(name, 'a', sizeof name - 1);
        name[sizeof name - 1] = 0;
        snprintf(stack, sizeof stack, "main;malloc;%s", name);
        check_kept_frames("malloc", "", stack, "main", "");
        check_kept_frames("malloc|(a{0,40}){0,20}b", "", stack, stack, "too many steps");
}
END_TEST

/* A stack is truncated after its frames are dropped. */
START_TEST(frame_expressions_do_not_count_as_frames)
{
        static struct named_file f;
        struct profile p;
        struct error err;
        _cleanup_buf_ struct buf names;
        size_t m;

        put_named_file(&f, "malloc", "", "main;malloc;leaf");
        m = wire_begin(&f.b, PPROF_SAMPLE);
        for (uint32_t i = 0; i < 2 * LIMIT_STACK_FRAMES; i++)
                wire_put_varint(&f.b, PPROF_SAMPLE_LOCATION_ID, 3);
        wire_put_varint(&f.b, PPROF_SAMPLE_LOCATION_ID, 2);
        wire_put_varint(&f.b, PPROF_SAMPLE_LOCATION_ID, 1);
        wire_put_varint(&f.b, PPROF_SAMPLE_VALUE, 1);
        wire_end(&f.b, m);
        ck_assert_msg(pprof_decode(f.b.data, f.b.size, NULL, &p, &err) == ST_OK, "%s", err.text);
        ck_assert_uint_eq(p.samples.count, 2);
        ck_assert_uint_eq(p.samples.items[0].stack, p.samples.items[1].stack);
        buf_init(&names, KiB(1));
        list_stack_names(&p, &names);
        ck_assert_str_eq(buf_cstr(&names), "main");
        profile_deinit(&p);
        buf_deinit(&f.b);
}
END_TEST

START_TEST(a_sample_has_one_value_per_type)
{
        struct file q = good_file;
        struct error err;
        struct profile p;

        q.values = 1;
        ck_assert_int_eq(decode_file(&q, &p, &err), ST_BAD_DATA);
        q.values = 300; /* more than permitted */
        ck_assert_int_eq(decode_file(&q, &p, &err), ST_BAD_DATA);
        q = good_file;
        q.no_types = true;
        ck_assert_int_eq(decode_file(&q, &p, &err), ST_BAD_DATA);
        ck_assert_ptr_nonnull(strstr(err.text, "no sample type"));
}
END_TEST

START_TEST(truncated_file_fails_or_decodes)
{
        _cleanup_buf_ struct buf b;

        buf_init(&b, MiB(1));
        put_file(&b, &good_file);
        for (size_t n = 0; n < b.size; n++) {
                _cleanup_free_ uint8_t *copy = malloc(n + 1);
                struct profile p;

                memcpy(copy, b.data, n);
                if (pprof_decode(copy, n, NULL, &p, NULL) == ST_OK)
                        profile_deinit(&p);
        }
}
END_TEST

START_TEST(a_gzip_bomb_is_too_big)
{
        _cleanup_free_ uint8_t *zeros = calloc(1, LIMIT_HTTP_BODY_BYTES + 1);
        _cleanup_buf_ struct buf b;
        struct profile p;
        struct error err;

        buf_init(&b, MiB(1));
        ck_assert_int_eq(gzip_compress(zeros, LIMIT_HTTP_BODY_BYTES + 1, 9, &b, NULL), ST_OK);
        ck_assert_int_eq(pprof_decode(b.data, b.size, NULL, &p, &err), ST_TOO_BIG);
        ck_assert_str_eq(err.text, "pprof file: gzip data unpacks to more than 67108864 bytes");
}
END_TEST

START_TEST(data_compressed_twice_is_named)
{
        _cleanup_buf_ struct buf once, twice;
        struct profile p;
        struct error err;

        buf_init(&once, KiB(1));
        buf_init(&twice, KiB(1));
        ck_assert_int_eq(gzip_compress("\x32\0", 2, 6, &once, NULL), ST_OK);
        ck_assert_int_eq(gzip_compress(once.data, once.size, 6, &twice, NULL), ST_OK);
        ck_assert_int_eq(pprof_decode(twice.data, twice.size, NULL, &p, &err), ST_BAD_DATA);
        ck_assert_ptr_nonnull(strstr(err.text, "compressed twice with gzip"));
}
END_TEST

START_TEST(byte_order_marks_of_concatenated_texts_are_no_part_of_names)
{
        static const char text[] = "\xef\xbb\xbfmain;a 5\n\xef\xbb\xbf# comment\n\xef\xbb\xbf\n\xef\xbb\xbfmain;b 3\n";
        _cleanup_profile_ struct profile p;
        struct error err;

        ck_assert_msg(folded_decode(text, strlen(text), NULL, &p, &err) == ST_OK, "%s", err.text);
        ck_assert_uint_eq(p.samples.count, 2);
        ck_assert_uint_eq(p.locations.count, 3); /* one for main of both */
}
END_TEST

START_TEST(folded_lines_are_root_first)
{
        static const char text[] =
                "main;work;do_syscall_64_[k] 7\n\n# comment\r\nmain;a name with blanks 3\r\nmain;work 1";
        _cleanup_profile_ struct profile p;
        _cleanup_free_ char *got = NULL;
        struct error err;

        ck_assert_msg(folded_decode(text, strlen(text), NULL, &p, &err) == ST_OK, "%s", err.text);
        got = profile_to_text(&p);
        ck_assert_str_eq(got, "samples:samples:count:: count 0 t=0 d=0 v=1 "
                              "000000000000000000000000000000000000000000000000 [2 0x0 work||:0] [2 0x0 main||:0]\n"
                              "samples:samples:count:: count 0 t=0 d=0 v=3 "
                              "000000000000000000000000000000000000000000000000 [2 0x0 a name with blanks||:0] "
                              "[2 0x0 main||:0]\n"
                              "samples:samples:count:: count 0 t=0 d=0 v=7 "
                              "000000000000000000000000000000000000000000000000 [2k 0x0 do_syscall_64||:0] "
                              "[2 0x0 work||:0] [2 0x0 main||:0]\n");
        ck_assert_uint_eq(p.locations.count, 4); /* equal frames share one location */
        {
                struct profile q;

                ck_assert_int_eq(folded_decode("a;b 1\nc;d\n", 10, NULL, &q, &err), ST_BAD_DATA);
                ck_assert_str_eq(err.text, "line 2 of folded stacks: no count at the end");
                ck_assert_int_eq(folded_decode("a 99999999999999999999\n", 23, NULL, &q, &err), ST_BAD_DATA);
        }
}
END_TEST

static const char perf_text[] =
        "swapper     0     0.000000: PERF_RECORD_MMAP2 -1/0: [0xffffffff81000000(0x120bb08) @ 0xffffffff81000000 "
        "<4a5a9b0affb66c437abcd455d2738af879985fa9>]: ---p [kernel.kallsyms]_text\n"
        "my prog 1.5: x 28419  2847.589551: PERF_RECORD_MMAP2 28419/28419: [0x55b87a6bc000(0x1000) @ 0x1000 "
        "<5bd3ec2711b6971f6d2a611a719c73b36910dd78>]: r-xp /tmp/busy\n"
        "my prog 1.5: x 28419 [001]  2847.599673:   10101010 cpu-clock:pppH: \n"
        "\tffffffff81000123 do_syscall_64+0x3 ([kernel.kallsyms])\n"
        "\t            1161 inner(int, char)+0x21 (/tmp/busy)\n"
        "\t    55b87a6bc185 folded_in (inlined)\n"
        "\t    55b87a6bc185 outer+0x1f (/tmp/busy)\n"
        "\t           2724a [unknown] (/lib/libc.so.6)\n"
        "\n"
        "other    17/18 2848.599673: 1 cycles:u:  40115a main+0x1 (/bin/other)\n";

START_TEST(perf_script_caller_addresses_are_decremented)
{
        _cleanup_profile_ struct profile p;
        _cleanup_free_ char *got = NULL;
        struct error err;

        ck_assert_msg(perf_script_decode(perf_text, strlen(perf_text), 5000000000000, &p, &err) == ST_OK, "%s",
                      err.text);
        got = profile_to_text(&p);
        ck_assert_str_eq(got,
                         "perf:cycles:count:: count 0 t=5000000000000 d=0 v=1 "
                         "000000000000000000000000000000000000000000000000 {comm=other} {pid=17} "
                         "[1 0x40115a /bin/other@ main||:0]\n"
                         "process_cpu:cpu:nanoseconds:cpu:nanoseconds nanoseconds 0 t=4999000000000 d=0 v=10101010 "
                         "000000000000000000000000000000000000000000000000 {comm=my prog 1.5: x} {pid=28419} "
                         "[0k 0xffffffff81000123 [kernel.kallsyms]@4a5a9b0affb66c437abcd455d2738af879985fa9 "
                         "do_syscall_64||:0] "
                         "[1 0x1161 /tmp/busy@5bd3ec2711b6971f6d2a611a719c73b36910dd78 inner(int, char)||:0] "
                         "[1 0x1184 /tmp/busy@5bd3ec2711b6971f6d2a611a719c73b36910dd78 folded_in||:0 outer||:0] "
                         "[1 0x27249 /lib/libc.so.6@]\n");
}
END_TEST

START_TEST(malformed_perf_script_is_refused_with_line_number)
{
        struct profile p;
        struct error err;

        ck_assert_int_eq(perf_script_decode("hello world\n", 12, 0, &p, &err), ST_BAD_DATA);
        ck_assert_str_eq(err.text, "line 1 of perf script output: neither a header nor a frame: 'hello world'");
}
END_TEST

TEST_SUITE("pprof", process_addresses_become_file_offsets_of_the_build_id, placeholder_of_a_mapping_is_no_build_id,
           encoded_profile_round_trips, numeric_labels_and_default_type_come_back, sample_types_of_one_name_come_back,
           comments_that_state_no_type_are_ignored, dangling_references_are_refused, concatenated_profiles_are_refused,
           a_location_of_an_unknown_mapping_is_one_without_mapping, frame_expressions_end_a_stack_at_their_caller,
           long_expressions_drop_frames, unusable_expressions_drop_nothing_and_are_noted,
           frame_expressions_do_not_count_as_frames, a_sample_has_one_value_per_type, truncated_file_fails_or_decodes,
           a_gzip_bomb_is_too_big, data_compressed_twice_is_named,
           byte_order_marks_of_concatenated_texts_are_no_part_of_names, folded_lines_are_root_first,
           perf_script_caller_addresses_are_decremented, malformed_perf_script_is_refused_with_line_number)
