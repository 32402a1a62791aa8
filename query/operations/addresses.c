/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operation "addresses": the addresses at which functions were sampled, each with its cost, object and symbol
 * state. With them a client can request the explanation of a frame's name, file and line (GET /api/v1/why).
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/text/csv.h"
#include "query/engine/loaded_sides.h"
#include "symbol-index/symbol_state.h"

struct address_cost {
        uint32_t location;
        uint32_t frame; /* innermost frame of a target at the location */
        int64_t line;
        int64_t flat, cumulative;
        struct counted_samples samples;
        size_t seen; /* index of the last entry that contains it, plus one */
};

struct address_table {
        struct query_call *q;
        struct loaded_sides *l;
        struct function_targets targets; /* is_target is NULL when only an object is requested */
        struct build_id asked;           /* size 0: any object */
        struct address_cost *rows;       /* owned */
        size_t count;
        uint32_t *row_of; /* row index of each location, plus one; 0: no target there. Owned */
        struct memory_reservation memory;
};

static void address_table_deinit(struct address_table *t)
{
        function_targets_deinit(&t->targets);
        free(t->rows);
        free(t->row_of);
        memory_release(&t->memory);
}

/* The innermost frame of a target at a location; the end of the location's frames if none. */
static uint32_t find_target_frame(const struct address_table *t, uint32_t location)
{
        const struct merged_profile *m = &t->l->sides[0];
        const struct location_frames *f = &m->locations;

        if (t->asked.size && !build_id_equal(m->stacks->locations[location].build_id, &t->asked))
                return f->end[location];
        if (!t->targets.is_target && f->end[location] > f->first[location])
                return f->end[location] - 1;
        for (uint32_t k = f->end[location]; k-- > f->first[location];)
                if (t->targets.is_target[f->frames[k]])
                        return k;
        return f->end[location];
}

static enum status list_target_locations(struct address_table *t)
{
        const struct merged_profile *m = &t->l->sides[0];
        size_t n = m->stacks ? m->stacks->location_count : 0;
        enum status st = memory_resize(&t->memory, (n + 1) * (sizeof *t->rows + sizeof *t->row_of), t->q->err);

        if (st)
                return st;
        t->rows = calloc(n + 1, sizeof *t->rows);
        t->row_of = calloc(n + 1, sizeof *t->row_of);
        if (!t->rows || !t->row_of)
                return error_no_memory(t->q->err);
        for (uint32_t i = 0; !st && i < n; i++) {
                uint32_t k = find_target_frame(t, i);

                st = work_meter_add(t->q->meter, 1 + (uint64_t)(m->locations.end[i] - m->locations.first[i]),
                                    t->q->err);
                if (k == m->locations.end[i])
                        continue;
                t->rows[t->count++] = (struct address_cost){ .location = i,
                                                             .frame = m->locations.frames[k],
                                                             .line = m->locations.lines[k] };
                t->row_of[i] = (uint32_t)t->count;
        }
        return st;
}

static enum status add_entry_addresses(struct address_table *t, size_t entry)
{
        const struct merged_profile *m = &t->l->sides[0];
        const struct merged_entry *e = &m->entries[entry];
        bool is_leaf = true;
        enum status st = ST_OK;

        for (size_t j = m->stacks->first[e->stack]; !st && j < m->stacks->first[e->stack + 1]; j++) {
                uint32_t location = m->stacks->indexes[j];
                struct address_cost *row = t->row_of[location] ? &t->rows[t->row_of[location] - 1] : NULL;

                if (row && is_leaf)
                        add_saturating(&row->flat, e->value);
                if (row && row->seen != entry + 1) {
                        add_saturating(&row->cumulative, e->value);
                        sample_count_add(&row->samples, e->samples);
                        row->seen = entry + 1;
                }
                is_leaf = is_leaf && m->locations.first[location] == m->locations.end[location];
                st = work_meter_add(t->q->meter, 1, t->q->err);
        }
        return st;
}

static int compare_address_costs(const void *x, const void *y, void *context)
{
        const struct address_cost *a = x, *b = y;

        (void)context;
        if (a->flat != b->flat)
                return a->flat > b->flat ? -1 : 1;
        if (a->cumulative != b->cumulative)
                return a->cumulative > b->cumulative ? -1 : 1;
        return a->location < b->location ? -1 : a->location > b->location;
}

/* ---- answers ---- */

static const struct scan_location *get_row_location(const struct address_table *t, const struct address_cost *row)
{
        return &t->l->sides[0].stacks->locations[row->location];
}

/* As in the column address_kind of the table locations. */
static const char *get_address_kind(const struct scan_location *l)
{
        return l->is_file_offset ? "file_offset" : l->build_id->size || l->address ? "object" : "none";
}

static void put_address_json(const struct address_table *t, const struct address_cost *row, struct json_out *j)
{
        const struct scan_location *l = get_row_location(t, row);
        const struct query_frame *f = &t->l->frames.items[row->frame];
        enum symbol_state state;
        char id[BUILD_ID_HEX_MAX], address[24];

        snprintf(address, sizeof address, "0x%" PRIx64, l->address);
        json_out_object(j, NULL);
        json_out_str(j, "build_id", build_id_hex(l->build_id, id));
        json_out_str(j, "object", l->mapping);
        json_out_str(j, "address", address);
        json_out_str(j, "address_kind", get_address_kind(l));
        json_out_str(j, "state", l->state);
        if (symbol_state_parse(l->state, &state) && symbol_state_is_reason(state)) {
                json_out_str(j, "meaning", symbol_state_meaning(state));
                json_out_str(j, "next_step", symbol_state_next_step(state));
        }
        json_out_str(j, "quality", symbol_quality_name(l->quality));
        json_out_str(j, "function", f->function);
        json_out_str(j, "file", f->file);
        json_out_int(j, "line", row->line);
        json_out_int(j, "flat", row->flat);
        json_out_int(j, "cumulative", row->cumulative);
        json_out_uint(j, "samples", sample_count_round(row->samples));
        json_out_object_end(j);
}

static enum status put_addresses_json(const struct address_table *t, size_t count)
{
        struct json_out j;
        enum status st = ST_OK;

        json_out_init(&j, t->q->ret);
        json_out_object(&j, NULL);
        loaded_sides_put_head(t->l, &j);
        json_out_uint(&j, "address_count", t->count);
        json_out_array(&j, "rows");
        for (size_t i = 0; !st && i < count; i++) {
                st = work_meter_add(t->q->meter, 64, t->q->err);
                put_address_json(t, &t->rows[i], &j);
        }
        json_out_array_end(&j);
        json_out_object_end(&j);
        return st;
}

static enum status put_addresses_csv(const struct address_table *t, size_t count)
{
        struct buf *ret = t->q->ret;
        char id[BUILD_ID_HEX_MAX];
        enum status st = ST_OK;

        buf_append_str(ret,
                       "build_id,object,address,address_kind,state,function,file,line,flat,cumulative,samples\r\n");
        for (size_t i = 0; !st && i < count; i++) {
                const struct address_cost *row = &t->rows[i];
                const struct scan_location *l = get_row_location(t, row);
                const struct query_frame *f = &t->l->frames.items[row->frame];

                st = work_meter_add(t->q->meter, 64, t->q->err);
                buf_printf(ret, "%s,", build_id_hex(l->build_id, id));
                csv_put_text(ret, l->mapping, ',');
                buf_printf(ret, "0x%" PRIx64 ",%s,%s,", l->address, get_address_kind(l), l->state);
                csv_put_text(ret, f->function, ',');
                csv_put_text(ret, f->file, ',');
                buf_printf(ret, "%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRIu64 "\r\n", row->line, row->flat,
                           row->cumulative, sample_count_round(row->samples));
        }
        return st;
}

static enum status put_addresses_answer(const struct address_table *t)
{
        struct query_call *q = t->q;
        size_t count = q->r.limit && q->r.limit < t->count ? (size_t)q->r.limit : t->count;

        q->content_type = query_call_content_type(q);
        return q->r.format == FORMAT_CSV ? put_addresses_csv(t, count) : put_addresses_json(t, count);
}

enum status query_answer_addresses(struct query_call *q)
{
        static const char *const choices[] = { "function", "function_name", "file", "file_name" };
        _cleanup_loaded_sides_ struct loaded_sides l = { 0 };
        _cleanup_(
                address_table_deinit) struct address_table t = { .q = q, .l = &l, .memory = { .use = MEMORY_QUERIES } };
        const char *hex = query_param_get(&q->params, "", "build_id");
        bool is_chosen = false;
        enum status st;

        if (hex && !build_id_from_hex(&t.asked, hex, strlen(hex)))
                return error_set(q->err, ST_USAGE, "build_id is not a build-id");
        for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
                is_chosen = is_chosen || query_param_get(&q->params, "", choices[i]);
        if (!is_chosen && !hex)
                return error_set(q->err, ST_USAGE,
                                 "addresses needs function or file (regular expressions), function_name or file_name "
                                 "(exact), or build_id");
        st = loaded_sides_load(q, NULL, &l);
        if (!st && is_chosen)
                st = function_targets_find_asked(q, &l.frames, &t.targets);
        if (!st)
                st = list_target_locations(&t);
        for (size_t i = 0; !st && i < l.sides[0].count; i++)
                st = add_entry_addresses(&t, i);
        if (!st)
                st = work_meter_sort(q->meter, t.rows, t.count, sizeof *t.rows, compare_address_costs, NULL, q->err);
        return st ? st : put_addresses_answer(&t);
}
