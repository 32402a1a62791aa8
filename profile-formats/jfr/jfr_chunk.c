/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metadata is a tree of elements with attributes. Its classes and fields are kept in two arrays: a class has a
 * range of `fields`; classes are sorted by id once all are read, and only then fields are linked to their classes
 * (link_classes()), because a class may refer to later ones.
 *
 * A value is read by walking the fields of its class. Only the fields of the outermost structure whose names are known
 * (enum jfr_name) are kept in struct jfr_value; nested structures are only skipped. Of the arrays, "frames" is kept as
 * a reader, from which the decoder reads one frame after another. Nothing is copied: texts are borrowed from the
 * chunk.
 *
 * Bounds: LIMIT_JFR_DEPTH for nesting, `steps_left` for values that take no bytes, and the bytes left for counts and
 * sizes (read_length()).
 *
 * Order: names of fields and classes, numbers and strings, values, the metadata, header and events of the chunk.
 */
#include "profile-formats/jfr/jfr_chunk.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory/array.h"
#include "common/limits.h"

#define MAGIC "FLR"
#define HEADER_BYTES 68
#define MAJOR_VERSION 2
#define COMPRESSED_INTEGERS 1 /* of the last byte of the header */
#define METADATA_TYPE 0
#define STEPS_PER_BYTE 16
#define LEAST_STEPS 65536

static const char *const name_texts[JFR_NAMES] = {
        [JFR_START_TIME] = "startTime",
        [JFR_DURATION] = "duration",
        [JFR_STACK_TRACE] = "stackTrace",
        [JFR_STATE] = "state",
        [JFR_CONTEXT_ID] = "contextId",
        [JFR_SPAN_ID] = "spanId",
        [JFR_SPAN_NAME] = "spanName",
        [JFR_TLAB_SIZE] = "tlabSize",
        [JFR_ALLOCATION_SIZE] = "allocationSize",
        [JFR_WEIGHT] = "weight",
        [JFR_SAMPLES] = "samples",
        [JFR_SAMPLING_PERIOD] = "samplingPeriod",
        [JFR_SIZE] = "size",
        [JFR_ID] = "id",
        [JFR_NAME] = "name",
        [JFR_VALUE] = "value",
        [JFR_TYPE] = "type",
        [JFR_METHOD] = "method",
        [JFR_LINE_NUMBER] = "lineNumber",
        [JFR_FRAMES] = "frames",
        [JFR_TRUNCATED] = "truncated",
        [JFR_STRING] = "string",
        [JFR_DESCRIPTION] = "description",
};

static const char *const class_names[JFR_KINDS] = {
        [JFR_BOOLEAN] = "boolean",
        [JFR_BYTE] = "byte",
        [JFR_CHAR] = "char",
        [JFR_SHORT] = "short",
        [JFR_INT] = "int",
        [JFR_LONG] = "long",
        [JFR_FLOAT] = "float",
        [JFR_DOUBLE] = "double",
        [JFR_TEXT] = "java.lang.String",
        [JFR_STACK_TRACES] = "jdk.types.StackTrace",
        [JFR_METHODS] = "jdk.types.Method",
        [JFR_CLASSES] = "java.lang.Class",
        [JFR_SYMBOLS] = "jdk.types.Symbol",
        [JFR_THREAD_STATES] = "jdk.types.ThreadState",
        [JFR_FRAME_TYPES] = "jdk.types.FrameType",
        [JFR_STACK_FRAMES] = "jdk.types.StackFrame",
        [JFR_EXECUTION_SAMPLE] = "jdk.ExecutionSample",
        [JFR_CPU_TIME_SAMPLE] = "jdk.CPUTimeSample",
        [JFR_NATIVE_METHOD_SAMPLE] = "jdk.NativeMethodSample",
        [JFR_WALL_CLOCK_SAMPLE] = "profiler.WallClockSample",
        [JFR_ALLOCATION_IN_NEW_TLAB] = "jdk.ObjectAllocationInNewTLAB",
        [JFR_ALLOCATION_OUTSIDE_TLAB] = "jdk.ObjectAllocationOutsideTLAB",
        [JFR_ALLOCATION_SAMPLE] = "jdk.ObjectAllocationSample",
        [JFR_LIVE_OBJECT] = "profiler.LiveObject",
        [JFR_MALLOC] = "profiler.Malloc",
        [JFR_MONITOR_ENTER] = "jdk.JavaMonitorEnter",
        [JFR_PARK] = "jdk.ThreadPark",
        [JFR_ACTIVE_SETTING] = "jdk.ActiveSetting",
};

bool jfr_detect(const void *data, size_t n)
{
        return n >= sizeof MAGIC && memcmp(data, MAGIC, sizeof MAGIC) == 0;
}

static bool is_metadata_text(const struct jfr_text *t, const char *text)
{
        return t->size == strlen(text) && memcmp(t->data, text, t->size) == 0;
}

/* ---- numbers and strings ---- */

bool jfr_read_number(struct reader *r, uint64_t *ret)
{
        uint64_t value = 0;
        uint8_t byte;

        for (unsigned shift = 0; shift < 56; shift += 7) {
                if (!reader_u8(r, &byte))
                        return false;
                value |= (uint64_t)(byte & 0x7f) << shift;
                if (byte < 0x80) {
                        *ret = value;
                        return true;
                }
        }
        if (!reader_u8(r, &byte))
                return false;
        *ret = value | (uint64_t)byte << 56;
        return true;
}

/* The number of elements that follow, each of at least one byte. */
static bool read_length(struct reader *r, uint64_t *ret)
{
        return jfr_read_number(r, ret) && *ret <= reader_left(r);
}

/* A reference to the pool of strings, which no known field uses, gives JFR_STRING_NONE. */
static bool read_jfr_string(struct reader *r, struct jfr_string *ret)
{
        const uint8_t *start;
        uint64_t n, ignored;
        uint8_t encoding;

        *ret = (struct jfr_string){ 0 };
        if (!reader_u8(r, &encoding))
                return false;
        switch (encoding) {
        case 0: /* null */
        case 1: /* empty */
                return true;
        case 2: /* of the pool of strings */
                return jfr_read_number(r, &ignored);
        case 3:
        case 5:
                if (!read_length(r, &n) || !reader_bytes(r, n, &start))
                        return false;
                ret->encoding = encoding == 3 ? JFR_STRING_UTF8 : JFR_STRING_LATIN1;
                ret->text = (struct jfr_text){ start, n };
                return true;
        case 4:
                if (!read_length(r, &n) || !reader_bytes(r, 0, &start))
                        return false;
                while (n--)
                        if (!jfr_read_number(r, &ignored))
                                return false;
                ret->encoding = JFR_STRING_CHARS;
                ret->text = (struct jfr_text){ start, (size_t)(r->data + r->pos - start) };
                return true;
        default:
                return false;
        }
}

/* ---- values ---- */

struct value_reader {
        struct jfr_chunk *chunk;
        struct reader *r;
};

static bool read_structure(const struct value_reader *v, const struct jfr_class *class, struct jfr_value *ret,
                           unsigned depth);

static bool read_primitive(struct reader *r, enum jfr_kind kind, uint64_t *number, struct jfr_string *string)
{
        const uint8_t *bytes;
        uint8_t byte;

        *number = 0;
        switch (kind) {
        case JFR_BOOLEAN:
        case JFR_BYTE:
                if (!reader_u8(r, &byte))
                        return false;
                *number = byte;
                return true;
        case JFR_FLOAT:
                return reader_bytes(r, 4, &bytes);
        case JFR_DOUBLE:
                return reader_bytes(r, 8, &bytes);
        case JFR_TEXT:
                return read_jfr_string(r, string);
        default:
                return jfr_read_number(r, number);
        }
}

static bool is_primitive(const struct jfr_class *class)
{
        return class->kind >= JFR_BOOLEAN && class->kind <= JFR_TEXT;
}

static bool read_single(const struct value_reader *v, const struct jfr_field *f, struct jfr_value *ret, unsigned depth)
{
        const struct jfr_class *class = f->class < v->chunk->class_count ? &v->chunk->classes[f->class] : NULL;
        struct jfr_string string = { 0 };
        uint64_t number = 0;

        if (v->chunk->steps_left-- == 0) {
                v->chunk->steps_left = 0;
                return false;
        }
        if (f->is_pool) {
                if (!jfr_read_number(v->r, &number))
                        return false;
        } else if (!class) {
                return false;
        } else if (is_primitive(class)) {
                if (!read_primitive(v->r, class->kind, &number, &string))
                        return false;
        } else {
                return read_structure(v, class, NULL, depth + 1);
        }
        if (ret && f->name < JFR_NAMES) {
                ret->numbers[f->name] = number;
                ret->strings[f->name] = string;
                ret->has[f->name] = true;
        }
        return true;
}

static bool read_array(const struct value_reader *v, const struct jfr_field *f, struct jfr_value *ret, unsigned depth)
{
        const uint8_t *start;
        uint64_t count;

        if (!read_length(v->r, &count) || !reader_bytes(v->r, 0, &start))
                return false;
        for (uint64_t i = 0; i < count; i++)
                if (!read_single(v, f, NULL, depth))
                        return false;
        if (ret && f->name == JFR_FRAMES && !f->is_pool) {
                reader_init(&ret->frames, start, (size_t)(v->r->data + v->r->pos - start));
                ret->frame_count = count;
                ret->frame_class = f->class;
                ret->has[JFR_FRAMES] = true;
        }
        return true;
}

static bool read_structure(const struct value_reader *v, const struct jfr_class *class, struct jfr_value *ret,
                           unsigned depth)
{
        if (depth > LIMIT_JFR_DEPTH)
                return false;
        for (uint32_t i = 0; i < class->field_count; i++) {
                const struct jfr_field *f = &v->chunk->fields[class->first_field + i];

                if (!(f->is_array ? read_array : read_single)(v, f, ret, depth))
                        return false;
        }
        return true;
}

bool jfr_read_value(struct jfr_chunk *c, struct reader *r, const struct jfr_class *class, struct jfr_value *ret)
{
        const struct value_reader v = { c, r };
        struct jfr_string string;
        uint64_t number;

        if (ret)
                *ret = (struct jfr_value){ 0 };
        if (is_primitive(class)) /* the pool of strings */
                return read_primitive(r, class->kind, &number, &string);
        return read_structure(&v, class, ret, 0);
}

/* ---- the metadata ---- */

struct metadata_reader {
        struct jfr_chunk *chunk;
        struct reader r;
        bool too_many;
};

static bool read_metadata_text(struct metadata_reader *m, const struct jfr_text **ret)
{
        uint64_t i;

        if (!jfr_read_number(&m->r, &i) || i >= m->chunk->text_count)
                return false;
        *ret = &m->chunk->texts[i];
        return true;
}

static bool parse_decimal(const struct jfr_text *t, uint64_t *ret)
{
        uint64_t value = 0;

        for (size_t i = 0; i < t->size; i++)
                if (t->data[i] < '0' || t->data[i] > '9' || __builtin_mul_overflow(value, 10u, &value) ||
                    __builtin_add_overflow(value, (uint64_t)(t->data[i] - '0'), &value))
                        return false;
        *ret = value;
        return t->size > 0;
}

static enum jfr_kind find_class_kind(const struct jfr_text *name)
{
        for (unsigned i = JFR_OTHER + 1; i < JFR_KINDS; i++)
                if (is_metadata_text(name, class_names[i]))
                        return i;
        return JFR_OTHER;
}

static uint8_t find_field_name(const struct jfr_text *name)
{
        unsigned i = 0;

        while (i < JFR_NAMES && !is_metadata_text(name, name_texts[i]))
                i++;
        return (uint8_t)i;
}

/* Attributes of a class or a field. */
static bool read_attributes(struct metadata_reader *m, struct jfr_class *class, struct jfr_field *field)
{
        uint64_t count, dimension;

        if (!read_length(&m->r, &count))
                return false;
        while (count--) {
                const struct jfr_text *key, *value;

                if (!read_metadata_text(m, &key) || !read_metadata_text(m, &value))
                        return false;
                if (is_metadata_text(key, "name")) {
                        class->kind = find_class_kind(value);
                        class->name = *value;
                        field->name = find_field_name(value);
                } else if (is_metadata_text(key, "id")) {
                        if (!parse_decimal(value, &class->id))
                                return false;
                } else if (is_metadata_text(key, "class")) {
                        if (!parse_decimal(value, &field->type_id))
                                return false;
                } else if (is_metadata_text(key, "constantPool")) {
                        field->is_pool = is_metadata_text(value, "true");
                } else if (is_metadata_text(key, "dimension")) {
                        if (!parse_decimal(value, &dimension) || dimension > 1)
                                return false;
                        field->is_array = dimension == 1;
                }
        }
        return true;
}

static bool add_class(struct metadata_reader *m, struct jfr_class *class)
{
        struct jfr_chunk *c = m->chunk;

        class->first_field = (uint32_t)c->field_count;
        if (c->class_count >= LIMIT_JFR_CLASSES || !array_reserve(&c->classes, &c->class_capacity, c->class_count)) {
                m->too_many = true;
                return false;
        }
        c->classes[c->class_count++] = *class;
        return true;
}

/* To the class that was added last. */
static bool add_field(struct metadata_reader *m, const struct jfr_field *field)
{
        struct jfr_chunk *c = m->chunk;

        if (c->field_count >= LIMIT_JFR_FIELDS || !array_reserve(&c->fields, &c->field_capacity, c->field_count)) {
                m->too_many = true;
                return false;
        }
        c->fields[c->field_count++] = *field;
        c->classes[c->class_count - 1].field_count++;
        c->classes[c->class_count - 1].has_stack |= field->name == JFR_STACK_TRACE;
        return true;
}

/* Elements are nested: root, metadata, class, field, annotation. */
static bool read_metadata_element(struct metadata_reader *m, bool inside_class, unsigned depth)
{
        struct jfr_field field = { .class = UINT32_MAX };
        struct jfr_class class = { 0 };
        const struct jfr_text *name;
        bool is_class;
        uint64_t count;

        if (depth > LIMIT_JFR_DEPTH || !read_metadata_text(m, &name) || !read_attributes(m, &class, &field))
                return false;
        is_class = !inside_class && is_metadata_text(name, "class");
        if (is_class && !add_class(m, &class))
                return false;
        if (inside_class && is_metadata_text(name, "field") && !add_field(m, &field))
                return false;
        if (!read_length(&m->r, &count))
                return false;
        while (count--)
                if (!read_metadata_element(m, inside_class || is_class, depth + 1))
                        return false;
        return true;
}

static bool read_metadata_texts(struct metadata_reader *m)
{
        struct jfr_chunk *c = m->chunk;
        struct jfr_string s;
        uint64_t count;

        if (!read_length(&m->r, &count))
                return false;
        c->texts = calloc(count + 1, sizeof *c->texts);
        m->too_many = !c->texts;
        if (m->too_many)
                return false;
        for (; c->text_count < count; c->text_count++) {
                if (!read_jfr_string(&m->r, &s))
                        return false;
                c->texts[c->text_count] = s.text;
        }
        return true;
}

static int compare_class_ids(const void *a, const void *b)
{
        const struct jfr_class *x = a, *y = b;

        return x->id < y->id ? -1 : x->id > y->id;
}

const struct jfr_class *jfr_chunk_find_class(const struct jfr_chunk *c, uint64_t id)
{
        const struct jfr_class key = { .id = id };

        return c->class_count ? bsearch(&key, c->classes, c->class_count, sizeof *c->classes, compare_class_ids) : NULL;
}

static void link_classes(struct jfr_chunk *c)
{
        qsort(c->classes, c->class_count, sizeof *c->classes, compare_class_ids);
        for (size_t i = 0; i < c->field_count; i++) {
                const struct jfr_class *class = jfr_chunk_find_class(c, c->fields[i].type_id);

                c->fields[i].class = class ? (uint32_t)(class - c->classes) : UINT32_MAX;
        }
}

static enum status read_metadata(struct jfr_chunk *c, struct error *err)
{
        struct metadata_reader m = { .chunk = c };
        uint64_t size, type, ignored;

        reader_init(&m.r, c->data, c->size);
        if (!reader_seek(&m.r, c->metadata_offset) || !jfr_read_number(&m.r, &size) || !jfr_read_number(&m.r, &type) ||
            type != METADATA_TYPE || !jfr_read_number(&m.r, &ignored) || !jfr_read_number(&m.r, &ignored) ||
            !jfr_read_number(&m.r, &ignored) || !read_metadata_texts(&m) || !read_metadata_element(&m, false, 0) ||
            !c->class_count)
                return m.too_many ? error_set(err, ST_TOO_BIG, "the metadata of the JFR file is too large")
                                  : error_set(err, ST_BAD_DATA, "the metadata of the JFR file is malformed at 0x%zx",
                                              m.r.pos);
        link_classes(c);
        return ST_OK;
}

/* ---- the chunk ---- */

static enum status read_chunk_header(const void *data, size_t n, struct jfr_chunk *c, struct error *err)
{
        const uint8_t *magic, *flags;
        uint64_t size = 0, pools, start, duration, start_ticks;
        uint16_t major = 0, minor;
        struct reader r;

        reader_init(&r, data, n);
        r.big_endian = true;
        if (!jfr_detect(data, n))
                return error_set(err, ST_BAD_DATA, "not a JFR file: it does not begin with FLR");
        if (!reader_bytes(&r, sizeof MAGIC, &magic) || !reader_u16(&r, &major) || !reader_u16(&r, &minor) ||
            !reader_u64(&r, &size) || !reader_u64(&r, &pools) || !reader_u64(&r, &c->metadata_offset) ||
            !reader_u64(&r, &start) || !reader_u64(&r, &duration) || !reader_u64(&r, &start_ticks) ||
            !reader_u64(&r, &c->ticks_per_s) || !reader_bytes(&r, 4, &flags) || size < HEADER_BYTES || size > n ||
            c->metadata_offset < HEADER_BYTES || c->metadata_offset >= size)
                return error_set(err, ST_BAD_DATA,
                                 "the JFR file is cut off or not finished: a chunk of %" PRIu64 " bytes in %zu", size,
                                 n);
        if (major != MAJOR_VERSION || !(flags[3] & COMPRESSED_INTEGERS))
                return error_set(err, ST_UNSUPPORTED,
                                 "JFR version %u.%u%s is not supported; send version 2 with compressed "
                                 "integers",
                                 major, minor, flags[3] & COMPRESSED_INTEGERS ? "" : " without compressed integers");
        if (size > UINT32_MAX)
                return error_set(err, ST_TOO_BIG, "a chunk of the JFR file has more than 4 GiB");
        c->data = data;
        c->size = (size_t)size;
        c->start_unix_ns = start <= INT64_MAX ? (int64_t)start : 0;
        c->duration_ns = duration <= INT64_MAX ? (int64_t)duration : 0;
        c->steps_left = size * STEPS_PER_BYTE + LEAST_STEPS;
        return ST_OK;
}

bool jfr_chunk_is_complete(const void *data, size_t n)
{
        struct jfr_chunk c = { 0 };

        return read_chunk_header(data, n, &c, NULL) != ST_BAD_DATA;
}

enum status jfr_chunk_open(const void *data, size_t n, struct jfr_chunk *ret, struct error *err)
{
        struct jfr_chunk c = { 0 };
        enum status st = read_chunk_header(data, n, &c, err);

        if (!st)
                st = read_metadata(&c, err);
        if (st)
                jfr_chunk_close(&c);
        else
                *ret = c;
        return st;
}

void jfr_chunk_close(struct jfr_chunk *c)
{
        free(c->texts);
        free(c->classes);
        free(c->fields);
}

enum status jfr_chunk_next_event(const struct jfr_chunk *c, size_t *pos, struct jfr_event *ret, struct error *err)
{
        size_t at = *pos ? *pos : HEADER_BYTES;
        struct reader r;
        uint64_t size = 0;

        if (at >= c->size)
                return ST_NOT_FOUND;
        reader_init(&r, c->data + at, c->size - at);
        if (!jfr_read_number(&r, &size) || size > c->size - at || size <= r.pos ||
            !reader_sub(&r, size - r.pos, &ret->payload) || !jfr_read_number(&ret->payload, &ret->type_id))
                return error_set(err, ST_BAD_DATA, "an event of %" PRIu64 " bytes at 0x%zx is outside of the JFR file",
                                 size, at);
        *pos = at + (size_t)size;
        return ST_OK;
}
