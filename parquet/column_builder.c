/* SPDX-License-Identifier: Apache-2.0 */
#include "parquet/column_builder.h"

#include <string.h>

#include "common/limits.h"
#include "common/text/utf8.h"
#include "parquet/format.h"

void column_builder_init(struct column_builder *c, const struct parquet_node *node)
{
        *c = (struct column_builder){ .node = node };
        buf_init(&c->defs, LIMIT_PARQUET_CHUNK_VALUES);
        buf_init(&c->reps, LIMIT_PARQUET_CHUNK_VALUES);
        buf_init(&c->ints, LIMIT_PARQUET_CHUNK_VALUES * sizeof(int64_t));
        buf_init(&c->codes, LIMIT_PARQUET_CHUNK_VALUES * sizeof(uint32_t));
        byte_dict_init(&c->dict, LIMIT_PARQUET_CHUNK_BYTES / 2);
}

void column_builder_deinit(struct column_builder *c)
{
        buf_deinit(&c->defs);
        buf_deinit(&c->reps);
        buf_deinit(&c->ints);
        buf_deinit(&c->codes);
        byte_dict_deinit(&c->dict);
}

void column_builder_clear(struct column_builder *c)
{
        buf_clear(&c->defs);
        buf_clear(&c->reps);
        buf_clear(&c->ints);
        buf_clear(&c->codes);
        byte_dict_clear(&c->dict);
        c->plain_bytes = 0;
        c->slots = 0;
        c->announced = 0;
        c->rows = 0;
        c->next_rep = 0;
}

bool column_is_bytes(const struct column_builder *c)
{
        return c->node->physical == PHYSICAL_BYTE_ARRAY;
}

size_t column_value_count(const struct column_builder *c)
{
        return column_is_bytes(c) ? c->codes.size / sizeof(uint32_t) : c->ints.size / sizeof(int64_t);
}

uint64_t column_builder_bytes(const struct column_builder *c)
{
        return c->defs.size + c->reps.size + c->ints.size + c->codes.size + c->dict.bytes.size + c->dict.entries.size;
}

static void column_builder_fail(struct column_builder *c, enum status st)
{
        if (!c->failed)
                c->failed = st;
}

/* count slots of one definition level; without a list each is a row. */
static void put_slots(struct column_builder *c, uint8_t def, size_t count)
{
        if (c->node->max_def) {
                uint8_t *to = buf_reserve(&c->defs, count);

                if (!to) {
                        column_builder_fail(c, c->defs.failed);
                        return;
                }
                memset(to, def, count);
                buf_commit(&c->defs, count);
        }
        c->slots += count;
        if (c->node->max_rep == 0) {
                c->rows += count;
                c->announced += count;
                return;
        }
        for (size_t i = 0; i < count; i++) {
                column_builder_fail(c, buf_append_u8(&c->reps, c->next_rep));
                c->next_rep = 1;
        }
}

void column_put_int(struct column_builder *c, int64_t value)
{
        column_put_ints(c, &value, 1);
}

static bool value_fits_node(const struct column_builder *c, int64_t value)
{
        switch (c->node->physical) {
        case PHYSICAL_BOOLEAN:
                return value == 0 || value == 1;
        case PHYSICAL_INT32:
                return value >= INT32_MIN && value <= INT32_MAX;
        default:
                return true;
        }
}

void column_put_ints(struct column_builder *c, const int64_t *values, size_t count)
{
        if (column_is_bytes(c)) {
                column_builder_fail(c, ST_USAGE);
                return;
        }
        for (size_t i = 0; i < count; i++) {
                if (!value_fits_node(c, values[i]))
                        column_builder_fail(c, ST_USAGE);
        }
        put_slots(c, c->node->max_def, count);
        column_builder_fail(c, buf_append(&c->ints, values, count * sizeof *values));
}

static enum status append_valid_utf8(const char *s, size_t n, struct buf *ret)
{
        for (size_t i = 0; i < n;) {
                size_t len = utf8_sequence_length(s + i, n - i);

                if (len)
                        buf_append(ret, s + i, len);
                else
                        buf_append_str(ret, "\xef\xbf\xbd");
                i += len ? len : 1;
        }
        return ret->failed;
}

/* Rows are usually sorted: a value equal to the one before it needs no hash. */
static bool is_repeated_value(const struct column_builder *c, const void *data, size_t n, uint32_t *code_ret)
{
        const struct byte_dict_entry *last;

        if (!c->codes.size)
                return false;
        memcpy(code_ret, c->codes.data + c->codes.size - sizeof *code_ret, sizeof *code_ret);
        last = byte_dict_entry(&c->dict, *code_ret);
        return last->size == n && (n == 0 || memcmp(c->dict.bytes.data + last->offset, data, n) == 0);
}

/* byte_dict_add() of the text with U+FFFD in place of invalid bytes. */
static enum status add_repaired_text(struct column_builder *c, const void *data, size_t n, uint32_t *code_ret)
{
        _cleanup_buf_ struct buf repaired;
        enum status st;

        buf_init(&repaired, LIMIT_PARQUET_VALUE_BYTES);
        st = append_valid_utf8(data, n, &repaired);
        return st ? st : byte_dict_add(&c->dict, repaired.data, (uint32_t)repaired.size, code_ret);
}

void column_put_bytes(struct column_builder *c, const void *data, size_t n)
{
        uint32_t code;

        if (!column_is_bytes(c) || n > LIMIT_PARQUET_VALUE_BYTES) {
                column_builder_fail(c, column_is_bytes(c) ? ST_TOO_BIG : ST_USAGE);
                return;
        }
        if (!is_repeated_value(c, data, n, &code)) {
                bool is_valid = c->node->kind != PARQUET_STRING || utf8_valid(data, n);
                enum status st = is_valid ? byte_dict_add(&c->dict, data, (uint32_t)n, &code)
                                          : add_repaired_text(c, data, n, &code);

                if (st) {
                        column_builder_fail(c, st);
                        return;
                }
        }
        put_slots(c, c->node->max_def, 1);
        column_builder_fail(c, buf_append(&c->codes, &code, sizeof code));
        c->plain_bytes += 4 + byte_dict_entry(&c->dict, code)->size;
}

void column_put_null(struct column_builder *c, const struct parquet_node *node)
{
        if (node->repetition != REPETITION_OPTIONAL) {
                column_builder_fail(c, ST_USAGE);
                return;
        }
        if (c->node->max_rep && node->max_rep == 0) { /* a row whose list, or a group around it, is null */
                column_builder_fail(c, column_builder_status(c));
                c->rows++;
                c->announced++;
                c->next_rep = 0;
        }
        put_slots(c, node->max_def - 1, 1);
}

void column_put_nulls(struct column_builder *c, size_t count)
{
        if (c->node->repetition != REPETITION_OPTIONAL || c->node->max_rep)
                column_builder_fail(c, ST_USAGE);
        else
                put_slots(c, c->node->max_def - 1, count);
}

void column_put_list(struct column_builder *c, const struct parquet_node *node, uint64_t count)
{
        column_builder_fail(c, column_builder_status(c));
        c->rows++;
        c->next_rep = 0;
        c->announced += count ? count : 1;
        if (!count)
                put_slots(c, node->max_def, 1);
}

enum status column_builder_status(const struct column_builder *c)
{
        if (c->failed)
                return c->failed;
        return c->slots == c->announced ? ST_OK : ST_USAGE;
}
