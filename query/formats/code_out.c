/* SPDX-License-Identifier: Apache-2.0 */
#include "query/formats/code_out.h"

#include <inttypes.h>
#include <string.h>

#include "common/text/csv.h"
#include "common/text/number_text.h"
#include "common/text/utf8.h"
#include "common/text.h"
#include "query/engine/unit_text.h"

void code_table_put_address_json(struct json_out *j, const char *key, uint64_t address)
{
        char text[24];

        snprintf(text, sizeof text, "0x%" PRIx64, address);
        json_out_str(j, key, text);
}

bool code_table_is_new_place(const struct code_table *t, const struct code_range *r, uint32_t instruction)
{
        return instruction == r->first || !code_place_is_same(&t->places[instruction], &t->places[instruction - 1]);
}

void code_table_put_instruction_json(struct code_table *t, uint32_t i, bool has_place, struct json_out *j)
{
        static const char *const flows[] = {
                [FLOW_JUMP] = "jump", [FLOW_CALL] = "call", [FLOW_RETURN] = "return", [FLOW_UNKNOWN] = "unknown"
        };
        const struct code_instruction *in = &t->code.instructions[i];
        const struct code_place *p = &t->places[i];
        char bytes[2 * INSTRUCTION_BYTES_MAX + 1];
        const char *name = code_table_get_target_name(t, i), *text;
        size_t n = 0;

        code_table_put_address_json(j, "address", in->address);
        json_out_str(j, "bytes", hex_encode(in->bytes, in->size, bytes));
        json_out_str(j, "mnemonic", in->mnemonic);
        json_out_str(j, "operands", in->operands);
        if (in->flow != FLOW_NEXT)
                json_out_str(j, "flow", flows[in->flow]);
        if (in->has_target)
                code_table_put_address_json(j, "target", in->target);
        if (name)
                json_out_str(j, "target_name", name);
        if (!has_place)
                return;
        json_out_object(j, "place");
        json_out_str(j, "function", p->function);
        json_out_str(j, "file", p->file);
        json_out_uint(j, "line", p->line);
        text = code_table_get_source(t, p, &n);
        if (text)
                json_out_strn(j, "source", text, n);
        json_out_object_end(j);
}

/* ---- JSON ---- */

static enum status put_ranges_json(struct code_table *t, struct json_out *j)
{
        enum status st = ST_OK;

        json_out_array(j, "ranges");
        for (uint32_t i = 0; !st && i < t->code.range_count; i++) {
                const struct code_range *r = &t->code.ranges[i];

                json_out_object(j, NULL);
                json_out_str(j, "function", code_table_get_range_name(t, r));
                code_table_put_address_json(j, "start", r->start);
                code_table_put_address_json(j, "end", r->end);
                json_out_bool(j, "is_cut", r->is_cut);
                json_out_array(j, "instructions");
                for (uint32_t k = r->first; !st && k < r->first + r->count; k++) {
                        const struct code_cost *c = &t->instruction_costs[k];

                        st = work_meter_add(t->q->meter, 64, t->q->err);
                        json_out_object(j, NULL);
                        code_table_put_instruction_json(t, k, code_table_is_new_place(t, r, k), j);
                        if (c->cumulative) {
                                json_out_int(j, "flat", c->flat);
                                json_out_int(j, "cumulative", c->cumulative);
                        }
                        json_out_object_end(j);
                }
                json_out_array_end(j);
                json_out_object_end(j);
        }
        json_out_array_end(j);
        return st;
}

void code_table_put_objects_json(const struct code_table *t, const char *key, struct json_out *j)
{
        char id[BUILD_ID_HEX_MAX];

        json_out_array(j, key);
        for (size_t i = 0; i < t->object_count && !work_meter_add(t->q->meter, 64, NULL); i++) {
                const struct scan_location *l = code_table_get_location(t, t->objects[i].location);

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
        upload_command_put(ret, UPLOAD_EXECUTABLE, t->request->server, code_table_get_object_path(t));
}

void code_table_put_missing_json(const struct code_table *t, const char *key, struct json_out *j)
{
        _cleanup_buf_ struct buf command;

        buf_init(&command, LIMIT_PATH_BYTES * 2);
        if (!t->missing.code)
                return;
        put_upload_of_executable(t, &command);
        json_out_object(j, key);
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

static enum status put_code_json(struct code_table *t, const struct loaded_sides *l)
{
        char id[BUILD_ID_HEX_MAX];
        struct json_out j;
        enum status st;

        json_out_init(&j, t->q->ret);
        json_out_object(&j, NULL);
        loaded_sides_put_head(l, &j);
        json_out_str(&j, "build_id", build_id_hex(&t->id, id));
        json_out_str(&j, "object", code_table_get_object_path(t));
        json_out_str(&j, "syntax", t->request->is_att ? "att" : "intel");
        code_table_put_objects_json(t, "objects", &j);
        code_table_put_missing_json(t, "missing", &j);
        st = put_ranges_json(t, &j);
        json_out_object_end(&j);
        return st;
}

/* ---- CSV and text ---- */

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
                const char *name = code_table_get_target_name(t, i);

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
        const char *text = code_table_get_source(t, p, &n);

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
        const char *unit = t->side->unit, *name = code_table_get_target_name(t, i);
        struct buf *ret = t->q->ret;
        char v[2][40];

        buf_printf(ret, "%12s %12s  %8" PRIx64 ":  %-8s %s", c->flat ? format_value(c->flat, unit, v[0], 40) : "",
                   c->cumulative ? format_value(c->cumulative, unit, v[1], 40) : "", in->address, in->mnemonic,
                   in->operands);
        if (name) {
                buf_append_str(ret, " <");
                utf8_append_escaped(ret, name);
                buf_append_u8(ret, '>');
        } else if (in->has_target && !instruction_leads_elsewhere(in)) {
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
                utf8_append_escaped(ret, *code_table_get_range_name(t, r) ? code_table_get_range_name(t, r)
                                                                          : "(unknown function)");
                buf_append_str(ret, "  ");
                utf8_append_escaped(ret, code_table_get_object_path(t));
                buf_printf(ret, "  %s\n%12s %12s  %8s\n", build_id_hex(&t->id, id), "flat", "cumulative", "address");
                for (uint32_t k = r->first; !st && k < r->first + r->count; k++) {
                        if (code_table_is_new_place(t, r, k))
                                put_place_text(t, &t->places[k]);
                        put_instruction_text(t, k);
                        st = work_meter_add(t->q->meter, 64, t->q->err);
                }
                if (r->is_cut)
                        buf_printf(ret, "%26s... to 0x%" PRIx64 "\n", "", r->end);
        }
        return st;
}

enum status code_table_fail_missing(const struct code_table *t)
{
        _cleanup_buf_ struct buf command;

        buf_init(&command, LIMIT_PATH_BYTES * 2);
        if (!t->chosen && !t->request->has_range)
                return error_set(t->q->err, ST_NOT_FOUND, "%s", t->missing.text);
        put_upload_of_executable(t, &command);
        if (t->missing.code != ST_NOT_FOUND)
                return error_set(t->q->err, t->missing.code, "%s", t->missing.text);
        return error_set(t->q->err, ST_NOT_FOUND, "%s; upload it: %s", t->missing.text, buf_cstr(&command));
}

enum status code_table_put_answer(struct code_table *t, const struct loaded_sides *l)
{
        struct query_call *q = t->q;
        enum status st;

        q->content_type = query_call_content_type(q);
        if (q->r.format == FORMAT_JSON)
                st = put_code_json(t, l);
        else if (t->missing.code)
                st = code_table_fail_missing(t);
        else
                st = q->r.format == FORMAT_CSV ? put_code_csv(t) : put_code_text(t);
        return st ? st : buf_status(q->ret, q->err, "disassembly");
}
