/* SPDX-License-Identifier: Apache-2.0 */
#include "query/engine/code_table.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory/array.h"
#include "common/search.h"

/* Memory per instruction: the instruction with its texts, its cost, two places, an address to look up. */
#define INSTRUCTION_MEMORY_BYTES (sizeof(struct code_instruction) + 2 * sizeof(struct code_place) + 128)

void code_table_deinit(struct code_table *t)
{
        disassembly_deinit(&t->code);
        for (size_t i = 0; i < t->source_count; i++)
                source_lines_deinit(&t->sources[i].lines);
        free(t->costs);
        free(t->seen);
        free(t->addresses);
        free(t->is_hit);
        free(t->object_of);
        free(t->objects);
        free(t->instruction_costs);
        free(t->places);
        free(t->target_places);
        arena_deinit(&t->texts);
        memory_release(&t->memory);
}

/* ---- sums ---- */

const struct scan_location *code_table_get_location(const struct code_table *t, uint32_t location)
{
        return &t->side->stacks->locations[location];
}

static enum status allocate_sums(struct code_table *t)
{
        size_t n = t->side->stacks->location_count + 1;
        enum status st = memory_resize(&t->memory,
                                       n * (sizeof *t->costs + sizeof *t->seen + sizeof *t->addresses +
                                            sizeof *t->is_hit + sizeof *t->object_of),
                                       t->q->err);

        if (st)
                return st;
        t->costs = calloc(n, sizeof *t->costs);
        t->seen = calloc(n, sizeof *t->seen);
        t->addresses = calloc(n, sizeof *t->addresses);
        t->is_hit = calloc(n, sizeof *t->is_hit);
        t->object_of = calloc(n, sizeof *t->object_of);
        return t->costs && t->seen && t->addresses && t->is_hit && t->object_of ? ST_OK : error_no_memory(t->q->err);
}

/* Senders of pprof and perf know offsets in the file, others addresses relative to the kernel's start. */
static enum status find_location_addresses(struct code_table *t)
{
        size_t n = t->side->stacks->location_count, count = 0;
        const struct query_code *code = t->q->code;
        const struct scan_location **others;
        uint64_t *found;
        enum status st;

        for (uint32_t i = 0; i < n; i++) {
                const struct scan_location *l = code_table_get_location(t, i);

                t->addresses[i] = l->address;
                count += l->is_file_offset || l->is_kernel;
        }
        if (!count || !code->find_addresses)
                return ST_OK;
        st = memory_reserve(&t->memory, count * (sizeof *others + sizeof *found), t->q->err);
        if (st)
                return st;
        others = calloc(count, sizeof *others);
        found = calloc(count, sizeof *found);
        count = 0;
        for (uint32_t i = 0; others && i < n; i++)
                if (code_table_get_location(t, i)->is_file_offset || code_table_get_location(t, i)->is_kernel)
                        others[count++] = code_table_get_location(t, i);
        st = others && found ? code->find_addresses(code->context, others, count, found, t->q->err)
                             : error_no_memory(t->q->err);
        for (size_t i = 0; !st && i < count; i++)
                t->addresses[others[i] - t->side->stacks->locations] = found[i];
        free(others);
        free(found);
        return st ? st : work_meter_add(t->q->meter, n + 8 * count, t->q->err);
}

static void add_cost(struct code_cost *c, size_t *seen, size_t entry, int64_t value, bool is_leaf)
{
        if (is_leaf)
                add_saturating(&c->flat, value);
        if (*seen != entry + 1)
                add_saturating(&c->cumulative, value);
        *seen = entry + 1;
}

/* Whether the location was requested: a target occurs at it, or it lies in the range. */
static bool is_location_asked(const struct code_table *t, uint32_t location)
{
        const struct location_frames *f = &t->side->locations;
        const struct scan_location *l = code_table_get_location(t, location);

        if (!l->build_id->size || (t->asked.size && !build_id_equal(l->build_id, &t->asked)))
                return false;
        if (t->request->has_range)
                return t->addresses[location] >= t->request->start && t->addresses[location] < t->request->end;
        for (uint32_t k = f->first[location]; k < f->end[location]; k++)
                if (t->request->is_target[f->frames[k]])
                        return true;
        return false;
}

static int compare_location_objects(const void *x, const void *y, void *context)
{
        const struct code_table *t = context;

        return build_id_compare(code_table_get_location(t, *(const uint32_t *)x)->build_id,
                                code_table_get_location(t, *(const uint32_t *)y)->build_id);
}

/* Number the objects of the requested locations. */
static enum status find_objects(struct code_table *t)
{
        size_t n = t->side->stacks->location_count, count = 0;
        _cleanup_free_ uint32_t *hits = calloc(n + 1, sizeof *hits);
        enum status st = hits ? ST_OK : error_no_memory(t->q->err);

        for (uint32_t i = 0; !st && i < n; i++) {
                st = work_meter_add(t->q->meter, 4, t->q->err);
                if (is_location_asked(t, i)) {
                        t->is_hit[i] = 1;
                        hits[count++] = i;
                }
        }
        if (!st)
                st = work_meter_sort(t->q->meter, hits, count, sizeof *hits, compare_location_objects, t, t->q->err);
        for (size_t i = 0; !st && i < count; i++) {
                if (i == 0 || compare_location_objects(&hits[i - 1], &hits[i], t) != 0) {
                        if (!array_reserve(&t->objects, &t->object_capacity, t->object_count))
                                return error_no_memory(t->q->err);
                        t->objects[t->object_count++] = (struct code_object){ .location = hits[i] };
                }
                t->object_of[hits[i]] = (uint32_t)(t->object_count - 1);
        }
        return st;
}

static enum status add_entry_code(struct code_table *t, size_t entry)
{
        const struct merged_profile *m = t->side;
        const struct merged_entry *e = &m->entries[entry];
        const struct location_frames *f = &m->locations;
        bool is_leaf = true;
        enum status st = ST_OK;

        for (size_t j = m->stacks->first[e->stack]; !st && j < m->stacks->first[e->stack + 1]; j++) {
                uint32_t location = m->stacks->indexes[j];

                if (f->first[location] == f->end[location])
                        continue;
                add_cost(&t->costs[location], &t->seen[location], entry, e->value, is_leaf);
                if (t->is_hit[location]) {
                        struct code_object *o = &t->objects[t->object_of[location]];

                        add_cost(&o->cost, &o->seen, entry, e->value, is_leaf);
                }
                is_leaf = false;
                st = work_meter_add(t->q->meter, 1, t->q->err);
        }
        return st;
}

static int compare_costs(const struct code_cost *a, const struct code_cost *b)
{
        if (a->flat != b->flat)
                return a->flat > b->flat ? -1 : 1;
        return a->cumulative > b->cumulative ? -1 : a->cumulative < b->cumulative;
}

static int compare_code_objects(const void *x, const void *y, void *context)
{
        const struct code_object *a = x, *b = y;
        int c = compare_costs(&a->cost, &b->cost);

        (void)context;
        return c ? c : a->location < b->location ? -1 : a->location > b->location;
}

/* ---- code ---- */

struct asked_address {
        uint64_t address;
        struct code_cost cost;
};

static int compare_asked_addresses(const void *x, const void *y, void *context)
{
        const struct asked_address *a = x, *b = y;
        int c = compare_costs(&a->cost, &b->cost);

        (void)context;
        return c ? c : a->address < b->address ? -1 : a->address > b->address;
}

/* The requested addresses of the chosen object, by falling cost. */
static enum status list_addresses(struct code_table *t, uint64_t **ret, size_t *count_ret)
{
        size_t n = t->side->stacks->location_count, count = 0;
        _cleanup_free_ struct asked_address *items = calloc(n + 1, sizeof *items);
        uint64_t *addresses;
        enum status st;

        if (!items)
                return error_no_memory(t->q->err);
        for (uint32_t i = 0; i < n; i++)
                if (t->is_hit[i] && build_id_equal(code_table_get_location(t, i)->build_id, &t->id))
                        items[count++] = (struct asked_address){ t->addresses[i], t->costs[i] };
        st = work_meter_sort(t->q->meter, items, count, sizeof *items, compare_asked_addresses, NULL, t->q->err);
        if (st)
                return st;
        count = count < LIMIT_DISASSEMBLY_ADDRESSES ? count : LIMIT_DISASSEMBLY_ADDRESSES;
        addresses = calloc(count + 1, sizeof *addresses);
        if (!addresses)
                return error_no_memory(t->q->err);
        for (size_t i = 0; i < count; i++)
                addresses[i] = items[i].address;
        *ret = addresses;
        *count_ret = count;
        return ST_OK;
}

static enum status read_code(struct code_table *t)
{
        _cleanup_free_ uint64_t *addresses = NULL;
        struct query_code_request request = {
                .id = &t->id, .start = t->request->start, .end = t->request->end, .is_att = t->request->is_att
        };
        enum status st = t->request->has_range ? ST_OK : list_addresses(t, &addresses, &request.address_count);

        if (st)
                return st;
        request.addresses = addresses;
        st = t->q->code->disassemble(t->q->code->context, &request, &t->code, &t->missing);
        if (!st)
                t->missing.code = ST_OK;
        if (st == ST_NOT_FOUND || st == ST_UNSUPPORTED || st == ST_BUSY || st == ST_BAD_DATA) {
                t->missing.code = st;
                return work_meter_check(t->q->meter, t->q->err);
        }
        return st ? error_set(t->q->err, st, "%s", t->missing.text) : work_meter_check(t->q->meter, t->q->err);
}

#define NO_INSTRUCTION UINT32_MAX

/* The index of the instruction that contains an address. */
static uint32_t find_instruction(const struct disassembly *code, uint64_t address)
{
        for (uint32_t i = 0; i < code->range_count; i++) {
                const struct code_range *r = &code->ranges[i];
                const struct code_instruction *in = code->instructions + r->first;
                size_t at;

                if (address < r->start || address >= r->end)
                        continue;
                at = find_lower_bound(k, 0, r->count,
                                      in[k].address <= address && address - in[k].address >= in[k].size);
                if (at < r->count && in[at].address <= address)
                        return r->first + (uint32_t)at;
        }
        return NO_INSTRUCTION;
}

/* For all locations of the object, whether or not they were requested. */
static enum status find_instructions(const struct code_table *t, uint32_t *instruction_of)
{
        size_t n = t->side->stacks->location_count;
        enum status st = ST_OK;

        for (uint32_t i = 0; !st && i < n; i++) {
                const struct scan_location *l = code_table_get_location(t, i);

                instruction_of[i] = build_id_equal(l->build_id, &t->id) ? find_instruction(&t->code, t->addresses[i])
                                                                        : NO_INSTRUCTION;
                st = work_meter_add(t->q->meter, 4, t->q->err);
        }
        return st;
}

/* Several locations of a stack may lie in one instruction: a recursive call differs as the leaf and as a caller. */
static enum status add_entry_instructions(struct code_table *t, size_t entry, const uint32_t *instruction_of,
                                          size_t *seen)
{
        const struct merged_profile *m = t->side;
        const struct merged_entry *e = &m->entries[entry];
        bool is_leaf = true;
        enum status st = ST_OK;

        for (size_t j = m->stacks->first[e->stack]; !st && j < m->stacks->first[e->stack + 1]; j++) {
                uint32_t location = m->stacks->indexes[j], i = instruction_of[location];

                if (m->locations.first[location] == m->locations.end[location])
                        continue;
                if (i != NO_INSTRUCTION)
                        add_cost(&t->instruction_costs[i], &seen[i], entry, e->value, is_leaf);
                is_leaf = false;
                st = work_meter_add(t->q->meter, 1, t->q->err);
        }
        return st;
}

static enum status sum_instructions(struct code_table *t)
{
        size_t locations = t->side->stacks->location_count, count = t->code.instruction_count;
        _cleanup_free_ uint32_t *instruction_of = NULL;
        _cleanup_free_ size_t *seen = NULL;
        enum status st = memory_reserve(
                &t->memory, locations * sizeof *instruction_of + count * (INSTRUCTION_MEMORY_BYTES + sizeof *seen),
                t->q->err);

        if (st)
                return st;
        instruction_of = calloc(locations + 1, sizeof *instruction_of);
        seen = calloc(count + 1, sizeof *seen);
        t->instruction_costs = calloc(count + 1, sizeof *t->instruction_costs);
        if (!instruction_of || !seen || !t->instruction_costs)
                return error_no_memory(t->q->err);
        st = find_instructions(t, instruction_of);
        for (size_t i = 0; !st && count && i < t->side->count; i++)
                st = add_entry_instructions(t, i, instruction_of, seen);
        return st;
}

bool instruction_leads_elsewhere(const struct code_instruction *in)
{
        return in->has_target && (in->flow == FLOW_CALL || in->flow == FLOW_JUMP);
}

/* Look up functions and lines of all instructions and of their branch targets. */
static enum status name_instructions(struct code_table *t)
{
        size_t n = t->code.instruction_count;
        _cleanup_free_ uint64_t *addresses = calloc(n + 1, sizeof *addresses);
        const struct query_code *code = t->q->code;
        enum status st;

        t->places = calloc(n + 1, sizeof *t->places);
        t->target_places = calloc(n + 1, sizeof *t->target_places);
        if (!addresses || !t->places || !t->target_places)
                return error_no_memory(t->q->err);
        for (size_t i = 0; i < n; i++)
                addresses[i] = t->code.instructions[i].address;
        st = code->look_up(code->context, &t->id, addresses, n, &t->texts, t->places, t->q->err);
        if (st)
                return st;
        for (size_t i = 0; i < n; i++)
                addresses[i] = instruction_leads_elsewhere(&t->code.instructions[i]) ? t->code.instructions[i].target
                                                                                     : addresses[i];
        return code->look_up(code->context, &t->id, addresses, n, &t->texts, t->target_places, t->q->err);
}

const char *code_table_get_source(struct code_table *t, const struct code_place *p, size_t *n_ret)
{
        size_t i = 0;

        if (!*p->file || !p->line)
                return NULL;
        while (i < t->source_count && strcmp(t->sources[i].file, p->file) != 0)
                i++;
        if (i == CODE_SHOWN_SOURCES)
                return NULL;
        if (i == t->source_count) {
                t->sources[t->source_count++].file = p->file;
                source_lines_load(&t->sources[i].lines, t->q->sources, &t->id, p->file, false);
        }
        return source_lines_get(&t->sources[i].lines, p->line, n_ret);
}

/* ---- texts ---- */

bool code_place_is_same(const struct code_place *a, const struct code_place *b)
{
        return a->line == b->line && strcmp(a->function, b->function) == 0 && strcmp(a->file, b->file) == 0;
}

const char *code_table_get_target_name(const struct code_table *t, uint32_t i)
{
        const struct code_place *to = &t->target_places[i];

        if (!instruction_leads_elsewhere(&t->code.instructions[i]) || !*to->outer)
                return NULL;
        return t->code.instructions[i].flow == FLOW_CALL || strcmp(to->outer, t->places[i].outer) != 0 ? to->outer
                                                                                                       : NULL;
}

const char *code_table_get_range_name(const struct code_table *t, const struct code_range *r)
{
        return r->count && *t->places[r->first].outer ? t->places[r->first].outer : r->symbol;
}

const char *code_table_get_object_path(const struct code_table *t)
{
        return t->chosen ? t->chosen->mapping : "";
}

/* ---- the whole ---- */

static enum status sum_code(struct code_table *t)
{
        enum status st = allocate_sums(t);

        if (!st)
                st = find_location_addresses(t);
        if (!st)
                st = find_objects(t);
        for (size_t i = 0; !st && i < t->side->count; i++)
                st = add_entry_code(t, i);
        return st ? st
                  : work_meter_sort(t->q->meter, t->objects, t->object_count, sizeof *t->objects, compare_code_objects,
                                    NULL, t->q->err);
}

enum status code_table_load(struct code_table *t)
{
        enum status st;

        arena_init_budget(&t->texts, LIMIT_DISASSEMBLY_ANSWER_BYTES, MEMORY_QUERIES);
        st = sum_code(t);
        if (st)
                return st;
        if (t->object_count)
                t->chosen = code_table_get_location(t, t->objects[0].location);
        t->id = t->chosen ? *t->chosen->build_id : t->asked;
        if (!t->id.size || (!t->chosen && !t->request->has_range)) {
                error_set(&t->missing, ST_UNSUPPORTED,
                          "no selected sample is in such a function of an object with a build-id");
                return ST_OK;
        }
        st = read_code(t);
        if (!st)
                st = sum_instructions(t);
        return st ? st : name_instructions(t);
}
