/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/jfr/jfr_constants.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/limits.h"
#include "common/memory/array.h"

void jfr_constants_deinit(struct jfr_constants *c)
{
        number_map_deinit(&c->keys);
        free(c->items);
}

void jfr_constants_clear(struct jfr_constants *c)
{
        number_map_deinit(&c->keys);
        c->keys = (struct number_map){ 0 };
}

static bool is_pool_kind(enum jfr_kind kind)
{
        return kind >= JFR_STACK_TRACES && kind <= JFR_FRAME_TYPES;
}

static struct number_key make_constant_key(enum jfr_kind kind, uint64_t key)
{
        return (struct number_key){ { kind, (uint32_t)(key >> 32), (uint32_t)key } };
}

static enum status add_constant(struct jfr_constants *c, const struct jfr_chunk *chunk, const struct jfr_class *class,
                                uint64_t key, size_t offset, struct error *err)
{
        const struct number_key number_key = make_constant_key(class->kind, key);
        uint32_t number;
        bool fresh = false;
        enum status st = number_map_get(&c->keys, &number_key, &number, &fresh, err);

        if (st || !fresh)
                return st;
        if (number >= LIMIT_JFR_ENTRIES)
                return error_set(err, ST_TOO_BIG, "a chunk of the JFR file has more than %d constants",
                                 LIMIT_JFR_ENTRIES);
        if (!array_reserve(&c->items, &c->capacity, number))
                return error_no_memory(err);
        c->items[number] = (struct jfr_constant){ .offset = (uint32_t)offset,
                                                  .class = (uint32_t)(class - chunk->classes),
                                                  .memo = JFR_MEMO_UNSET };
        return ST_OK;
}

static enum status refuse_pools(const struct jfr_chunk *chunk, const struct reader *r, uint64_t type, struct error *err)
{
        return error_set(err, ST_BAD_DATA,
                         "the constant pools of the JFR file are malformed at 0x%zx, of the class %" PRIu64,
                         (size_t)(r->data + r->pos - chunk->data), type);
}

static enum status read_pool(struct jfr_constants *c, struct jfr_chunk *chunk, struct reader *r, struct error *err)
{
        const struct jfr_class *class;
        uint64_t type, count, key;
        enum status st = ST_OK;

        if (!jfr_read_number(r, &type) || !jfr_read_number(r, &count) || count > reader_left(r))
                return refuse_pools(chunk, r, 0, err);
        class = jfr_chunk_find_class(chunk, type);
        if (count && !class)
                return refuse_pools(chunk, r, type, err);
        while (!st && count--) {
                size_t offset;

                if (!jfr_read_number(r, &key))
                        return refuse_pools(chunk, r, type, err);
                offset = (size_t)(r->data + r->pos - chunk->data);
                if (!jfr_read_value(chunk, r, class, NULL))
                        return refuse_pools(chunk, r, type, err);
                if (is_pool_kind(class->kind))
                        st = add_constant(c, chunk, class, key, offset, err);
        }
        return st;
}

/* Time, duration, distance to the event before, mask, pools. */
enum status jfr_constants_read(struct jfr_constants *c, struct jfr_chunk *chunk, struct reader r, struct error *err)
{
        uint64_t ignored, count;
        uint8_t mask;
        enum status st = ST_OK;

        for (int i = 0; i < 3; i++)
                if (!jfr_read_number(&r, &ignored))
                        return refuse_pools(chunk, &r, 0, err);
        if (!reader_u8(&r, &mask) || !jfr_read_number(&r, &count) || count > reader_left(&r))
                return refuse_pools(chunk, &r, 0, err);
        while (!st && count--)
                st = read_pool(c, chunk, &r, err);
        return st;
}

struct jfr_constant *jfr_constants_find(const struct jfr_constants *c, enum jfr_kind kind, uint64_t key)
{
        const struct number_key number_key = make_constant_key(kind, key);
        uint32_t number;

        return number_map_find(&c->keys, &number_key, &number) ? &c->items[number] : NULL;
}

bool jfr_constant_read(struct jfr_chunk *chunk, const struct jfr_constant *constant, struct jfr_value *ret)
{
        struct reader r;

        if (!constant)
                return false;
        reader_init(&r, chunk->data + constant->offset, chunk->size - constant->offset);
        return jfr_read_value(chunk, &r, &chunk->classes[constant->class], ret);
}
