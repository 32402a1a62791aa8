/* SPDX-License-Identifier: Apache-2.0 */
/* The instructions of two builds beside each other, with the costs of both sides. */
#include <inttypes.h>
#include <string.h>

#include "common/text/csv.h"
#include "common/text/number_text.h"
#include "common/text/utf8.h"
#include "common/text.h"
#include "query/engine/top.h"
#include "query/engine/unit_text.h"
#include "query/formats/code_out.h"

struct compared_code {
        struct code_table *tables; /* before and after */
        const struct code_alignment *alignment;
        const struct loaded_sides *l;
        struct query_call *q;
};

/* What happened to an instruction, in words and as a sign in texts. */
struct code_change {
        const char *name, *sign;
};

static struct code_change get_row_change(const struct code_row *r)
{
        if (r->after == NO_CODE)
                return (struct code_change){ "removed", "-" };
        if (r->before == NO_CODE)
                return (struct code_change){ "added", "+" };
        return r->is_changed ? (struct code_change){ "changed", "!" } : (struct code_change){ "", "" };
}

/* Costs before and after, by kind. */
struct row_costs {
        int64_t flat[2], cumulative[2];
};

static struct row_costs get_row_costs(const struct compared_code *c, const struct code_row *r)
{
        const uint32_t at[2] = { r->before, r->after };
        struct row_costs ret = { { 0 }, { 0 } };

        for (unsigned side = 0; side < 2; side++) {
                if (at[side] == NO_CODE)
                        continue;
                ret.flat[side] = c->tables[side].instruction_costs[at[side]].flat;
                ret.cumulative[side] = c->tables[side].instruction_costs[at[side]].cumulative;
        }
        return ret;
}

static bool has_row_cost(const struct row_costs *costs)
{
        return costs->flat[0] || costs->flat[1] || costs->cumulative[0] || costs->cumulative[1];
}

static const struct code_range *get_pair_range(const struct compared_code *c, const struct code_pair *p, unsigned side)
{
        const uint32_t range = side ? p->after : p->before;

        return range == NO_CODE ? NULL : &c->tables[side].code.ranges[range];
}

/* The name of the function after, or of that before if there is none. */
static const char *get_pair_name(const struct compared_code *c, const struct code_pair *p)
{
        const struct code_range *after = get_pair_range(c, p, 1);

        return after ? code_table_get_range_name(&c->tables[1], after)
                     : code_table_get_range_name(&c->tables[0], get_pair_range(c, p, 0));
}

/* ---- JSON ---- */

static void put_code_row_json(const struct compared_code *c, const struct code_pair *p, const struct code_row *r,
                              struct json_out *j)
{
        static const char *const keys[] = { "before", "after" };
        const uint32_t at[2] = { r->before, r->after };
        const struct row_costs costs = get_row_costs(c, r);

        json_out_object(j, NULL);
        for (unsigned side = 0; side < 2; side++) {
                struct code_table *t = &c->tables[side];

                if (at[side] == NO_CODE)
                        continue;
                json_out_object(j, keys[side]);
                code_table_put_instruction_json(t, at[side],
                                                code_table_is_new_place(t, get_pair_range(c, p, side), at[side]), j);
                json_out_object_end(j);
        }
        if (r->is_changed)
                json_out_bool(j, "is_changed", true);
        if (has_row_cost(&costs)) {
                json_out_int(j, "flat", costs.flat[0]);
                json_out_int(j, "cumulative", costs.cumulative[0]);
                json_out_int(j, "flat_after", costs.flat[1]);
                json_out_int(j, "cumulative_after", costs.cumulative[1]);
        }
        json_out_object_end(j);
}

static void put_pair_bounds_json(const struct compared_code *c, const struct code_pair *p, struct json_out *j)
{
        static const char *const keys[2][3] = { { "base_start", "base_end", "base_is_cut" },
                                                { "start", "end", "is_cut" } };

        for (unsigned side = 2; side-- > 0;) {
                const struct code_range *r = get_pair_range(c, p, side);

                if (!r)
                        continue;
                code_table_put_address_json(j, keys[side][0], r->start);
                code_table_put_address_json(j, keys[side][1], r->end);
                json_out_bool(j, keys[side][2], r->is_cut);
        }
}

static enum status put_pairs_json(const struct compared_code *c, struct json_out *j)
{
        enum status st = ST_OK;

        json_out_array(j, "ranges");
        for (uint32_t i = 0; !st && i < c->alignment->pair_count; i++) {
                const struct code_pair *p = &c->alignment->pairs[i];

                json_out_object(j, NULL);
                json_out_str(j, "function", get_pair_name(c, p));
                put_pair_bounds_json(c, p, j);
                json_out_array(j, "rows");
                for (uint32_t k = p->first; !st && k < p->first + p->count; k++) {
                        st = work_meter_add(c->q->meter, 128, c->q->err);
                        put_code_row_json(c, p, &c->alignment->rows[k], j);
                }
                json_out_array_end(j);
                json_out_object_end(j);
        }
        json_out_array_end(j);
        return st;
}

static enum status put_comparison_json(const struct compared_code *c)
{
        static const char *const keys[2][4] = { { "base_build_id", "base_object", "base_objects", "base_missing" },
                                                { "build_id", "object", "objects", "missing" } };
        char id[BUILD_ID_HEX_MAX];
        struct json_out j;
        enum status st;

        json_out_init(&j, c->q->ret);
        json_out_object(&j, NULL);
        loaded_sides_put_head(c->l, &j);
        json_out_str(&j, "syntax", c->tables[1].request->is_att ? "att" : "intel");
        for (unsigned side = 2; side-- > 0;) {
                const struct code_table *t = &c->tables[side];

                json_out_str(&j, keys[side][0], build_id_hex(&t->id, id));
                json_out_str(&j, keys[side][1], code_table_get_object_path(t));
                code_table_put_objects_json(t, keys[side][2], &j);
                code_table_put_missing_json(t, keys[side][3], &j);
        }
        st = put_pairs_json(c, &j);
        json_out_object_end(&j);
        return st;
}

/* ---- CSV ---- */

static void put_side_csv(const struct code_table *t, uint32_t i, struct buf *ret)
{
        if (i == NO_CODE) {
                buf_append_str(ret, ",,,,,");
                return;
        }
        buf_printf(ret, "0x%" PRIx64 ",%s,", t->code.instructions[i].address, t->code.instructions[i].mnemonic);
        csv_put_text(ret, t->code.instructions[i].operands, ',');
        csv_put_text(ret, t->places[i].file, ',');
        buf_printf(ret, "%" PRIu32 ",", t->places[i].line);
}

static enum status put_comparison_csv(const struct compared_code *c)
{
        struct buf *ret = c->q->ret;
        enum status st = ST_OK;

        buf_append_str(ret, "function,change,address_before,mnemonic_before,operands_before,file_before,line_before,"
                            "address,mnemonic,operands,file,line,flat,cumulative,flat_after,cumulative_after\r\n");
        for (uint32_t i = 0; !st && i < c->alignment->pair_count; i++) {
                const struct code_pair *p = &c->alignment->pairs[i];

                for (uint32_t k = p->first; !st && k < p->first + p->count; k++) {
                        const struct code_row *r = &c->alignment->rows[k];
                        const struct row_costs costs = get_row_costs(c, r);

                        st = work_meter_add(c->q->meter, 128, c->q->err);
                        csv_put_text(ret, get_pair_name(c, p), ',');
                        buf_printf(ret, "%s,", get_row_change(r).name);
                        put_side_csv(&c->tables[0], r->before, ret);
                        put_side_csv(&c->tables[1], r->after, ret);
                        buf_printf(ret, "%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "\r\n", costs.flat[0],
                                   costs.cumulative[0], costs.flat[1], costs.cumulative[1]);
                }
        }
        return st;
}

/* ---- text ---- */

static void put_address_text(const struct code_table *t, uint32_t i, struct buf *ret)
{
        if (i == NO_CODE)
                buf_printf(ret, " %8s", "-");
        else
                buf_printf(ret, " %8" PRIx64, t->code.instructions[i].address);
}

static void put_instruction_words(const struct code_table *t, uint32_t i, struct buf *ret)
{
        const struct code_instruction *in = &t->code.instructions[i];
        const char *name = code_table_get_target_name(t, i);

        if (*in->operands)
                buf_printf(ret, "%-8s %s", in->mnemonic, in->operands);
        else
                buf_append_str(ret, in->mnemonic);
        if (!name)
                return;
        buf_append_str(ret, " <");
        utf8_append_escaped(ret, name);
        buf_append_u8(ret, '>');
}

static void put_code_row_text(const struct compared_code *c, const struct code_row *r, struct buf *ret)
{
        const struct row_costs costs = get_row_costs(c, r);
        const bool is_removed = r->after == NO_CODE;

        if (has_row_cost(&costs)) {
                loaded_sides_put_change(c->l, costs.flat, ret);
                buf_append_u8(ret, ' ');
                loaded_sides_put_change(c->l, costs.cumulative, ret);
        } else {
                buf_printf(ret, "%93s", "");
        }
        put_address_text(&c->tables[0], r->before, ret);
        put_address_text(&c->tables[1], r->after, ret);
        buf_printf(ret, "  %1s ", get_row_change(r).sign);
        put_instruction_words(&c->tables[!is_removed], is_removed ? r->before : r->after, ret);
        if (r->is_changed) {
                buf_append_str(ret, "  (before: ");
                put_instruction_words(&c->tables[0], r->before, ret);
                buf_append_str(ret, ")");
        }
        buf_append_u8(ret, '\n');
}

static void put_pair_heading(const struct compared_code *c, const struct code_pair *p, struct buf *ret)
{
        const char *name = get_pair_name(c, p);
        char id[BUILD_ID_HEX_MAX];

        buf_append_str(ret, "\n");
        utf8_append_escaped(ret, *name ? name : "(unknown function)");
        for (unsigned side = 0; side < 2; side++) {
                buf_printf(ret, "%s", side ? ", after " : "  before ");
                utf8_append_escaped(ret, code_table_get_object_path(&c->tables[side]));
                buf_printf(ret, " %s", build_id_hex(&c->tables[side].id, id));
        }
        buf_printf(ret, "\n%46s %46s\n%11s %11s %11s %10s %11s %11s %11s %10s %8s %8s\n", "flat", "cumulative",
                   "before", "after", "change", "of share", "before", "after", "change", "of share", "before", "after");
}

static enum status put_comparison_text(const struct compared_code *c)
{
        struct buf *ret = c->q->ret;
        enum status st = ST_OK;

        top_put_text_header(&c->l->sides[0], &c->l->sides[1], ret);
        for (uint32_t i = 0; !st && i < c->alignment->pair_count; i++) {
                const struct code_pair *p = &c->alignment->pairs[i];

                put_pair_heading(c, p, ret);
                for (uint32_t k = p->first; !st && k < p->first + p->count; k++) {
                        put_code_row_text(c, &c->alignment->rows[k], ret);
                        st = work_meter_add(c->q->meter, 128, c->q->err);
                }
        }
        return st;
}

/* Formats without a member for it show the other side alone. */
static void note_missing_side(const struct compared_code *c)
{
        for (unsigned side = 0; side < 2; side++)
                if (c->tables[side].missing.code && !c->tables[!side].missing.code)
                        buf_printf(&c->q->note, "%sno code %s: %s", c->q->note.size ? "; " : "",
                                   side ? "after" : "before", c->tables[side].missing.text);
}

enum status code_table_put_comparison(struct code_table tables[2], const struct code_alignment *alignment,
                                      const struct loaded_sides *l)
{
        struct query_call *q = tables[0].q;
        const struct compared_code c = { .tables = tables, .alignment = alignment, .l = l, .q = q };
        enum status st = ST_OK;

        q->content_type = query_call_content_type(q);
        if (q->r.format != FORMAT_JSON)
                note_missing_side(&c);
        if (q->r.format == FORMAT_JSON)
                st = put_comparison_json(&c);
        else if (tables[0].missing.code && tables[1].missing.code)
                st = code_table_fail_missing(&tables[1]);
        else
                st = q->r.format == FORMAT_CSV ? put_comparison_csv(&c) : put_comparison_text(&c);
        return st ? st : buf_status(q->ret, q->err, "disassembly");
}
