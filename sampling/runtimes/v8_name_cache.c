/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/runtimes/v8_name_cache.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory/array.h"

void v8_name_cache_deinit(struct v8_name_cache *n)
{
        for (size_t i = 0; i < n->function_count; i++)
                v8_function_deinit(&n->functions[i].function);
        for (size_t i = 0; i < n->script_count; i++)
                v8_script_deinit(&n->scripts[i].script);
        free(n->functions);
        free(n->scripts);
        free(n->codes);
        id_table_deinit(&n->functions_by_address);
        id_table_deinit(&n->scripts_by_address);
        id_table_deinit(&n->codes_by_address);
        *n = (struct v8_name_cache){ 0 };
}

/* The number of an address, count if it is new. */
static uint32_t find_number(const struct id_table *t, uint64_t address, size_t count)
{
        uint32_t number;

        return id_table_find(t, &address, sizeof address, &number) ? number : (uint32_t)count;
}

static size_t count_function_bytes(const struct v8_function *f)
{
        return f->name ? strlen(f->name) + f->position_bytes : 0;
}

static const struct v8_function *find_function(struct v8_name_cache *n, const struct v8_heap *h, uint64_t interval,
                                               uint64_t shared)
{
        uint32_t number = find_number(&n->functions_by_address, shared, n->function_count);
        bool is_new = number == n->function_count;
        struct v8_function_key key;
        struct named_function *f;

        if (is_new) {
                if (!array_reserve(&n->functions, &n->function_capacity, n->function_count) ||
                    !id_table_put(&n->functions_by_address, &shared, sizeof shared, number))
                        return NULL;
                n->functions[n->function_count++] = (struct named_function){ 0 };
                n->bytes += sizeof *f;
        }
        f = &n->functions[number];
        if (is_new || f->checked_in != interval) {
                if (!f->is_readable || (f->function.bytecode && !f->function.positions) ||
                    !v8_function_read_key(h, shared, &key) || memcmp(&key, &f->function.key, sizeof key) != 0) {
                        n->bytes -= count_function_bytes(&f->function);
                        v8_function_deinit(&f->function);
                        f->is_readable = v8_function_read(h, shared, &f->function);
                        n->bytes += count_function_bytes(&f->function);
                }
                f->checked_in = interval;
        }
        return f->is_readable ? &f->function : NULL;
}

static size_t count_script_bytes(const struct v8_script *s)
{
        return s->file ? strlen(s->file) + s->line_count * sizeof *s->line_starts : 0;
}

static const struct v8_script *find_script_lines(struct v8_name_cache *n, const struct v8_heap *h, uint64_t interval,
                                                 uint64_t script)
{
        uint32_t number = find_number(&n->scripts_by_address, script, n->script_count);
        bool is_new = number == n->script_count;
        struct v8_script_key key;
        struct named_script *s;

        if (is_new) {
                if (!array_reserve(&n->scripts, &n->script_capacity, n->script_count) ||
                    !id_table_put(&n->scripts_by_address, &script, sizeof script, number))
                        return NULL;
                n->scripts[n->script_count++] = (struct named_script){ 0 };
                n->bytes += sizeof *s;
        }
        s = &n->scripts[number];
        if (is_new || s->checked_in != interval) {
                if (!s->is_readable || !s->script.has_lines || !v8_script_read_key(h, script, &key) ||
                    memcmp(&key, &s->script.key, sizeof key) != 0) {
                        n->bytes -= count_script_bytes(&s->script);
                        v8_script_deinit(&s->script);
                        s->is_readable = v8_script_read(h, script, &s->script);
                        n->bytes += count_script_bytes(&s->script);
                }
                s->checked_in = interval;
        }
        return s->is_readable ? &s->script : NULL;
}

/* The place of an address in generated code; NULL: unknown. */
static const struct v8_code_place *find_place(struct v8_name_cache *n, const struct v8_heap *h, uint64_t interval,
                                              uint64_t pc, uint64_t bytecode)
{
        uint32_t number = find_number(&n->codes_by_address, pc, n->code_count);
        bool is_new = number == n->code_count;
        struct located_code *c;

        if (is_new) {
                if (!array_reserve(&n->codes, &n->code_capacity, n->code_count) ||
                    !id_table_put(&n->codes_by_address, &pc, sizeof pc, number))
                        return NULL;
                n->codes[n->code_count++] = (struct located_code){ 0 };
                n->bytes += sizeof *c;
        }
        c = &n->codes[number];
        if (is_new || c->checked_in != interval) { /* inlined functions may have moved */
                if (!c->is_found || !v8_code_is_current(h, &c->code))
                        c->is_found = v8_code_find(h, pc, &n->code_map, &c->code);
                if (c->is_found)
                        v8_code_locate(h, &c->code, pc, bytecode, &c->place);
                c->checked_in = interval;
        }
        return c->is_found ? &c->place : NULL;
}

static bool locate_function(struct v8_name_cache *n, const struct v8_heap *h, uint64_t interval, uint64_t shared,
                            int32_t offset, bool is_maglev, struct v8_location *ret)
{
        const struct v8_function *f = find_function(n, h, interval, shared);
        const struct v8_script *s;

        if (!f)
                return false;
        *ret = (struct v8_location){ .name = f->name, .file = "" };
        s = f->script ? find_script_lines(n, h, interval, f->script) : NULL;
        if (s) {
                ret->file = s->file;
                if (!is_maglev || !v8_script_has_loop_at(h, s, offset))
                        ret->line = v8_script_find_line(s, offset);
                ret->start_line = v8_script_find_line(s, f->start);
        }
        return true;
}

/* Add the functions inlined at the place. Returns the position in the frame's own function; -1: unknown. */
static int32_t locate_inlined(struct v8_name_cache *n, const struct v8_heap *h, uint64_t interval, uint64_t shared,
                              const struct v8_code_place *place, bool is_exact, struct v8_location *ret,
                              uint32_t *count_ret)
{
        const struct v8_function *f = find_function(n, h, interval, shared);
        uint32_t last = place->count - 1;
        bool is_own;

        if (place->bytecode_offset >= 0 || !place->items[last].shared)
                return f && f->bytecode == place->bytecode
                               ? v8_positions_find(&h->objects->positions, f->positions, f->position_bytes,
                                                   place->bytecode_offset)
                                         .offset
                               : -1;
        is_own = place->items[last].shared == shared;
        if (!is_own && !is_exact)
                return -1;
        for (uint32_t i = 0; i < (is_own ? last : place->count) && *count_ret < LIMIT_V8_INLINED - 1; i++)
                *count_ret += locate_function(n, h, interval, place->items[i].shared, place->items[i].offset,
                                              place->is_maglev, &ret[*count_ret]);
        return is_own ? place->items[last].offset : -1;
}

enum v8_frame_state v8_name_cache_locate(struct v8_name_cache *n, const struct v8_heap *h, uint64_t interval,
                                         uint64_t shared, uint64_t position, struct v8_location *ret,
                                         uint32_t *count_ret)
{
        const struct v8_function *f = find_function(n, h, interval, shared);
        bool is_maglev = false;
        int32_t offset = -1;

        *count_ret = 0;
        if (!f)
                return V8_FRAME_UNREADABLE;
        if (position & V8_POSITION_BYTECODE) {
                int64_t at = (int64_t)(position & UINT32_MAX) - (h->objects->bytecode_start - 1);

                offset = v8_positions_find(&h->objects->positions, f->positions, f->position_bytes, at).offset;
        } else if (position) {
                bool is_exact = position & V8_POSITION_EXACT;
                uint64_t pc = position & SAMPLE_FRAME_ADDRESS_MAX;
                const struct v8_code_place *place = find_place(n, h, interval, is_exact ? pc : pc - 1, f->bytecode);

                if (place)
                        offset = locate_inlined(n, h, interval, shared, place, is_exact, ret, count_ret);
                is_maglev = place && place->is_maglev;
        }
        if (!locate_function(n, h, interval, shared, offset, is_maglev, &ret[*count_ret]))
                return V8_FRAME_UNREADABLE;
        ++*count_ret;
        return V8_FRAME_FOUND;
}
