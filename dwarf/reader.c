/* SPDX-License-Identifier: Apache-2.0 */
#include "dwarf/reader.h"

#include <stdlib.h>

void dwarf_code_init(struct dwarf_code *c)
{
        *c = (struct dwarf_code){ .line_offset = UINT64_MAX };
        arena_init(&c->texts, LIMIT_DWARF_UNIT_TEXT_BYTES);
}

static void drop_companion(struct dwarf_code *c)
{
        dwarf_companion_close(c->companion);
        c->companion = NULL;
}

void dwarf_code_deinit(struct dwarf_code *c)
{
        drop_companion(c);
        dwarf_lines_deinit(&c->lines);
        free(c->scopes);
        free(c->intervals);
        free(c->names);
        arena_deinit(&c->texts);
        dwarf_code_init(c);
}

static void clear(struct dwarf_code *c)
{
        dwarf_lines_clear(&c->lines);
        c->scope_count = c->interval_count = c->name_count = c->function_count = 0;
        c->line_offset = UINT64_MAX;
        c->damage = ST_OK;
        c->misses_companion = false;
        drop_companion(c);
        if (c->texts.used) {
                arena_deinit(&c->texts);
                arena_init(&c->texts, LIMIT_DWARF_UNIT_TEXT_BYTES);
        }
}

enum status dwarf_reader_create(struct dwarf_object *o, struct dwarf_regions code, struct dwarf_reader **ret,
                                struct error *err)
{
        struct dwarf_reader *r = calloc(1, sizeof *r);

        if (!r)
                return error_no_memory(err);
        r->object = o;
        r->regions = code;
        dwarf_known_names_init(&r->known_names);
        *ret = r;
        return ST_OK;
}

void dwarf_reader_destroy(struct dwarf_reader *r)
{
        if (!r)
                return;
        dwarf_context_deinit(&r->main);
        dwarf_context_deinit(&r->lone);
        dwarf_context_deinit(&r->types);
        for (size_t i = 0; i < DWARF_OTHER_CONTEXTS; i++)
                dwarf_context_deinit(&r->others[i]);
        dwarf_outline_deinit(&r->outline);
        dwarf_known_names_deinit(&r->known_names);
        free(r->origins.slots);
        free(r->refs);
        free(r->by_ref);
        free(r);
}

/* Another unit takes the place of the one in x; all are given up when their tables get too large. */
static enum status enter_other(struct dwarf_reader *r, struct dwarf_context *x, struct dwarf_file *file,
                               const struct dwarf_unit *unit)
{
        enum status st;

        r->other_bytes -= x->abbrevs.bytes;
        if (r->other_bytes > LIMIT_DWARF_OTHER_ABBREV_BYTES) {
                for (size_t i = 0; i < DWARF_OTHER_CONTEXTS; i++)
                        dwarf_context_deinit(&r->others[i]);
                r->other_bytes = 0;
        }
        st = dwarf_context_enter(x, r->object, file, unit);
        r->other_bytes += x->abbrevs.bytes;
        return st;
}

struct dwarf_context *dwarf_reader_context(struct dwarf_reader *r, dwarf_ref ref)
{
        struct dwarf_file *file = ref & DWARF_REF_ALT ? &r->object->alt : r->main.file;
        uint64_t offset = ref & ~DWARF_REF_ALT;
        const struct dwarf_unit *unit = r->main.unit;
        struct dwarf_context *x = &r->main;
        enum status st;

        if (unit && !(ref & DWARF_REF_ALT) && offset >= unit->first_die && offset < unit->end)
                return x;
        unit = dwarf_units_find(&file->units, offset);
        if (!unit)
                return NULL;
        x = &r->others[(uintptr_t)unit / sizeof *unit % DWARF_OTHER_CONTEXTS];
        if (x->unit == unit)
                return x;
        st = enter_other(r, x, file, unit);
        if (st)
                r->names_damage = st;
        return st ? NULL : x;
}

/* Only what stops everything is handed on; the rest is damage. */
static enum status settle(struct dwarf_code *code, enum status st)
{
        if (st == ST_NO_MEMORY || (st == ST_TOO_BIG && code->interval_count >= LIMIT_RANGES_PER_OBJECT))
                return st;
        if (st && !code->damage)
                code->damage = st;
        return ST_OK;
}

static enum status read_unit(struct dwarf_reader *r, struct dwarf_code *code)
{
        enum status st;

        if (r->main.has_lines) {
                code->line_offset = r->main.line_offset;
                st = settle(code, dwarf_lines_read(&code->lines, &r->main, r->main.line_offset, &r->regions));
                if (st)
                        return st;
        }
        if (r->main.dwo_name) {
                st = settle(code, dwarf_reader_enter_companion(r, code));
                if (st)
                        return st;
        }
        r->outline.qualifier_count = r->outline.declared_count = 0;
        dwarf_origins_clear(&r->origins);
        st = settle(code, dwarf_walk(r, &r->main, &r->outline, code));
        if (st)
                return st;
        st = code->lines.is_folded ? dwarf_folded_choose(r, code) : ST_OK;
        if (st)
                return st;
        dwarf_wanted_keep_rows(r, code);
        dwarf_wanted_keep_intervals(r, code);
        r->names_damage = ST_OK;
        st = dwarf_names_resolve(r, code);
        return st ? st : settle(code, r->names_damage);
}

enum status dwarf_reader_unit(struct dwarf_reader *r, size_t i, struct dwarf_code *code)
{
        const struct dwarf_unit *unit = &r->object->main.units.items[i];
        enum status st;

        clear(code);
        if (!dwarf_unit_has_code(unit))
                return ST_OK;
        st = dwarf_context_enter(&r->main, r->object, &r->object->main, unit);
        if (st)
                return settle(code, st);
        if (r->main.tag == DW_TAG_partial_unit || r->main.tag == DW_TAG_type_unit)
                return ST_OK;
        st = read_unit(r, code);
        dwarf_reader_forget_companions(r);
        return st;
}

enum status dwarf_reader_lines(struct dwarf_reader *r, uint64_t offset, struct dwarf_code *code)
{
        static const struct dwarf_unit nobody = { .format = { .version = 5, .address_size = 8, .offset_size = 4 } };
        enum status st;

        clear(code);
        r->lone = (struct dwarf_context){ .object = r->object, .file = &r->object->main, .linked = &r->object->main,
                                          .unit = &nobody };
        code->line_offset = offset;
        st = settle(code, dwarf_lines_read(&code->lines, &r->lone, offset, &r->regions));
        dwarf_wanted_keep_rows(r, code);
        return st;
}
