/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The DWARF part of a report. Units whose DIE claims the address are read first,
 * all units only if none of these gives the frames of the answer.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "dwarf/dwarf_explain.h"
#include "symbol-index/demangle.h"
#include "symbolizer/explain/explain.h"
#include "symbolizer/explain/explain_internal.h"
#include "symbolizer/sources/dwarf_flatten.h"
#include "symbolizer/sources/function_symbols.h"
#include "symbolizer/table/huge_array.h"

#define OTHER_UNITS_MAX 16

struct candidate {
        uint32_t address, unit;
};

/* The unit that explains an address. */
struct choice {
        size_t unit; /* SIZE_MAX: none yet */
        uint64_t others[OTHER_UNITS_MAX];
        size_t other_count;
        bool is_sure;            /* the unit gives exactly the frames of the answer */
        bool is_named_by_symbol; /* the outermost function */
};

struct explain_dwarf {
        struct dwarf_object object;
        struct dwarf_region *regions;     /* owned */
        struct dwarf_reader *reader;      /* owned; NULL without DWARF */
        struct function_symbols *symbols; /* borrowed */
        struct dwarf_code code;
        struct dwarf_lines files;
        uint64_t addresses[EXPLAIN_ADDRESSES_MAX]; /* of the file with the DWARF */
        struct candidate *candidates;              /* owned */
        size_t candidate_count, candidate_capacity;
        struct choice choice;
};

static enum status find_candidates(struct explain_dwarf *d, size_t count, struct error *err)
{
        for (size_t unit = 0; unit < d->object.main.units.count; unit++) {
                for (size_t i = 0; i < count; i++) {
                        if (!dwarf_unit_claims(d->reader, unit, d->addresses[i]))
                                continue;
                        if (!huge_array_reserve(&d->candidates, &d->candidate_capacity, d->candidate_count))
                                return error_no_memory(err);
                        d->candidates[d->candidate_count++] = (struct candidate){ (uint32_t)i, (uint32_t)unit };
                }
        }
        return ST_OK;
}

enum status explain_dwarf_open(const struct extract_view *v, const uint64_t *addresses, size_t count,
                               struct explain_dwarf **ret, struct error *err)
{
        struct explain_dwarf *d = calloc(1, sizeof *d);
        enum status st;

        if (!d)
                return error_no_memory(err);
        dwarf_code_init(&d->code);
        d->symbols = v->symbols;
        for (size_t i = 0; i < count; i++)
                d->addresses[i] = addresses[i] - v->dwarf_bias;
        d->regions = calloc(v->code->count + 1, sizeof *d->regions);
        for (size_t i = 0; d->regions && i < v->code->count; i++)
                d->regions[i] = (struct dwarf_region){ v->code->regions[i].start - v->dwarf_bias,
                                                       v->code->regions[i].end - v->dwarf_bias };
        st = d->regions ? dwarf_object_open(v->best, v->altlink, &d->object, err) : error_no_memory(err);
        if (!st) {
                d->object.companions = *v->companions;
                st = dwarf_object_set_name_test(&d->object, symbol_can_be_demangled, err);
                if (!st)
                        st = dwarf_reader_create(&d->object, (struct dwarf_regions){ d->regions, v->code->count },
                                                 &d->reader, err);
                if (st)
                        dwarf_object_close(&d->object);
        }
        if (!st)
                st = find_candidates(d, count, err);
        if (st == ST_NO_MEMORY) {
                explain_dwarf_close(d);
                return st;
        }
        *ret = d;
        return ST_OK;
}

void explain_dwarf_close(struct explain_dwarf *d)
{
        if (!d)
                return;
        if (d->reader) {
                dwarf_reader_destroy(d->reader);
                dwarf_object_close(&d->object);
        }
        dwarf_code_deinit(&d->code);
        dwarf_lines_deinit(&d->files);
        free(d->regions);
        free(d->candidates);
        free(d);
}

/* ---- finding the unit ---- */

static const char *get_name_text(const struct dwarf_name *n, struct buf *text)
{
        return n->linkage ? n->linkage : dwarf_make_plain_name(n, text);
}

/* The symbol's name if the table has that of the function in place of DWARF's. */
static struct function_symbol_name find_symbol_in_place(struct explain_dwarf *d, uint32_t scope)
{
        const struct dwarf_name *of = &d->code.names[d->code.scopes[scope].name];
        struct function_symbol_name name = { 0 };
        bool done = d->code.scopes[scope].parent != DWARF_NO_SCOPE;

        for (size_t i = 0; !done && i < d->code.interval_count; i++) {
                if (d->code.intervals[i].scope != scope)
                        continue;
                done = function_symbols_find_name(d->symbols, &d->code.intervals[i], of, &name) || name.text ||
                       of->linkage;
        }
        return name;
}

/* Tables cut names at LIMIT_NAME_BYTES. */
static bool matches_name(struct explain_dwarf *d, uint32_t scope, const char *wanted)
{
        _cleanup_buf_ struct buf text = { 0 };
        struct function_symbol_name symbol = find_symbol_in_place(d, scope);

        if (symbol.text)
                return strncmp(symbol.text, wanted, symbol.size) == 0 && wanted[symbol.size] == 0;
        return strncmp(get_name_text(&d->code.names[d->code.scopes[scope].name], &text), wanted, LIMIT_NAME_BYTES) == 0;
}

/* True when the unit's scopes and calls give the frames of the answer. */
static bool gives_frames(struct explain_dwarf *d, uint64_t address, const struct explain_chain *chain)
{
        uint32_t scope = dwarf_scope_at(&d->code, address);
        struct dwarf_row_found row;
        uint64_t line = 0;

        if (dwarf_row_explain(d->reader, &d->code, address, &d->files, &row) == ST_OK)
                line = row.line <= INT32_MAX ? row.line : 0;
        if (scope == DWARF_NO_SCOPE)
                return chain->count == 1 && chain->frames[0].function == SYMBOL_NO_FUNCTION &&
                       chain->frames[0].line == line;
        for (size_t i = 0; i < chain->count; i++) {
                const struct dwarf_scope *s;

                if (scope == DWARF_NO_SCOPE)
                        return false;
                s = &d->code.scopes[scope];
                if (chain->frames[i].line != line ||
                    !matches_name(d, scope, explain_function_name(chain->table, &chain->frames[i])))
                        return false;
                line = s->call_line;
                scope = s->parent;
        }
        return scope == DWARF_NO_SCOPE;
}

/* Whether the outermost function at an address has the name of a symbol. */
static bool is_named_by_symbol(struct explain_dwarf *d, uint64_t address)
{
        uint32_t scope = dwarf_scope_at(&d->code, address);

        while (scope != DWARF_NO_SCOPE && d->code.scopes[scope].parent != DWARF_NO_SCOPE)
                scope = d->code.scopes[scope].parent;
        return scope != DWARF_NO_SCOPE && find_symbol_in_place(d, scope).text;
}

static enum status try_unit(struct explain_dwarf *d, size_t i, const struct explain_chain *chain, size_t unit,
                            struct choice *c, struct error *err)
{
        uint64_t offset = d->object.main.units.items[unit].offset;
        bool gives_it;

        if (dwarf_reader_unit(d->reader, unit, &d->code))
                return error_no_memory(err);
        if (!dwarf_code_covers(&d->code, d->addresses[i]))
                return ST_OK;
        if (dwarf_explain_enter(d->reader, unit, &d->code, false))
                return ST_OK;
        gives_it = gives_frames(d, d->addresses[i], chain);
        dwarf_explain_leave(d->reader);
        if (c->unit == SIZE_MAX || (gives_it && !c->is_sure)) {
                if (c->unit != SIZE_MAX && c->other_count < OTHER_UNITS_MAX)
                        c->others[c->other_count++] = d->object.main.units.items[c->unit].offset;
                c->unit = unit;
                c->is_sure = gives_it;
                c->is_named_by_symbol = is_named_by_symbol(d, d->addresses[i]);
        } else if (c->other_count < OTHER_UNITS_MAX) {
                c->others[c->other_count++] = offset;
        }
        return ST_OK;
}

static enum status choose_unit(struct explain_dwarf *d, size_t i, const struct explain_chain *chain, struct choice *c,
                               struct error *err)
{
        enum status st = ST_OK;

        for (size_t k = 0; !st && k < d->candidate_count; k++)
                if (d->candidates[k].address == i)
                        st = try_unit(d, i, chain, d->candidates[k].unit, c, err);
        if (st || c->is_sure)
                return st;
        c->unit = SIZE_MAX;
        c->other_count = 0;
        for (size_t unit = 0; !st && unit < d->object.main.units.count; unit++)
                st = try_unit(d, i, chain, unit, c, err);
        return st;
}

/* ---- writing ---- */

static const char *get_tag_name(uint16_t tag)
{
        switch (tag) {
        case DW_TAG_subprogram:
                return "subprogram";
        case DW_TAG_inlined_subroutine:
                return "inlined_subroutine";
        case DW_TAG_entry_point:
                return "entry_point";
        case DW_TAG_compile_unit:
                return "compile_unit";
        case DW_TAG_partial_unit:
                return "partial_unit";
        case DW_TAG_skeleton_unit:
                return "skeleton_unit";
        default:
                return NULL;
        }
}

static void put_tag(struct json_out *j, uint16_t tag)
{
        if (get_tag_name(tag))
                json_out_str(j, "tag", get_tag_name(tag));
        else
                explain_put_hex(j, "tag", tag);
}

static void put_dwarf_unit(struct explain_dwarf *d, struct json_out *j, const char *key)
{
        struct dwarf_unit_found u;

        dwarf_unit_explain(d->reader, &u);
        json_out_object(j, key);
        explain_put_hex(j, "offset", u.unit->offset);
        explain_put_hex(j, "end", u.unit->end);
        explain_put_hex(j, "die", u.unit->first_die);
        put_tag(j, u.tag);
        json_out_uint(j, "version", u.unit->format.version);
        json_out_uint(j, "offset_bytes", u.unit->format.offset_size);
        json_out_uint(j, "address_bytes", u.unit->format.address_size);
        json_out_bool(j, "split", u.is_split);
        json_out_str(j, "name", u.name);
        json_out_str(j, "comp_dir", u.directory);
        json_out_str(j, "producer", u.producer);
        if (u.dwo_name)
                json_out_str(j, "dwo_name", u.dwo_name);
        if (u.has_dwo_id)
                explain_put_hex(j, "dwo_id", u.dwo_id);
        if (u.line_table != UINT64_MAX)
                explain_put_hex(j, "line_table", u.line_table);
        if (d->code.damage)
                json_out_bool(j, "damaged", true);
        if (d->code.misses_companion)
                json_out_bool(j, "misses_split_unit", true);
        json_out_object_end(j);
}

static void put_hops(struct json_out *j, const struct dwarf_scope_found *s)
{
        static const char *const how[] = { [DWARF_HOP_SELF] = "self",
                                           [DWARF_HOP_ORIGIN] = "abstract_origin",
                                           [DWARF_HOP_SPECIFICATION] = "specification" };

        json_out_array(j, "names");
        for (size_t i = 0; i < s->hop_count; i++) {
                const struct dwarf_hop *h = &s->hops[i];

                json_out_object(j, NULL);
                json_out_str(j, "by", how[h->how]);
                explain_put_hex(j, "die", h->die & ~DWARF_REF_ALT);
                explain_put_hex(j, "unit", h->unit);
                json_out_str(j, "file", h->die & DWARF_REF_ALT ? "dwz" : "own");
                put_tag(j, h->tag);
                if (i == s->name_hop)
                        json_out_str(j, "gave", s->name.linkage ? "linkage_name" : "name");
                json_out_object_end(j);
        }
        json_out_array_end(j);
}

static void put_line_path(struct explain_dwarf *d, struct json_out *j, const char *key, uint64_t file)
{
        _cleanup_buf_ struct buf path = { 0 };
        const char *text;

        buf_init(&path, 4 * LIMIT_NAME_BYTES);
        dwarf_lines_path(&d->files, file, &path);
        text = path.size ? buf_cstr(&path) : NULL;
        json_out_str(j, key, text ? text : "");
}

static void put_dwarf_scope(struct explain_dwarf *d, struct json_out *j, uint32_t scope, uint64_t address)
{
        _cleanup_buf_ struct buf text = { 0 };
        const char *section = NULL;
        struct dwarf_scope_found s;
        struct dwarf_unit_found u;

        dwarf_unit_explain(d->reader, &u);
        dwarf_scope_explain(d->reader, &d->code, scope, address, &s);
        json_out_object(j, NULL);
        put_tag(j, s.tag);
        explain_put_hex(j, "die", s.die);
        json_out_str(j, "name", get_name_text(&s.name, &text));
        if (s.has_interval) {
                section = !s.is_list ? "low_pc" : u.unit->format.version >= 5 ? ".debug_rnglists" : ".debug_ranges";
                json_out_object(j, "range");
                explain_put_hex(j, "start", s.start);
                explain_put_hex(j, "end", s.end);
                if (s.used_start != s.start || s.used_end != s.end) {
                        json_out_object(j, "used");
                        explain_put_hex(j, "start", s.used_start);
                        explain_put_hex(j, "end", s.used_end);
                        json_out_object_end(j);
                }
                json_out_str(j, "from", section);
                if (s.is_list) {
                        explain_put_hex(j, "list", s.list);
                        json_out_uint(j, "entry", s.entry);
                }
                json_out_object_end(j);
        }
        if (s.tag == DW_TAG_inlined_subroutine) {
                json_out_object(j, "call");
                put_line_path(d, j, "file", s.call_file);
                json_out_uint(j, "line", s.call_line);
                json_out_uint(j, "column", s.call_column);
                json_out_object_end(j);
        }
        put_hops(j, &s);
        json_out_object_end(j);
}

static void put_line_row(struct explain_dwarf *d, struct json_out *j, const struct dwarf_row_found *r)
{
        json_out_object(j, "line_row");
        explain_put_hex(j, "table", r->table);
        explain_put_hex(j, "opcode", r->opcode);
        explain_put_hex(j, "sequence_start", r->sequence_start);
        explain_put_hex(j, "sequence_end", r->sequence_end);
        explain_put_hex(j, "address", r->address);
        explain_put_hex(j, "end", r->end);
        json_out_uint(j, "file_number", r->file);
        put_line_path(d, j, "file", r->file);
        json_out_uint(j, "line", r->line);
        json_out_uint(j, "column", r->column);
        json_out_uint(j, "discriminator", r->discriminator);
        json_out_bool(j, "is_stmt", r->is_statement);
        json_out_uint(j, "rows_at_address", r->rows_at_address);
        json_out_uint(j, "other_sequences", r->other_sequences);
        json_out_object_end(j);
}

static enum status put_chosen_unit(struct explain_dwarf *d, struct json_out *j, uint64_t address,
                                   const struct choice *c, struct error *err)
{
        struct dwarf_row_found row;
        enum status st;

        if (dwarf_reader_unit(d->reader, c->unit, &d->code))
                return error_no_memory(err);
        if (dwarf_explain_enter(d->reader, c->unit, &d->code, false))
                return ST_OK;
        put_dwarf_unit(d, j, "unit");
        json_out_bool(j, "unit_gives_frames", c->is_sure);
        st = dwarf_row_explain(d->reader, &d->code, address, &d->files, &row);
        if (!st)
                put_line_row(d, j, &row);
        if (d->code.companion && dwarf_explain_enter(d->reader, c->unit, &d->code, true) == ST_OK)
                put_dwarf_unit(d, j, "split_unit");
        json_out_array(j, "scopes");
        for (uint32_t scope = dwarf_scope_at(&d->code, address); scope != DWARF_NO_SCOPE;
             scope = d->code.scopes[scope].parent)
                put_dwarf_scope(d, j, scope, address);
        json_out_array_end(j);
        dwarf_explain_leave(d->reader);
        json_out_array(j, "other_units");
        for (size_t i = 0; i < c->other_count; i++)
                explain_put_hex(j, NULL, c->others[i]);
        json_out_array_end(j);
        return ST_OK;
}

enum status explain_dwarf_choose(struct explain_dwarf *d, size_t i, const struct explain_chain *chain,
                                 bool *named_by_symbol, struct error *err)
{
        enum status st;

        d->choice = (struct choice){ .unit = SIZE_MAX };
        st = d->reader && chain->count ? choose_unit(d, i, chain, &d->choice, err) : ST_OK;
        *named_by_symbol = d->choice.is_named_by_symbol;
        return st;
}

enum status explain_dwarf_put(struct explain_dwarf *d, struct json_out *j, size_t i, struct error *err)
{
        return d->choice.unit == SIZE_MAX ? ST_OK : put_chosen_unit(d, j, d->addresses[i], &d->choice, err);
}
