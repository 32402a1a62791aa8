/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operation "disassembly": the instructions of functions, or of a range of addresses, each with its cost, line and
 * branch target (code_table.h); in a comparison those of both sides beside each other (code_alignment.h).
 */
#include <stdlib.h>
#include <string.h>

#include "common/text/number_text.h"
#include "common/text.h"
#include "query/formats/code_out.h"

struct code_params {
        struct code_request request;
        struct build_id asked, base_asked; /* size 0: none */
};

static enum status parse_code_range(struct query_call *q, struct code_params *p)
{
        const char *start = query_param_get(&q->params, "", "start"), *end = query_param_get(&q->params, "", "end");
        struct code_request *r = &p->request;

        if (!start && !end)
                return ST_OK;
        r->has_range = true;
        if (!start || !end || !parse_hex(start, &r->start) || !parse_hex(end, &r->end) || r->start >= r->end)
                return error_set(q->err, ST_USAGE,
                                 "start and end must be hexadecimal addresses, end greater than start");
        if (query_call_find_base(q))
                return error_set(q->err, ST_USAGE, "a range of addresses is not compared; give a function");
        return p->asked.size ? ST_OK : error_set(q->err, ST_USAGE, "start and end require build_id");
}

static enum status parse_asked_object(struct query_call *q, const char *prefix, struct build_id *ret)
{
        const char *id = query_param_get(&q->params, prefix, "build_id");

        if (!id || build_id_from_hex(ret, id, strlen(id)))
                return ST_OK;
        return error_set(q->err, ST_USAGE, "'%.130s' is not a build-id", id);
}

static enum status parse_code_params(struct query_call *q, struct code_params *p)
{
        const char *syntax = query_param_get(&q->params, "", "syntax");
        bool is_named = query_param_get(&q->params, "", "function") || query_param_get(&q->params, "", "function_name");
        enum status st = parse_asked_object(q, "", &p->asked);

        if (!st)
                st = parse_asked_object(q, "base_", &p->base_asked);
        if (st)
                return st;
        if (p->base_asked.size && !query_call_find_base(q))
                return error_set(q->err, ST_USAGE, "base_build_id requires base_selector, base_from or base_to");
        if (syntax && strcmp(syntax, "intel") != 0 && strcmp(syntax, "att") != 0)
                return error_set(q->err, ST_USAGE, "syntax must be intel or att");
        p->request.is_att = syntax && strcmp(syntax, "att") == 0;
        p->request.server = query_param_get(&q->params, "", "server");
        st = parse_code_range(q, p);
        if (st)
                return st;
        if (is_named == p->request.has_range)
                return error_set(q->err, ST_USAGE,
                                 "disassembly needs function (a regular expression for the whole name), "
                                 "function_name (exact), or a range: build_id, start and end");
        return q->code ? ST_OK
                       : error_set(q->err, ST_UNSUPPORTED,
                                   "only a service has executables to disassemble: query a service");
}

/* ---- comparison ---- */

/* The names that an alignment compares; borrowed from the table. */
static enum status make_code_side(const struct code_table *t, struct memory_reservation *memory,
                                  const char *const **names_ret, struct code_side *ret)
{
        const size_t ranges = t->code.range_count, instructions = t->code.instruction_count;
        const char **names;
        enum status st = memory_reserve(memory, (ranges + instructions) * sizeof *names, t->q->err);

        if (st)
                return st;
        names = calloc(ranges + instructions + 1, sizeof *names);
        if (!names)
                return error_no_memory(t->q->err);
        for (uint32_t i = 0; i < ranges; i++)
                names[i] = code_table_get_range_name(t, &t->code.ranges[i]);
        for (uint32_t i = 0; i < instructions; i++)
                names[ranges + i] = code_table_get_target_name(t, i);
        *names_ret = names;
        *ret = (struct code_side){ &t->code, names, names + ranges };
        return ST_OK;
}

static enum status align_code(struct code_table tables[2], struct code_alignment *ret)
{
        _cleanup_memory_ struct memory_reservation memory = { .use = MEMORY_QUERIES };
        const char *const *names[2] = { NULL, NULL };
        struct code_side sides[2];
        enum status st = ST_OK;

        for (unsigned side = 0; !st && side < 2; side++)
                st = make_code_side(&tables[side], &memory, &names[side], &sides[side]);
        if (!st)
                st = code_alignment_make(sides, tables[0].q->meter, ret, tables[0].q->err);
        free((void *)names[0]);
        free((void *)names[1]);
        return st;
}

static enum status answer_comparison(struct code_table tables[2], const struct loaded_sides *l)
{
        struct code_alignment alignment = { 0 };
        enum status st = align_code(tables, &alignment);

        if (!st)
                st = code_table_put_comparison(tables, &alignment, l);
        code_alignment_deinit(&alignment);
        return st;
}

/* ---- the operation ---- */

/* @param base  the selection to compare with, or NULL. */
static enum status answer_code(struct query_call *q, const struct query_selection *base, struct code_params *p)
{
        _cleanup_loaded_sides_ struct loaded_sides l = { 0 };
        _cleanup_function_targets_ struct function_targets targets = { 0 };
        struct code_table tables[2] = { { .q = q }, { .q = q } };
        enum status st = loaded_sides_load(q, base, &l);

        if (!st && !p->request.has_range)
                st = function_targets_find_asked(q, &l.frames, &targets);
        p->request.is_target = targets.is_target;
        for (unsigned side = 0; side < 2; side++) {
                tables[side].request = &p->request;
                tables[side].side = &l.sides[side];
                tables[side].asked = base && !side ? p->base_asked : p->asked;
                tables[side].memory.use = MEMORY_QUERIES;
        }
        for (unsigned side = 0; !st && side < l.side_count; side++)
                st = code_table_load(&tables[side]);
        if (!st)
                st = l.side_count > 1 ? answer_comparison(tables, &l) : code_table_put_answer(&tables[0], &l);
        code_table_deinit(&tables[0]);
        code_table_deinit(&tables[1]);
        return st;
}

enum status query_answer_disassembly(struct query_call *q)
{
        struct code_params p = { 0 };
        struct query_selection base = { 0 };
        const bool has_base = query_call_find_base(q) != NULL;
        enum status st = parse_code_params(q, &p);

        if (!st && has_base)
                st = query_selection_parse(&q->params, "base_", &q->r.selection, q->now_unix_ns, &base, q->err);
        if (!st)
                st = answer_code(q, has_base ? &base : NULL, &p);
        query_selection_deinit(&base);
        return st;
}
