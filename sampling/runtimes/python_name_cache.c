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

/* Memory of the process, read within the work that is left. */
struct metered_memory {
        const struct process_memory *memory;
        struct python_name_cache *names;
        bool is_used_up;
};

#define READ_WORK 256 /* of a read, in bytes that cost as much */

static bool spend_work(struct python_name_cache *n, uint64_t bytes)
{
        if (bytes > n->work_left)
                return false;
        n->work_left -= bytes;
        return true;
}

static bool read_metered_memory(void *ctx, uint64_t addr, void *to, size_t n)
{
        struct metered_memory *m = ctx;

        m->is_used_up = m->is_used_up || !spend_work(m->names, n + READ_WORK);
        return !m->is_used_up && m->memory->read(m->memory->ctx, addr, to, n);
}

static void read_named_code(struct python_name_cache *n, const struct process_memory *m, const struct python_objects *o,
                            uint64_t addr, struct named_code *c)
{
        bool is_code = false;

        n->bytes -= count_code_bytes(&c->code);
        python_code_deinit(&c->code);
        c->line_unit = UINT64_MAX;
        c->state = python_code_read(m, o, addr, &c->code, &is_code)
                           ? is_code ? PYTHON_FRAME_UNREADABLE : PYTHON_FRAME_FREED
                           : PYTHON_FRAME_FOUND;
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
        n->items[n->count] = (struct named_code){ .state = PYTHON_FRAME_UNREADABLE };
        return &n->items[n->count++];
}

/* NULL without memory. */
static struct named_code *find_named_code(struct python_name_cache *n, const struct process_memory *m,
                                          const struct python_objects *o, uint64_t interval, uint64_t addr)
{
        struct metered_memory metered = { m, n, false };
        const struct process_memory memory = { read_metered_memory, &metered };
        struct python_code_key key;
        bool is_new, is_code;
        struct named_code *c = get_named_code(n, addr, &is_new);

        if (!c || (!is_new && c->checked_in == interval))
                return c;
        is_code = !is_new && python_code_read_key(&memory, o, addr, &key);
        if (c->state != PYTHON_FRAME_FOUND || !is_code || memcmp(&key, &c->code.key, sizeof key) != 0)
                read_named_code(n, &memory, o, addr, c);
        if (metered.is_used_up && c->state != PYTHON_FRAME_FOUND)
                c->state = PYTHON_FRAME_LIMIT;
        c->checked_in = interval;
        return c;
}

static uint32_t find_code_line(struct python_name_cache *n, enum python_lines format, struct named_code *c,
                               uint64_t unit)
{
        if (c->line_unit == unit)
                return c->line;
        if (!spend_work(n, c->code.line_bytes))
                return 0;
        c->line = python_line_find(format, c->code.lines, c->code.line_bytes, c->code.key.first_line, unit);
        c->line_unit = unit;
        return c->line;
}

/* The code unit of a frame's instruction; false when the frame is being set up. */
static bool find_frame_unit(const struct python_objects *o, const struct python_code *c, uint64_t detail, uint64_t *ret)
{
        uint64_t at = detail & ~PYTHON_DETAIL_GENERATOR;

        *ret = 0;
        if (o->lines != PYTHON_LINES_LOCATIONS) { /* f_lasti: -1 before the first instruction */
                if ((int32_t)at >= 0)
                        *ret = o->lines == PYTHON_LINES_RANGES ? (uint32_t)at : (uint32_t)at / 2;
                return true;
        }
        if (at >= c->code_bytes)
                *ret = (at - c->code_bytes) / 2;
        return detail & PYTHON_DETAIL_GENERATOR || (at >= c->code_bytes && *ret >= c->key.first_traceable);
}

enum python_frame_state python_name_cache_locate(struct python_name_cache *n, const struct process_memory *m,
                                                 const struct python_objects *o, uint64_t interval, uint64_t code,
                                                 uint64_t detail, struct python_location *ret)
{
        struct named_code *c = find_named_code(n, m, o, interval, code);
        uint64_t unit;

        if (!c || c->state != PYTHON_FRAME_FOUND)
                return c ? c->state : PYTHON_FRAME_LIMIT;
        if (!find_frame_unit(o, &c->code, detail, &unit))
                return PYTHON_FRAME_INCOMPLETE;
        *ret = (struct python_location){ .name = c->code.name,
                                         .file = c->code.file,
                                         .line = find_code_line(n, o->lines, c, unit) };
        return PYTHON_FRAME_FOUND;
}
