/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operation "disassembly": the instructions of functions, or of a range of addresses, each with its cost, line and
 * branch target.
 *
 * Shown are the functions that contain the sampled addresses at which a requested function occurs; an inlined function
 * is therefore shown inside the functions that it is inlined into. An address lies inside its instruction: return
 * addresses were moved back into the call.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/memory/array.h"
#include "common/search.h"
#include "common/text/csv.h"
#include "common/text/number_text.h"
#include "common/text/utf8.h"
#include "common/text.h"
#include "query/engine/loaded_sides.h"
#include "query/engine/source_lines.h"
#include "query/engine/unit_text.h"

#define SHOWN_SOURCES 8 /* source files whose lines are shown */
/* Memory per instruction: the instruction with its texts, its cost, two places, an address to look up. */
#define INSTRUCTION_MEMORY_BYTES (sizeof(struct code_instruction) + 2 * sizeof(struct code_place) + 128)

struct code_cost {
        int64_t flat, cumulative;
};

struct code_object {
        uint32_t location; /* any location in it */
        struct code_cost cost;
        size_t seen; /* index of the last entry that contains it, plus one */
};

struct shown_source {
        const char *file;
        struct source_lines lines;
};

struct code_table {
        struct query_call *q;
        struct loaded_sides *l;
        struct function_targets targets; /* is_target is NULL when only a range is requested */
        const char *server;              /* shown in upload commands; NULL: none */
        bool has_range;
        uint64_t start, end;
        struct build_id asked; /* size 0: the object with the greatest cost */
        bool is_att;
        /* Indexed by location of the scan. */
        struct code_cost *costs; /* owned, as are the next four */
        size_t *seen;
        uint64_t *addresses; /* in the object */
        uint8_t *is_hit;     /* the location was requested */
        uint32_t *object_of;
        struct memory_reservation memory;
        struct code_object *objects; /* owned; finally sorted by falling cost */
        size_t object_count, object_capacity;
        const struct scan_location *chosen; /* in the shown object; NULL: no sample in it */
        struct build_id id;
        struct disassembly code;
        struct code_cost *instruction_costs; /* owned, as are places and target_places */
        struct code_place *places, *target_places;
        struct arena texts; /* of places and target_places */
        struct shown_source sources[SHOWN_SOURCES];
        size_t source_count;
        struct error missing; /* reason when code is missing; otherwise its code is ST_OK */
};

static void code_table_deinit(struct code_table *t)
{
        function_targets_deinit(&t->targets);
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

static const struct scan_location *get_code_location(const struct code_table *t, uint32_t location)
{
        return &t->l->sides[0].stacks->locations[location];
}

static enum status allocate_sums(struct code_table *t)
{
        size_t n = t->l->sides[0].stacks->location_count + 1;
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
        size_t n = t->l->sides[0].stacks->location_count, count = 0;
        const struct query_code *code = t->q->code;
        const struct scan_location **others;
        uint64_t *found;
        enum status st;

        for (uint32_t i = 0; i < n; i++) {
                const struct scan_location *l = get_code_location(t, i);

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
                if (get_code_location(t, i)->is_file_offset || get_code_location(t, i)->is_kernel)
                        others[count++] = get_code_location(t, i);
        st = others && found ? code->find_addresses(code->context, others, count, found, t->q->err)
                             : error_no_memory(t->q->err);
        for (size_t i = 0; !st && i < count; i++)
                t->addresses[others[i] - t->l->sides[0].stacks->locations] = found[i];
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
        const struct location_frames *f = &t->l->sides[0].locations;
        const struct scan_location *l = get_code_location(t, location);

        if (!l->build_id->size || (t->asked.size && !build_id_equal(l->build_id, &t->asked)))
                return false;
        if (t->has_range)
                return t->addresses[location] >= t->start && t->addresses[location] < t->end;
        for (uint32_t k = f->first[location]; k < f->end[location]; k++)
                if (t->targets.is_target[f->frames[k]])
                        return true;
        return false;
}

static int compare_location_objects(const void *x, const void *y, void *context)
{
        const struct code_table *t = context;

        return build_id_compare(get_code_location(t, *(const uint32_t *)x)->build_id,
                                get_code_location(t, *(const uint32_t *)y)->build_id);
}

/* Number the objects of the requested locations. */
static enum status find_objects(struct code_table *t)
{
        size_t n = t->l->sides[0].stacks->location_count, count = 0;
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
        const struct merged_profile *m = &t->l->sides[0];
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
        size_t n = t->l->sides[0].stacks->location_count, count = 0;
        _cleanup_free_ struct asked_address *items = calloc(n + 1, sizeof *items);
        uint64_t *addresses;
        enum status st;

        if (!items)
                return error_no_memory(t->q->err);
        for (uint32_t i = 0; i < n; i++)
                if (t->is_hit[i] && build_id_equal(get_code_location(t, i)->build_id, &t->id))
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
        struct query_code_request request = { .id = &t->id, .start = t->start, .end = t->end, .is_att = t->is_att };
        enum status st = t->has_range ? ST_OK : list_addresses(t, &addresses, &request.address_count);

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
        size_t n = t->l->sides[0].stacks->location_count;
        enum status st = ST_OK;

        for (uint32_t i = 0; !st && i < n; i++) {
                const struct scan_location *l = get_code_location(t, i);

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
        const struct merged_profile *m = &t->l->sides[0];
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
        size_t locations = t->l->sides[0].stacks->location_count, count = t->code.instruction_count;
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
        for (size_t i = 0; !st && count && i < t->l->sides[0].count; i++)
                st = add_entry_instructions(t, i, instruction_of, seen);
        return st;
}

static bool leads_elsewhere(const struct code_instruction *in)
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
                addresses[i] =
                        leads_elsewhere(&t->code.instructions[i]) ? t->code.instructions[i].target : addresses[i];
        return code->look_up(code->context, &t->id, addresses, n, &t->texts, t->target_places, t->q->err);
}

/* The source line of a place; NULL: none. */
static const char *get_place_source(struct code_table *t, const struct code_place *p, size_t *n_ret)
{
        size_t i = 0;

        if (!*p->file || !p->line)
                return NULL;
        while (i < t->source_count && strcmp(t->sources[i].file, p->file) != 0)
                i++;
        if (i == SHOWN_SOURCES)
                return NULL;
        if (i == t->source_count) {
                t->sources[t->source_count++].file = p->file;
                source_lines_load(&t->sources[i].lines, t->q->sources, &t->id, p->file, false);
        }
        return source_lines_get(&t->sources[i].lines, p->line, n_ret);
}

/* ---- answers ---- */

static bool is_same_place(const struct code_place *a, const struct code_place *b)
{
        return a->line == b->line && strcmp(a->function, b->function) == 0 && strcmp(a->file, b->file) == 0;
}

/* The function that a call, or a jump out of its own function, leads to; NULL: unknown. */
static const char *get_target_name(const struct code_table *t, uint32_t i)
{
        const struct code_place *to = &t->target_places[i];

        if (!leads_elsewhere(&t->code.instructions[i]) || !*to->outer)
                return NULL;
        return t->code.instructions[i].flow == FLOW_CALL || strcmp(to->outer, t->places[i].outer) != 0 ? to->outer
                                                                                                       : NULL;
}

static const char *get_range_name(const struct code_table *t, const struct code_range *r)
{
        return r->count && *t->places[r->first].outer ? t->places[r->first].outer : r->symbol;
}

static void put_address(struct json_out *j, const char *key, uint64_t address)
{
        char text[24];

        snprintf(text, sizeof text, "0x%" PRIx64, address);
        json_out_str(j, key, text);
}

static void put_instruction_json(struct code_table *t, uint32_t i, bool is_first, struct json_out *j)
{
        static const char *const flows[] = {
                [FLOW_JUMP] = "jump", [FLOW_CALL] = "call", [FLOW_RETURN] = "return", [FLOW_UNKNOWN] = "unknown"
        };
        const struct code_instruction *in = &t->code.instructions[i];
        const struct code_place *p = &t->places[i];
        const struct code_cost *c = &t->instruction_costs[i];
        char bytes[2 * INSTRUCTION_BYTES_MAX + 1];
        const char *name = get_target_name(t, i), *text;
        size_t n = 0;

        json_out_object(j, NULL);
        put_address(j, "address", in->address);
        json_out_str(j, "bytes", hex_encode(in->bytes, in->size, bytes));
        json_out_str(j, "mnemonic", in->mnemonic);
        json_out_str(j, "operands", in->operands);
        if (in->flow != FLOW_NEXT)
                json_out_str(j, "flow", flows[in->flow]);
        if (in->has_target)
                put_address(j, "target", in->target);
        if (name)
                json_out_str(j, "target_name", name);
        if (c->cumulative)
                json_out_int(j, "flat", c->flat);
        if (c->cumulative)
                json_out_int(j, "cumulative", c->cumulative);
        if (is_first || !is_same_place(p, p - 1)) {
                json_out_object(j, "place");
                json_out_str(j, "function", p->function);
                json_out_str(j, "file", p->file);
                json_out_uint(j, "line", p->line);
                text = get_place_source(t, p, &n);
                if (text)
                        json_out_strn(j, "source", text, n);
                json_out_object_end(j);
        }
        json_out_object_end(j);
}

static enum status put_ranges_json(struct code_table *t, struct json_out *j)
{
        enum status st = ST_OK;

        json_out_array(j, "ranges");
        for (uint32_t i = 0; !st && i < t->code.range_count; i++) {
                const struct code_range *r = &t->code.ranges[i];

                json_out_object(j, NULL);
                json_out_str(j, "function", get_range_name(t, r));
                put_address(j, "start", r->start);
                put_address(j, "end", r->end);
                json_out_bool(j, "is_cut", r->is_cut);
                json_out_array(j, "instructions");
                for (uint32_t k = r->first; !st && k < r->first + r->count; k++) {
                        st = work_meter_add(t->q->meter, 64, t->q->err);
                        put_instruction_json(t, k, k == r->first, j);
                }
                json_out_array_end(j);
                json_out_object_end(j);
        }
        json_out_array_end(j);
        return st;
}

static const char *get_object_path(const struct code_table *t)
{
        return t->chosen ? t->chosen->mapping : "";
}

static void put_objects_json(const struct code_table *t, struct json_out *j)
{
        char id[BUILD_ID_HEX_MAX];

        json_out_array(j, "objects");
        for (size_t i = 0; i < t->object_count && !work_meter_add(t->q->meter, 64, NULL); i++) {
                const struct scan_location *l = get_code_location(t, t->objects[i].location);

                json_out_object(j, NULL);
                json_out_str(j, "build_id", build_id_hex(l->build_id, id));
                json_out_str(j, "object", l->mapping);
                json_out_int(j, "flat", t->objects[i].cost.flat);
                json_out_int(j, "cumulative", t->objects[i].cost.cumulative);
                json_out_object_end(j);
        }
        json_out_array_end(j);
}

static void put_upload_of_executable(const struct code_table *t, struct buf *ret)
{
        upload_command_put(ret, UPLOAD_EXECUTABLE, t->server, get_object_path(t));
}

static void put_missing_code_json(const struct code_table *t, struct json_out *j)
{
        _cleanup_buf_ struct buf command;

        buf_init(&command, LIMIT_PATH_BYTES * 2);
        put_upload_of_executable(t, &command);
        json_out_object(j, "missing");
        json_out_str(j, "reason", t->missing.text);
        if (t->missing.code == ST_BUSY)
                json_out_str(j, "next_step",
                             "repeat the query later, or upload the executable from a machine that has it");
        else if (t->missing.code == ST_NOT_FOUND)
                json_out_str(j, "next_step", "upload the executable from a machine that has it");
        if (t->missing.code == ST_BUSY || t->missing.code == ST_NOT_FOUND)
                json_out_str(j, "command", buf_cstr(&command));
        json_out_object_end(j);
}

static enum status put_code_json(struct code_table *t)
{
        char id[BUILD_ID_HEX_MAX];
        struct json_out j;
        enum status st;

        json_out_init(&j, t->q->ret);
        json_out_object(&j, NULL);
        loaded_sides_put_head(t->l, &j);
        json_out_str(&j, "build_id", build_id_hex(&t->id, id));
        json_out_str(&j, "object", get_object_path(t));
        json_out_str(&j, "syntax", t->is_att ? "att" : "intel");
        put_objects_json(t, &j);
        if (t->missing.code)
                put_missing_code_json(t, &j);
        st = put_ranges_json(t, &j);
        json_out_object_end(&j);
        return st;
}

static enum status put_code_csv(struct code_table *t)
{
        struct buf *ret = t->q->ret;
        char id[BUILD_ID_HEX_MAX], bytes[2 * INSTRUCTION_BYTES_MAX + 1];
        enum status st = ST_OK;

        build_id_hex(&t->id, id);
        buf_append_str(ret, "build_id,address,bytes,mnemonic,operands,flat,cumulative,function,file,line,target,"
                            "target_name\r\n");
        for (uint32_t i = 0; !st && i < t->code.instruction_count; i++) {
                const struct code_instruction *in = &t->code.instructions[i];
                const struct code_place *p = &t->places[i];
                const char *name = get_target_name(t, i);

                st = work_meter_add(t->q->meter, 64, t->q->err);
                buf_printf(ret, "%s,0x%" PRIx64 ",%s,%s,", id, in->address, hex_encode(in->bytes, in->size, bytes),
                           in->mnemonic);
                csv_put_text(ret, in->operands, ',');
                buf_printf(ret, "%" PRId64 ",%" PRId64 ",", t->instruction_costs[i].flat,
                           t->instruction_costs[i].cumulative);
                csv_put_text(ret, p->function, ',');
                csv_put_text(ret, p->file, ',');
                buf_printf(ret, "%" PRIu32 ",", p->line);
                if (in->has_target)
                        buf_printf(ret, "0x%" PRIx64, in->target);
                buf_append_u8(ret, ',');
                csv_put_text(ret, name ? name : "", '\r');
                buf_append_u8(ret, '\n');
        }
        return st;
}

static void put_place_text(struct code_table *t, const struct code_place *p)
{
        struct buf *ret = t->q->ret;
        size_t n = 0;
        const char *text = get_place_source(t, p, &n);

        if (!*p->file && !*p->function)
                return;
        buf_printf(ret, "%26s", "");
        utf8_append_escaped(ret, *p->file ? p->file : p->function);
        if (p->line)
                buf_printf(ret, ":%" PRIu32, p->line);
        if (text) {
                buf_append_str(ret, "  ");
                utf8_append_source_line(ret, text, n);
        }
        buf_append_u8(ret, '\n');
}

static void put_instruction_text(struct code_table *t, uint32_t i)
{
        const struct code_instruction *in = &t->code.instructions[i];
        const struct code_cost *c = &t->instruction_costs[i];
        const char *unit = t->l->sides[0].unit, *name = get_target_name(t, i);
        struct buf *ret = t->q->ret;
        char v[2][40];

        buf_printf(ret, "%12s %12s  %8" PRIx64 ":  %-8s %s", c->flat ? format_value(c->flat, unit, v[0], 40) : "",
                   c->cumulative ? format_value(c->cumulative, unit, v[1], 40) : "", in->address, in->mnemonic,
                   in->operands);
        if (name) {
                buf_append_str(ret, " <");
                utf8_append_escaped(ret, name);
                buf_append_u8(ret, '>');
        } else if (in->has_target && !leads_elsewhere(in)) {
                buf_printf(ret, "  # %" PRIx64, in->target);
        }
        buf_append_u8(ret, '\n');
}

static enum status put_code_text(struct code_table *t)
{
        struct buf *ret = t->q->ret;
        char id[BUILD_ID_HEX_MAX];
        enum status st = ST_OK;

        for (uint32_t i = 0; !st && i < t->code.range_count; i++) {
                const struct code_range *r = &t->code.ranges[i];

                buf_append_str(ret, "\n");
                utf8_append_escaped(ret, *get_range_name(t, r) ? get_range_name(t, r) : "(unknown function)");
                buf_append_str(ret, "  ");
                utf8_append_escaped(ret, get_object_path(t));
                buf_printf(ret, "  %s\n%12s %12s  %8s\n", build_id_hex(&t->id, id), "flat", "cumulative", "address");
                for (uint32_t k = r->first; !st && k < r->first + r->count; k++) {
                        if (k == r->first || !is_same_place(&t->places[k], &t->places[k - 1]))
                                put_place_text(t, &t->places[k]);
                        put_instruction_text(t, k);
                        st = work_meter_add(t->q->meter, 64, t->q->err);
                }
                if (r->is_cut)
                        buf_printf(ret, "%26s... to 0x%" PRIx64 "\n", "", r->end);
        }
        return st;
}

/* For formats that cannot express missing code. */
static enum status fail_missing_code(struct code_table *t)
{
        _cleanup_buf_ struct buf command;

        buf_init(&command, LIMIT_PATH_BYTES * 2);
        put_upload_of_executable(t, &command);
        if (t->missing.code != ST_NOT_FOUND)
                return error_set(t->q->err, t->missing.code, "%s", t->missing.text);
        return error_set(t->q->err, ST_NOT_FOUND, "%s; upload it: %s", t->missing.text, buf_cstr(&command));
}

static enum status put_code_answer(struct code_table *t)
{
        struct query_call *q = t->q;
        enum status st;

        q->content_type = query_call_content_type(q);
        if (q->r.format == FORMAT_JSON)
                st = put_code_json(t);
        else if (t->missing.code)
                st = fail_missing_code(t);
        else
                st = q->r.format == FORMAT_CSV ? put_code_csv(t) : put_code_text(t);
        return st ? st : buf_status(q->ret, q->err, "disassembly");
}

/* ---- the request ---- */

static enum status parse_code_range(struct query_call *q, struct code_table *t)
{
        const char *start = query_param_get(&q->params, "", "start"), *end = query_param_get(&q->params, "", "end");

        if (!start && !end)
                return ST_OK;
        t->has_range = true;
        if (!start || !end || !parse_hex(start, &t->start) || !parse_hex(end, &t->end) || t->start >= t->end)
                return error_set(q->err, ST_USAGE,
                                 "start and end must be hexadecimal addresses, end greater than start");
        return t->asked.size ? ST_OK : error_set(q->err, ST_USAGE, "start and end require build_id");
}

static enum status parse_code_request(struct query_call *q, struct code_table *t)
{
        const char *id = query_param_get(&q->params, "", "build_id"),
                   *syntax = query_param_get(&q->params, "", "syntax");
        bool is_named = query_param_get(&q->params, "", "function") || query_param_get(&q->params, "", "function_name");
        enum status st;

        if (id && !build_id_from_hex(&t->asked, id, strlen(id)))
                return error_set(q->err, ST_USAGE, "'%.130s' is not a build-id", id);
        if (syntax && strcmp(syntax, "intel") != 0 && strcmp(syntax, "att") != 0)
                return error_set(q->err, ST_USAGE, "syntax must be intel or att");
        t->is_att = syntax && strcmp(syntax, "att") == 0;
        t->server = query_param_get(&q->params, "", "server");
        st = parse_code_range(q, t);
        if (st)
                return st;
        if (is_named == t->has_range)
                return error_set(q->err, ST_USAGE,
                                 "disassembly needs function (a regular expression for the whole name), "
                                 "function_name (exact), or a range: build_id, start and end");
        if (q->r.by.count)
                return error_set(q->err, ST_USAGE, "by is not a parameter of disassembly; narrow the selector");
        return q->code ? ST_OK
                       : error_set(q->err, ST_UNSUPPORTED,
                                   "only a service has executables to disassemble: query a service");
}

static enum status sum_code(struct code_table *t)
{
        enum status st = ST_OK;

        if (!t->has_range)
                st = function_targets_find_asked(t->q, &t->l->frames, &t->targets);
        if (!st)
                st = allocate_sums(t);
        if (!st)
                st = find_location_addresses(t);
        if (!st)
                st = find_objects(t);
        for (size_t i = 0; !st && i < t->l->sides[0].count; i++)
                st = add_entry_code(t, i);
        return st ? st
                  : work_meter_sort(t->q->meter, t->objects, t->object_count, sizeof *t->objects, compare_code_objects,
                                    NULL, t->q->err);
}

enum status query_answer_disassembly(struct query_call *q)
{
        _cleanup_loaded_sides_ struct loaded_sides l = { 0 };
        _cleanup_(code_table_deinit) struct code_table t = { .q = q, .l = &l, .memory = { .use = MEMORY_QUERIES } };
        enum status st = parse_code_request(q, &t);

        arena_init_budget(&t.texts, LIMIT_DISASSEMBLY_ANSWER_BYTES, MEMORY_QUERIES);
        if (!st)
                st = loaded_sides_load(q, NULL, &l);
        if (!st)
                st = sum_code(&t);
        if (st)
                return st;
        if (t.object_count)
                t.chosen = get_code_location(&t, t.objects[0].location);
        t.id = t.chosen ? *t.chosen->build_id : t.asked;
        if (!t.id.size || (!t.chosen && !t.has_range)) {
                error_set(&t.missing, ST_UNSUPPORTED,
                          "no selected sample is in such a function of an object with a build-id");
                return put_code_answer(&t);
        }
        st = read_code(&t);
        if (!st)
                st = sum_instructions(&t);
        if (!st)
                st = name_instructions(&t);
        return st ? st : put_code_answer(&t);
}
