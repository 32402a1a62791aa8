/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/runtimes/python_name_cache.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory/array.h"

void python_name_cache_deinit(struct python_name_cache *n)
{
        for (size_t i = 0; i < n->count; i++)
                python_code_deinit(&n->items[i].code);
        free(n->items);
        id_table_deinit(&n->by_address);
        *n = (struct python_name_cache){ 0 };
}

static size_t count_code_bytes(const struct python_code *c)
{
        return c->name ? strlen(c->name) + strlen(c->file) + c->line_bytes : 0;
}

static void read_named_code(struct python_name_cache *n, const struct process_memory *m, const struct python_objects *o,
                            uint64_t addr, struct named_code *c)
{
        n->bytes -= count_code_bytes(&c->code);
        python_code_deinit(&c->code);
        c->is_readable = !python_code_read(m, o, addr, &c->code);
        n->bytes += count_code_bytes(&c->code);
}

/* The entry of the address, added if necessary. NULL without memory. */
static struct named_code *get_named_code(struct python_name_cache *n, uint64_t addr, bool *is_new_ret)
{
        uint32_t number;

        *is_new_ret = false;
        if (id_table_find(&n->by_address, &addr, sizeof addr, &number))
                return &n->items[number];
        if (!array_reserve(&n->items, &n->capacity, n->count) ||
            !id_table_put(&n->by_address, &addr, sizeof addr, (uint32_t)n->count))
                return NULL;
        *is_new_ret = true;
        n->items[n->count] = (struct named_code){ 0 };
        return &n->items[n->count++];
}

static const struct python_code *find_code(struct python_name_cache *n, const struct process_memory *m,
                                           const struct python_objects *o, uint64_t interval, uint64_t addr)
{
        struct python_code_key key;
        bool is_new;
        struct named_code *c = get_named_code(n, addr, &is_new);

        if (!c)
                return NULL;
        if (is_new || c->checked_in != interval) {
                bool is_code = !is_new && python_code_read_key(m, o, addr, &key);

                if (!c->is_readable || !is_code || memcmp(&key, &c->code.key, sizeof key) != 0)
                        read_named_code(n, m, o, addr, c);
                c->checked_in = interval;
        }
        return c->is_readable ? &c->code : NULL;
}

enum python_frame_state python_name_cache_locate(struct python_name_cache *n, const struct process_memory *m,
                                                 const struct python_objects *o, uint64_t interval, uint64_t code,
                                                 uint64_t detail, struct python_location *ret)
{
        const struct python_code *c = find_code(n, m, o, interval, code);
        uint64_t at = detail & ~PYTHON_DETAIL_GENERATOR, unit = 0;

        if (!c)
                return PYTHON_FRAME_UNREADABLE;
        if (at >= c->code_bytes)
                unit = (at - c->code_bytes) / 2;
        if (!(detail & PYTHON_DETAIL_GENERATOR) && (at < c->code_bytes || unit < c->key.first_traceable))
                return PYTHON_FRAME_INCOMPLETE;
        *ret = (struct python_location){ .name = c->name,
                                         .file = c->file,
                                         .line = python_line_find(c->lines, c->line_bytes, c->key.first_line, unit) };
        return PYTHON_FRAME_FOUND;
}
