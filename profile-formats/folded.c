/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading: add_text_lines() splits the text into lines and calls one function per line, with a count
 * (add_folded_line()) or without (add_plain_line()); stack_builder.c splits the frames and adds the sample. The three
 * decoders differ in this function and in whether frames may be addresses. Fractions are rounded with the remainder of
 * the lines before, so that the sum is right.
 *
 * Writing: the text of each sample's stack is appended to one buf and looked up by its 128-bit hash; if it is known,
 * the text is removed again and the value added to its line. Lines are written at the end, in the order of their first
 * sample.
 *
 * Order: frames that are addresses, counts, lines, the decoders, the encoder.
 */
#include "profile-formats/folded.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/files/file.h"
#include "common/hash.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "profile-formats/number_map.h"
#include "profile-formats/profile.h"
#include "profile-formats/profile_type.h"
#include "profile-formats/stack_builder.h"

#define TWO_TO_63 9223372036854775808.0

#define BUILD_ID_LEAST 16 /* hexadecimal digits; fewer may be a file name */

static bool parse_prefixed_hex(const char *text, size_t n, uint64_t *ret)
{
        uint64_t v = 0;

        if (n < 3 || n > 18 || text[0] != '0' || text[1] != 'x')
                return false;
        for (size_t i = 2; i < n; i++) {
                unsigned c = (unsigned char)text[i];
                unsigned digit = c >= '0' && c <= '9'   ? c - '0'
                                 : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                 : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                        : 16;

                if (digit == 16)
                        return false;
                v = v << 4 | digit;
        }
        *ret = v;
        return true;
}

/* "OBJECT+0x1f2c" */
static bool parse_object_plus_offset(const char *text, size_t n, struct folded_address *ret)
{
        const char *plus = n ? memrchr(text, '+', n) : NULL;
        size_t size = plus ? (size_t)(plus - text) : 0;

        if (!size || !parse_prefixed_hex(plus + 1, n - size - 1, &ret->address))
                return false;
        ret->object = text;
        ret->object_size = size;
        return true;
}

/* "0x1f2c [OBJECT]" */
static bool parse_address_in_object(const char *text, size_t n, struct folded_address *ret)
{
        const char *blank = memchr(text, ' ', n);
        size_t size = blank ? (size_t)(blank - text) : 0;

        if (!size || n < size + 4 || blank[1] != '[' || text[n - 1] != ']' ||
            !parse_prefixed_hex(text, size, &ret->address))
                return false;
        ret->object = blank + 2;
        ret->object_size = n - size - 3;
        return true;
}

bool folded_parse_address(const char *text, size_t n, struct folded_address *ret)
{
        struct folded_address a = { .object = "" };

        if (n > 2 && text[0] == '[' && text[n - 1] == ']') {
                if (!parse_object_plus_offset(text + 1, n - 2, &a))
                        return false;
        } else if (!parse_prefixed_hex(text, n, &a.address) && !parse_address_in_object(text, n, &a) &&
                   !(memchr(text, '/', n) && parse_object_plus_offset(text, n, &a))) {
                return false; /* without a slash, "malloc+0x20" is a function */
        }
        if (a.object_size >= BUILD_ID_LEAST &&
            (!build_id_from_hex(&a.build_id, a.object, a.object_size) || build_id_is_placeholder(&a.build_id)))
                a.build_id = unknown_build_id;
        *ret = a;
        return true;
}

static bool is_folded_blank(char c)
{
        return c == ' ' || c == '\t' || c == '\r';
}

/* The start of the last word of a line, whose end is cut off where blanks begin. */
static size_t find_last_word(const char *line, size_t *n)
{
        size_t start;

        while (*n && is_folded_blank(line[*n - 1]))
                --*n;
        start = *n;
        while (start && !is_folded_blank(line[start - 1]))
                start--;
        return start;
}

#define COUNT_BYTES 64

/* A number in decimal notation, possibly with a fraction or an exponent. */
static bool parse_fraction(const char *text, size_t n, double *ret)
{
        char copy[COUNT_BYTES], *end;

        if (n == 0 || n >= sizeof copy)
                return false;
        memcpy(copy, text, n);
        copy[n] = 0;
        if (strspn(copy, "0123456789.eE+-") < n)
                return false;
        *ret = strtod(copy, &end);
        return !*end && isfinite(*ret);
}

static bool parse_integer(const char *text, size_t n, int64_t *ret)
{
        const bool is_negative = n && *text == '-';
        int64_t v = 0;

        for (size_t i = is_negative; i < n; i++) {
                if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(v, 10, &v) ||
                    __builtin_sub_overflow(v, text[i] - '0', &v))
                        return false;
        }
        if (n == is_negative || (!is_negative && v == INT64_MIN))
                return false;
        *ret = is_negative ? v : -v;
        return true;
}

/* The lines of one text. */
struct folded_reader {
        struct stack_builder *b;
        uint32_t type;
        double remainder;   /* of the fractions before, which are rounded to integers, so that their sum is right */
        bool has_one_count; /* a line whose frames do not end in a number, too */
};

/* Parse the count that ends a line, and shorten *n to the frames before it. */
static enum status parse_folded_count(struct folded_reader *r, const char *line, size_t *n, int64_t *ret,
                                      struct error *err)
{
        const size_t start = find_last_word(line, n), size = *n - start;
        double fraction, rounded;

        if (!start || !parse_fraction(line + start, size, &fraction))
                return error_set(err, ST_BAD_DATA, "no count at the end");
        *n = start;
        while (*n && is_folded_blank(line[*n - 1])) /* counts may be aligned */
                --*n;
        if (parse_integer(line + start, size, ret))
                return ST_OK;
        rounded = floor(fraction + r->remainder + 0.5);
        if (rounded >= TWO_TO_63 || rounded < -TWO_TO_63)
                return error_set(err, ST_BAD_DATA, "the count %.*s is over 63 bits", (int)size, line + start);
        r->remainder += fraction - rounded;
        *ret = (int64_t)rounded;
        return ST_OK;
}

static bool ends_in_number(const char *line, size_t n)
{
        const size_t start = find_last_word(line, &n);
        int64_t ignored;

        return start && parse_integer(line + start, n - start, &ignored);
}

static enum status add_folded_line(struct folded_reader *r, const char *line, size_t n, struct error *err)
{
        struct profile_sample s = { .type = r->type };
        enum status st = parse_folded_count(r, line, &n, &s.value, err);

        if (st == ST_BAD_DATA && *line == '#') /* a comment without a blank */
                return ST_OK;
        r->has_one_count = r->has_one_count || !ends_in_number(line, n);
        return st || !s.value ? st : stack_builder_add_text(r->b, line, n, &s, err);
}

static enum status add_plain_line(struct folded_reader *r, const char *line, size_t n, struct error *err)
{
        struct profile_sample s = { .type = r->type, .value = 1 };

        while (n && (line[n - 1] == '\r' || line[n - 1] == ' '))
                n--;
        r->has_one_count = true;
        return stack_builder_add_text(r->b, line, n, &s, err);
}

static bool is_blank_line(const char *line, size_t n)
{
        while (n && is_folded_blank(line[n - 1]))
                n--;
        return n == 0;
}

/* A mark with a blank after it; names may begin with one, too, such as those of private methods of JavaScript. */
static bool is_comment_line(const char *line, size_t n)
{
        return *line == '#' && (n == 1 || is_folded_blank(line[1]));
}

/* The end of the line at `at`; *size_ret: that of the line and its end. Without any '\n', '\r' ends lines. */
static size_t measure_text_line(const char *at, const char *end, char line_end, size_t *size_ret)
{
        const char *eol = memchr(at, line_end, (size_t)(end - at));
        const size_t n = (size_t)((eol ? eol : end) - at);

        *size_ret = n + (eol != NULL);
        return n;
}

#define BYTE_ORDER_MARK "\xef\xbb\xbf" /* of UTF-8 */

/* The size of a mark at the start of a line, which each of several concatenated texts may have. */
static size_t measure_mark(const char *line, size_t n)
{
        return n >= 3 && memcmp(line, BYTE_ORDER_MARK, 3) == 0 ? 3 : 0;
}

typedef enum status add_line_fn(struct folded_reader *r, const char *line, size_t n, struct error *err);

static enum status add_text_lines(struct stack_builder *b, const void *data, size_t n, const char *type_id,
                                  add_line_fn *add, struct error *err)
{
        const char *at = n ? data : "", *const end = at + n;
        const char line_end = memchr(at, '\n', n) ? '\n' : '\r';
        struct folded_reader r = { .b = b };
        uint32_t number = 0;
        enum status st = profile_type_add_id(b->p, type_id ? type_id : "samples:samples:count::", 0, &r.type, err);

        for (size_t size = 0; !st && at < end; at += size) {
                const size_t whole = measure_text_line(at, end, line_end, &size), mark = measure_mark(at, whole);
                const char *line = at + mark;
                const size_t length = whole - mark;

                number++;
                if (!is_blank_line(line, length) && !is_comment_line(line, length))
                        st = add(&r, line, length, err);
                if (st)
                        error_prefix(err, st, "line %u of folded stacks", number);
        }
        if (!st && b->p->samples.count && !r.has_one_count)
                snprintf(b->p->note, sizeof b->p->note,
                         "each line ends in two numbers, as those of difffolded.pl; the first is taken for a part of "
                         "the frame");
        return st;
}

static enum status decode_text_lines(const void *data, size_t n, const char *type_id, bool addresses, add_line_fn *add,
                                     struct profile *ret, struct error *err)
{
        struct profile p;
        struct stack_builder b = { .p = &p, .addresses = addresses };
        enum status st = profile_init(&p, LIMIT_PROFILE_MEMORY_BYTES, err);

        if (st)
                return st;
        profile_limit_work(&p, n);
        st = add_text_lines(&b, data, n, type_id, add, err);
        stack_builder_deinit(&b);
        p.max_work = 0; /* additions by the caller are not part of the input */
        if (st)
                profile_deinit(&p);
        else
                *ret = p;
        return st;
}

enum status folded_decode(const void *data, size_t n, const char *type_id, struct profile *ret, struct error *err)
{
        return decode_text_lines(data, n, type_id, false, add_folded_line, ret, err);
}

enum status folded_decode_addresses(const void *data, size_t n, const char *type_id, struct profile *ret,
                                    struct error *err)
{
        return decode_text_lines(data, n, type_id, true, add_folded_line, ret, err);
}

enum status folded_decode_lines(const void *data, size_t n, const char *type_id, struct profile *ret, struct error *err)
{
        return decode_text_lines(data, n, type_id, false, add_plain_line, ret, err);
}

struct folded_line {
        size_t start, size; /* in the text */
        int64_t value;
};

struct folded_encoder {
        const struct profile *p;
        const char *root_label;
        struct buf text; /* of all distinct stacks */
        struct number_map seen;
        struct folded_line *lines; /* by number in seen */
        size_t capacity;
};

/* ';' and line ends separate frames and stacks. */
static void append_folded_text(struct folded_encoder *e, const char *text)
{
        for (const char *c = text; *c; c++)
                buf_append_u8(&e->text, *c == ';' ? ':' : *c == '\n' || *c == '\r' ? ' ' : (uint8_t)*c);
}

static void append_folded_frame(struct folded_encoder *e, const char *name, bool is_kernel)
{
        append_folded_text(e, name);
        if (is_kernel)
                buf_append_str(&e->text, "_[k]");
}

static void put_folded_address(struct folded_encoder *e, const struct profile_location *l)
{
        const char *file = l->mapping == PROFILE_NONE ? "" : profile_text(e->p, e->p->mappings.items[l->mapping].file);

        buf_printf(&e->text, "0x%" PRIx64, l->address);
        if (*file) {
                buf_append_str(&e->text, file[0] == '[' ? " " : " [");
                append_folded_text(e, path_base(file));
                buf_append_str(&e->text, file[0] == '[' ? "" : "]");
        }
        if (l->frame_type == PROFILE_FRAME_KERNEL)
                buf_append_str(&e->text, "_[k]");
}

static void put_folded_location(struct folded_encoder *e, const struct profile_location *l)
{
        if (l->line_count == 0)
                put_folded_address(e, l);
        for (uint32_t i = l->line_count; i-- > 0;) {
                const struct profile_line *line = &e->p->lines.items[l->first_line + i];

                append_folded_frame(e, line->function ? profile_text(e->p, line->function) : "[unknown]",
                                    l->frame_type == PROFILE_FRAME_KERNEL);
                if (i)
                        buf_append_u8(&e->text, ';');
        }
}

static void put_root_frame(struct folded_encoder *e, const struct profile_sample *s)
{
        for (uint32_t i = 0; e->root_label && i < s->label_count; i++) {
                const struct profile_label *l = &e->p->labels.items[s->first_label + i];

                if (strcmp(profile_text(e->p, l->key), e->root_label) == 0)
                        append_folded_frame(e, profile_text(e->p, l->value), false);
        }
}

static void put_folded_stack(struct folded_encoder *e, const struct profile_sample *s)
{
        const struct profile_stack *stack = &e->p->stacks.items[s->stack];
        size_t start = e->text.size;

        put_root_frame(e, s);
        for (uint32_t i = stack->location_count; i-- > 0;) {
                if (e->text.size > start)
                        buf_append_u8(&e->text, ';');
                put_folded_location(e, &e->p->locations.items[e->p->stack_locations.items[stack->first_location + i]]);
        }
        if (e->text.size == start)
                buf_append_str(&e->text, "[no stack]");
}

/* Add the value to the line of an equal stack, or append a new line. */
static enum status add_folded_sample(struct folded_encoder *e, const struct profile_sample *s, struct error *err)
{
        size_t start = e->text.size;
        struct number_key key = { 0 };
        struct hash128 hash;
        uint32_t number;
        bool fresh;
        enum status st;

        put_folded_stack(e, s);
        st = buf_status(&e->text, err, "folded stacks");
        if (st)
                return st;
        hash = hash_bytes128(e->text.data + start, e->text.size - start);
        memcpy(key.parts, hash.bytes, sizeof hash.bytes);
        st = number_map_get(&e->seen, &key, &number, &fresh, err);
        if (st)
                return st;
        if (!array_reserve(&e->lines, &e->capacity, number))
                return error_no_memory(err);
        if (fresh)
                e->lines[number] = (struct folded_line){ start, e->text.size - start, 0 };
        else
                e->text.size = start;
        if (__builtin_add_overflow(e->lines[number].value, s->value, &e->lines[number].value))
                e->lines[number].value = s->value < 0 ? INT64_MIN : INT64_MAX;
        return ST_OK;
}

static bool is_folded_type(const struct profile *p, uint32_t type, const char *sample_type)
{
        if (!sample_type)
                return type == p->samples.items[0].type;
        return profile_type_has_part(profile_text(p, p->types.items[type].id), TYPE_SAMPLE_TYPE, sample_type);
}

enum status folded_encode(const struct profile *p, const char *sample_type, const char *root_label, struct buf *ret,
                          struct error *err)
{
        struct folded_encoder e = { .p = p, .root_label = root_label };
        enum status st = ST_OK;

        buf_init(&e.text, LIMIT_PROFILE_MEMORY_BYTES);
        for (uint32_t i = 0; !st && i < p->samples.count; i++)
                if (is_folded_type(p, p->samples.items[i].type, sample_type))
                        st = add_folded_sample(&e, &p->samples.items[i], err);
        for (uint32_t i = 0; !st && i < e.seen.count; i++) {
                buf_append(ret, e.text.data + e.lines[i].start, e.lines[i].size);
                buf_printf(ret, " %" PRId64 "\n", e.lines[i].value);
        }
        buf_deinit(&e.text);
        number_map_deinit(&e.seen);
        free(e.lines);
        return st ? st : buf_status(ret, err, "folded stacks");
}
