/* SPDX-License-Identifier: Apache-2.0 */
#include "parquet/value_read.h"

#include <endian.h>
#include <string.h>

#include "parquet/encoding.h"
#include "parquet/format.h"

static enum status report_bad_values(const struct read_page *p, struct error *err)
{
        return error_at(err, ST_BAD_DATA, p->payload.base + p->payload.pos, "a page's values are cut off or malformed");
}

static bool is_bytes_node(const struct parquet_node *n)
{
        return n->physical == PHYSICAL_BYTE_ARRAY || n->physical == PHYSICAL_FIXED;
}

static size_t number_width(uint8_t physical)
{
        return physical == PHYSICAL_INT32 || physical == PHYSICAL_FLOAT ? 4 : 8;
}

/* A number as a 64-bit integer or the bits of a double. */
static int64_t widen_number(uint8_t physical, uint64_t raw)
{
        uint32_t low = (uint32_t)raw;
        int64_t bits;
        double wide;
        float single;

        switch (physical) {
        case PHYSICAL_INT32:
                return (int32_t)low;
        case PHYSICAL_FLOAT:
                memcpy(&single, &low, sizeof single);
                wide = single;
                memcpy(&bits, &wide, sizeof bits);
                return bits;
        default:
                return (int64_t)raw;
        }
}

static bool read_plain_numbers(struct reader *r, uint8_t physical, int64_t *ret, size_t count)
{
        size_t width = number_width(physical);
        const uint8_t *from;

        if (!reader_bytes(r, count * width, &from))
                return false;
        if (width == 8) {
                memcpy(ret, from, count * 8);
                for (size_t i = 0; i < count; i++)
                        ret[i] = (int64_t)le64toh((uint64_t)ret[i]);
                return true;
        }
        for (size_t i = 0; i < count; i++) {
                uint32_t raw;

                memcpy(&raw, from + i * 4, sizeof raw);
                ret[i] = widen_number(physical, le32toh(raw));
        }
        return true;
}

/* BYTE_STREAM_SPLIT: the first bytes of all numbers, then the second bytes, and so on. */
static bool read_split_numbers(struct reader *r, uint8_t physical, int64_t *ret, size_t count)
{
        size_t width = number_width(physical);
        const uint8_t *from;

        if (!reader_bytes(r, count * width, &from))
                return false;
        for (size_t i = 0; i < count; i++) {
                uint64_t raw = 0;

                for (size_t k = 0; k < width; k++)
                        raw |= (uint64_t)from[k * count + i] << (8 * k);
                ret[i] = widen_number(physical, raw);
        }
        return true;
}

static bool read_bools(struct reader *r, int64_t *ret, size_t count)
{
        const uint8_t *from;

        if (!reader_bytes(r, (count + 7) / 8, &from))
                return false;
        for (size_t i = 0; i < count; i++)
                ret[i] = from[i / 8] >> (i % 8) & 1;
        return true;
}

static struct parquet_bytes *grow_dict(struct value_reader *v, size_t count)
{
        struct parquet_column *c = v->column;
        size_t want = (size_t)c->dict_count + count;

        if (want > v->dict_capacity || !c->dict) {
                size_t capacity = want < 2 * (size_t)v->dict_capacity ? 2 * (size_t)v->dict_capacity : want;
                struct parquet_bytes *dict = realloc(c->dict, (capacity ? capacity : 1) * sizeof *dict);

                if (!dict)
                        return NULL;
                c->dict = dict;
                v->dict_capacity = (uint32_t)capacity;
        }
        return c->dict + c->dict_count;
}

static bool read_plain_bytes(struct reader *r, const struct parquet_node *n, struct parquet_bytes *ret, size_t count)
{
        const uint8_t *at = r->data + r->pos, *end = r->data + r->size;

        for (size_t i = 0; i < count; i++) {
                uint32_t size = n->type_length;

                if (n->physical == PHYSICAL_BYTE_ARRAY) {
                        if ((size_t)(end - at) < sizeof size)
                                return false;
                        memcpy(&size, at, sizeof size);
                        size = le32toh(size);
                        at += sizeof size;
                }
                if (size > (size_t)(end - at))
                        return false;
                ret[i] = (struct parquet_bytes){ at, size };
                at += size;
        }
        r->pos = (size_t)(at - r->data);
        return true;
}

/* DELTA_LENGTH_BYTE_ARRAY: all lengths, then all bytes. */
static bool read_delta_length(struct reader *r, struct parquet_bytes *ret, size_t count)
{
        _cleanup_free_ int64_t *lengths = malloc(count * sizeof *lengths);

        if (!lengths || !decode_delta(r, lengths, count))
                return false;
        for (size_t i = 0; i < count; i++) {
                if (lengths[i] < 0 || !reader_bytes(r, (uint64_t)lengths[i], &ret[i].data))
                        return false;
                ret[i].size = (size_t)lengths[i];
        }
        return true;
}

enum status value_read_dictionary(struct value_reader *v, struct read_page *p, struct error *err)
{
        bool ok;

        if (v->dict_ints || v->column->dict_count || v->node->physical == PHYSICAL_BOOLEAN)
                return error_at(err, ST_BAD_DATA, p->payload.base, "unexpected dictionary page");
        if (p->encoding != ENCODING_PLAIN && p->encoding != ENCODING_PLAIN_DICTIONARY)
                return error_set(err, ST_UNSUPPORTED, "unsupported dictionary encoding %d", p->encoding);
        if (p->value_count > p->payload.size) /* the smallest value has one byte */
                return report_bad_values(p, err);
        if (is_bytes_node(v->node)) {
                struct parquet_bytes *dict = grow_dict(v, p->value_count);

                if (!dict)
                        return error_no_memory(err);
                ok = read_plain_bytes(&p->payload, v->node, dict, p->value_count);
                if (ok)
                        v->column->dict_count = v->page_dict_count = p->value_count;
        } else {
                v->dict_ints = malloc((p->value_count ? p->value_count : 1) * sizeof *v->dict_ints);
                if (!v->dict_ints)
                        return error_no_memory(err);
                v->dict_ints_count = p->value_count;
                ok = read_plain_numbers(&p->payload, v->node->physical, v->dict_ints, p->value_count);
        }
        return ok ? ST_OK : report_bad_values(p, err);
}

/* Codes of a dictionary with entry_count entries. */
static bool read_codes(struct reader *r, uint32_t *ret, size_t count, uint32_t entry_count)
{
        uint8_t width;
        uint32_t largest = 0;

        if (!reader_u8(r, &width) || !decode_hybrid(r, width, ret, count))
                return false;
        for (size_t i = 0; i < count; i++)
                largest = ret[i] > largest ? ret[i] : largest;
        return largest < entry_count;
}

static bool is_equal_value(const struct parquet_bytes *a, const struct parquet_bytes *b)
{
        return a->size == b->size && (!a->size || memcmp(a->data, b->data, a->size) == 0);
}

/* Assign codes to PLAIN values, already appended to the dictionary; equal neighbours share an entry. */
static void number_plain_bytes(struct parquet_column *c, const struct parquet_bytes *values, size_t at, size_t count)
{
        uint32_t first = c->dict_count;

        for (size_t i = 0; i < count; i++) {
                const struct parquet_bytes value = values[i];

                if (c->dict_count == first || !is_equal_value(&value, &c->dict[c->dict_count - 1]))
                        c->dict[c->dict_count++] = value;
                c->codes[at + i] = c->dict_count - 1;
        }
}

static enum status read_byte_values(struct value_reader *v, struct read_page *p, size_t at, size_t count,
                                    struct error *err)
{
        struct parquet_column *c = v->column;
        struct parquet_bytes *dict;
        bool ok;

        switch (p->encoding) {
        case ENCODING_RLE_DICTIONARY:
        case ENCODING_PLAIN_DICTIONARY:
                ok = read_codes(&p->payload, c->codes + at, count, v->page_dict_count);
                return ok ? ST_OK : report_bad_values(p, err);
        case ENCODING_PLAIN:
        case ENCODING_DELTA_LENGTH_BYTE_ARRAY:
                if (p->encoding == ENCODING_DELTA_LENGTH_BYTE_ARRAY && v->node->physical != PHYSICAL_BYTE_ARRAY)
                        return report_bad_values(p, err);
                dict = grow_dict(v, count);
                if (!dict)
                        return error_no_memory(err);
                ok = p->encoding == ENCODING_PLAIN ? read_plain_bytes(&p->payload, v->node, dict, count)
                                                   : read_delta_length(&p->payload, dict, count);
                if (!ok)
                        return report_bad_values(p, err);
                number_plain_bytes(c, dict, at, count);
                return ST_OK;
        default:
                return error_set(err, ST_UNSUPPORTED, "unsupported encoding %d of byte values", p->encoding);
        }
}

static uint32_t *scratch_codes(struct value_reader *v, size_t count)
{
        if (count > v->codes_capacity) {
                uint32_t *codes = realloc(v->codes, count * sizeof *codes);

                if (!codes)
                        return NULL;
                v->codes = codes;
                v->codes_capacity = count;
        }
        return v->codes;
}

/* RLE booleans: length of the runs, then the runs. */
static bool read_rle_bools(struct reader *r, uint32_t *codes, int64_t *ret, size_t count)
{
        struct reader runs;
        uint32_t size;

        if (!reader_u32(r, &size) || !reader_sub(r, size, &runs) || !decode_hybrid(&runs, 1, codes, count))
                return false;
        for (size_t i = 0; i < count; i++)
                ret[i] = codes[i] & 1;
        return true;
}

static enum status read_number_values(struct value_reader *v, struct read_page *p, int64_t *to, size_t count,
                                      struct error *err)
{
        uint8_t physical = v->node->physical;
        bool is_bool = physical == PHYSICAL_BOOLEAN;
        uint32_t *codes;
        bool ok;

        if (p->encoding == ENCODING_PLAIN) {
                ok = is_bool ? read_bools(&p->payload, to, count)
                             : read_plain_numbers(&p->payload, physical, to, count);
        } else if (p->encoding == ENCODING_BYTE_STREAM_SPLIT && !is_bool) {
                ok = read_split_numbers(&p->payload, physical, to, count);
        } else if (p->encoding == ENCODING_DELTA_BINARY_PACKED &&
                   (physical == PHYSICAL_INT32 || physical == PHYSICAL_INT64)) {
                ok = decode_delta(&p->payload, to, count);
                for (size_t i = 0; ok && physical == PHYSICAL_INT32 && i < count; i++)
                        to[i] = (int32_t)(uint64_t)to[i];
        } else if ((p->encoding == ENCODING_RLE && is_bool) || p->encoding == ENCODING_RLE_DICTIONARY ||
                   p->encoding == ENCODING_PLAIN_DICTIONARY) {
                codes = scratch_codes(v, count);
                if (!codes)
                        return error_no_memory(err);
                if (p->encoding == ENCODING_RLE) {
                        ok = read_rle_bools(&p->payload, codes, to, count);
                } else {
                        ok = read_codes(&p->payload, codes, count, v->dict_ints_count);
                        for (size_t i = 0; ok && i < count; i++)
                                to[i] = v->dict_ints[codes[i]];
                }
        } else {
                return error_set(err, ST_UNSUPPORTED, "unsupported encoding %d of numbers", p->encoding);
        }
        return ok ? ST_OK : report_bad_values(p, err);
}

enum status value_read_page(struct value_reader *v, struct read_page *p, size_t at, size_t count, struct error *err)
{
        if (!count)
                return ST_OK;
        if (is_bytes_node(v->node))
                return read_byte_values(v, p, at, count, err);
        return read_number_values(v, p, v->column->ints + at, count, err);
}

void value_reader_deinit(struct value_reader *v)
{
        free(v->dict_ints);
        free(v->codes);
}
