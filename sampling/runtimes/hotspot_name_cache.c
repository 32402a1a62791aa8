/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/runtimes/hotspot_name_cache.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory/array.h"
#include "sampling/runtimes/hotspot_streams.h"

void hotspot_name_cache_deinit(struct hotspot_name_cache *n)
{
        for (size_t i = 0; i < n->method_count; i++)
                hotspot_method_deinit(&n->methods[i].method);
        for (size_t i = 0; i < n->place_count; i++) {
                free(n->places[i].methods);
                free(n->places[i].bytecodes);
                free(n->places[i].stub);
        }
        free(n->methods);
        free(n->places);
        id_table_deinit(&n->methods_by_address);
        id_table_deinit(&n->places_by_frame);
        *n = (struct hotspot_name_cache){ 0 };
}

/* Memory of the process, read within the work that is left. */
struct metered_reads {
        const struct process_memory *memory;
        struct hotspot_name_cache *names;
        bool is_used_up;
};

#define METERED_READ_WORK 256 /* of a read, in bytes that cost as much */

static bool read_metered(void *ctx, uint64_t addr, void *to, size_t n)
{
        struct metered_reads *m = ctx;

        m->is_used_up = m->is_used_up || n + METERED_READ_WORK > m->names->work_left;
        if (m->is_used_up)
                return false;
        m->names->work_left -= n + METERED_READ_WORK;
        return m->memory->read(m->memory->ctx, addr, to, n);
}

static size_t count_method_bytes(const struct hotspot_method *x)
{
        return x->name ? strlen(x->name) + strlen(x->file) + x->line_bytes : 0;
}

/* NULL: it is unreadable. */
static const struct hotspot_method *find_method(struct hotspot_name_cache *n, const struct process_memory *m,
                                                const struct hotspot_objects *o, uint64_t interval, uint64_t address)
{
        struct hotspot_method_key key;
        struct named_method *x;
        uint32_t number;
        bool is_new = !id_table_find(&n->methods_by_address, &address, sizeof address, &number);

        if (is_new) {
                number = (uint32_t)n->method_count;
                if (!array_reserve(&n->methods, &n->method_capacity, n->method_count) ||
                    !id_table_put(&n->methods_by_address, &address, sizeof address, number))
                        return NULL;
                n->methods[n->method_count++] = (struct named_method){ 0 };
                n->bytes += sizeof *x;
        }
        x = &n->methods[number];
        if (is_new || x->checked_in != interval) {
                if (!x->is_readable || !hotspot_method_read_key(m, o, address, &key) ||
                    memcmp(&key, &x->method.key, sizeof key) != 0) {
                        n->bytes -= count_method_bytes(&x->method);
                        hotspot_method_deinit(&x->method);
                        x->is_readable = hotspot_method_read(m, o, address, &x->method);
                        n->bytes += count_method_bytes(&x->method);
                }
                x->checked_in = interval;
        }
        return x->is_readable ? &x->method : NULL;
}

/* Keep a copy of the place. False without memory. */
static bool keep_place(struct named_place *to, const struct hotspot_place *p, size_t *bytes)
{
        struct named_place x = { .state = HOTSPOT_CODE_FOUND, .count = p->count };

        if (p->count) {
                x.methods = malloc(p->count * sizeof *x.methods);
                x.bytecodes = malloc(p->count * sizeof *x.bytecodes);
        } else {
                x.stub = strdup(p->stub);
        }
        if (p->count ? !x.methods || !x.bytecodes : !x.stub) {
                free(x.methods);
                free(x.bytecodes);
                return false;
        }
        if (p->count) {
                memcpy(x.methods, p->methods, p->count * sizeof *x.methods);
                memcpy(x.bytecodes, p->bytecodes, p->count * sizeof *x.bytecodes);
        }
        *bytes += p->count ? p->count * (sizeof *x.methods + sizeof *x.bytecodes) : strlen(p->stub);
        *to = x;
        return true;
}

/* NULL without memory. */
static const struct named_place *find_hotspot_place(struct hotspot_name_cache *n, const struct process_memory *m,
                                                    const struct hotspot_objects *o, uint64_t interval,
                                                    uint64_t address, uint64_t position)
{
        const uint64_t key[] = { address, position };
        struct hotspot_place place;
        struct named_place *x;
        uint32_t number;
        bool is_new = !id_table_find(&n->places_by_frame, key, sizeof key, &number);

        if (is_new) {
                number = (uint32_t)n->place_count;
                if (!array_reserve(&n->places, &n->place_capacity, n->place_count) ||
                    !id_table_put(&n->places_by_frame, key, sizeof key, number))
                        return NULL;
                n->places[n->place_count++] = (struct named_place){ .state = HOTSPOT_CODE_UNREADABLE };
                n->bytes += sizeof *x;
        }
        x = &n->places[number];
        if (is_new || (x->state != HOTSPOT_CODE_FOUND && x->checked_in != interval)) {
                x->state = hotspot_code_locate(m, o, address, position, &place);
                if (x->state == HOTSPOT_CODE_FOUND && !keep_place(x, &place, &n->bytes))
                        x->state = HOTSPOT_CODE_UNREADABLE;
                x->checked_in = interval;
        }
        return x;
}

static struct hotspot_location locate_method(struct hotspot_name_cache *n, const struct process_memory *m,
                                             const struct hotspot_objects *o, uint64_t interval, uint64_t address,
                                             int64_t bytecode)
{
        const struct hotspot_method *x = find_method(n, m, o, interval, address);
        struct hotspot_location ret = { .file = "" };

        if (!x)
                return ret;
        ret.name = x->name;
        ret.file = x->file;
        if (bytecode >= 0 && (bytecode < x->key.code_bytes || !bytecode))
                ret.line = hotspot_find_line(x->lines, x->line_bytes, o->number_base, (uint32_t)bytecode);
        return ret;
}

static enum hotspot_frame_state locate_interpreted(struct hotspot_name_cache *n, const struct process_memory *m,
                                                   const struct hotspot_objects *o, uint64_t interval, uint64_t address,
                                                   uint64_t at, struct hotspot_location *ret)
{
        const struct hotspot_method *x = find_method(n, m, o, interval, address);

        if (!x)
                return HOTSPOT_FRAME_UNREADABLE;
        *ret = locate_method(n, m, o, interval, address, at ? (int64_t)(at - x->key.code) : 0);
        return HOTSPOT_FRAME_FOUND;
}

static enum hotspot_frame_state locate_hotspot_code(struct hotspot_name_cache *n, const struct process_memory *m,
                                                    const struct hotspot_objects *o, uint64_t interval,
                                                    uint64_t address, uint64_t position, struct hotspot_location *ret,
                                                    uint32_t *count_ret)
{
        const struct named_place *x = find_hotspot_place(n, m, o, interval, address, position);

        if (!x || x->state == HOTSPOT_CODE_UNREADABLE)
                return HOTSPOT_FRAME_UNREADABLE;
        if (x->state == HOTSPOT_CODE_FREED)
                return HOTSPOT_FRAME_FREED;
        *count_ret = x->count ? x->count : 1;
        if (!x->count)
                *ret = (struct hotspot_location){ .name = x->stub, .file = "" };
        for (uint32_t i = 0; i < x->count; i++)
                ret[i] = locate_method(n, m, o, interval, x->methods[i], x->bytecodes[i]);
        return x->count && !ret[x->count - 1].name ? HOTSPOT_FRAME_UNREADABLE : HOTSPOT_FRAME_FOUND;
}

enum hotspot_frame_state hotspot_name_cache_locate(struct hotspot_name_cache *n, const struct process_memory *m,
                                                   const struct hotspot_objects *o, uint64_t interval, uint64_t address,
                                                   uint64_t position, struct hotspot_location *ret, uint32_t *count_ret)
{
        struct metered_reads metered = { m, n, false };
        const struct process_memory memory = { read_metered, &metered };
        enum hotspot_frame_state state;

        *count_ret = 1;
        if (position & HOTSPOT_INTERPRETED)
                state = locate_interpreted(n, &memory, o, interval, address, position & SAMPLE_FRAME_ADDRESS_MAX, ret);
        else
                state = locate_hotspot_code(n, &memory, o, interval, address, position, ret, count_ret);
        return metered.is_used_up && state != HOTSPOT_FRAME_FOUND ? HOTSPOT_FRAME_LIMIT : state;
}
