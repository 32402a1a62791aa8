/* SPDX-License-Identifier: Apache-2.0 */
#include "parquet/value_stats.h"

#include <endian.h>
#include <math.h>
#include <string.h>

#include "common/text/utf8.h"
#include "parquet/format.h"

static double bits_to_double(int64_t bits)
{
        double d;

        memcpy(&d, &bits, sizeof d);
        return d;
}

static int64_t double_to_bits(double d)
{
        int64_t bits;

        memcpy(&bits, &d, sizeof bits);
        return bits;
}

static int compare_bytes(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size)
{
        size_t n = a_size < b_size ? a_size : b_size;
        int order = n ? memcmp(a, b, n) : 0;

        if (order)
                return order;
        return a_size < b_size ? -1 : a_size > b_size;
}

bool stats_bound_ordered(const struct parquet_node *node, const struct stats_bound *a, const struct stats_bound *b)
{
        switch (node->physical) {
        case PHYSICAL_BYTE_ARRAY:
                return compare_bytes(a->bytes, a->size, b->bytes, b->size) <= 0;
        case PHYSICAL_DOUBLE:
                return bits_to_double(a->number) <= bits_to_double(b->number);
        default:
                return a->number <= b->number;
        }
}

static void number_bound(const struct parquet_node *node, int64_t number, struct stats_bound *ret)
{
        uint64_t le = htole64((uint64_t)number);

        *ret = (struct stats_bound){ .number = number, .exact = true, .present = true };
        ret->size = node->physical == PHYSICAL_BOOLEAN ? 1 : node->physical == PHYSICAL_INT32 ? 4 : 8;
        memcpy(ret->bytes, &le, ret->size);
}

/* Length of the longest prefix of at most STATS_BYTES bytes that does not split a character. */
static size_t find_prefix_size(const struct parquet_node *node, const uint8_t *s, size_t n)
{
        size_t len = 0;

        if (node->kind != PARQUET_STRING)
                return n < STATS_BYTES ? n : STATS_BYTES;
        while (len < n) {
                size_t next = utf8_sequence_length((const char *)s + len, n - len);

                if (!next || len + next > STATS_BYTES)
                        break;
                len += next;
        }
        return len;
}

/*
 * Make a truncated upper bound valid: drop trailing bytes that cannot be incremented, then increment the last one. In a
 * string only ASCII is incremented, to keep it valid UTF-8.
 */
static bool round_bound_up(const struct parquet_node *node, struct stats_bound *b)
{
        uint8_t last = node->kind == PARQUET_STRING ? 0x7e : 0xfe;

        while (b->size && b->bytes[b->size - 1] > last)
                b->size--;
        if (!b->size)
                return false;
        b->bytes[b->size - 1]++;
        return true;
}

static void bytes_bound(const struct column_builder *c, uint32_t code, bool is_max, struct stats_bound *ret)
{
        const struct byte_dict_entry *e = byte_dict_entry(&c->dict, code);
        const uint8_t *s = c->dict.bytes.data + e->offset;
        size_t n = e->size <= STATS_BYTES ? e->size : find_prefix_size(c->node, s, e->size);

        *ret = (struct stats_bound){ .size = (uint8_t)n, .exact = n == e->size, .present = true };
        if (n)
                memcpy(ret->bytes, s, n);
        if (is_max && !ret->exact)
                ret->present = round_bound_up(c->node, ret);
}

static void bytes_stats(const struct column_builder *c, size_t start, size_t end, struct value_stats *ret)
{
        const uint32_t *codes = (const uint32_t *)c->codes.data;
        uint32_t min = codes[start];
        uint32_t max = min;

        for (size_t i = start + 1; i < end; i++) {
                const struct byte_dict_entry *e, *low, *high;
                const uint8_t *bytes = c->dict.bytes.data;

                if (codes[i] == codes[i - 1])
                        continue;
                e = byte_dict_entry(&c->dict, codes[i]);
                low = byte_dict_entry(&c->dict, min);
                high = byte_dict_entry(&c->dict, max);
                if (compare_bytes(bytes + e->offset, e->size, bytes + low->offset, low->size) < 0)
                        min = codes[i];
                else if (compare_bytes(bytes + e->offset, e->size, bytes + high->offset, high->size) > 0)
                        max = codes[i];
        }
        bytes_bound(c, min, false, &ret->min);
        bytes_bound(c, max, true, &ret->max);
}

static void double_stats(const struct column_builder *c, size_t start, size_t end, struct value_stats *ret)
{
        const int64_t *values = (const int64_t *)c->ints.data;
        double min = bits_to_double(values[start]);
        double max = min;

        for (size_t i = start; i < end; i++) {
                double v = bits_to_double(values[i]);

                if (isnan(v)) {
                        ret->unordered = true;
                        return;
                }
                min = v < min ? v : min;
                max = v > max ? v : max;
        }
        number_bound(c->node, double_to_bits(min == 0 ? -0.0 : min), &ret->min);
        number_bound(c->node, double_to_bits(max == 0 ? 0.0 : max), &ret->max);
}

static void int_stats(const struct column_builder *c, size_t start, size_t end, struct value_stats *ret)
{
        const int64_t *values = (const int64_t *)c->ints.data;
        int64_t min = values[start];
        int64_t max = min;

        for (size_t i = start + 1; i < end; i++) {
                min = values[i] < min ? values[i] : min;
                max = values[i] > max ? values[i] : max;
        }
        number_bound(c->node, min, &ret->min);
        number_bound(c->node, max, &ret->max);
}

void value_stats_of(const struct column_builder *c, size_t start, size_t end, uint64_t null_count,
                    struct value_stats *ret)
{
        *ret = (struct value_stats){ .null_count = null_count, .value_count = end - start };
        if (start == end)
                return;
        if (column_is_bytes(c))
                bytes_stats(c, start, end, ret);
        else if (c->node->physical == PHYSICAL_DOUBLE)
                double_stats(c, start, end, ret);
        else
                int_stats(c, start, end, ret);
}

/* A bound that is missing on either side, if that side has values, is missing in the result. */
void value_stats_merge(const struct parquet_node *node, struct value_stats *to, const struct value_stats *from)
{
        if (from->value_count && !to->value_count) {
                to->min = from->min;
                to->max = from->max;
        } else if (from->value_count) {
                if (!from->min.present || !to->min.present)
                        to->min.present = false;
                else if (stats_bound_ordered(node, &from->min, &to->min))
                        to->min = from->min;
                if (!from->max.present || !to->max.present)
                        to->max.present = false;
                else if (stats_bound_ordered(node, &to->max, &from->max))
                        to->max = from->max;
        }
        to->null_count += from->null_count;
        to->value_count += from->value_count;
        to->unordered |= from->unordered;
}
