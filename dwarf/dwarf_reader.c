/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read_unit_code() has the sequence for a unit: its line table, its split unit, the walk over its DIEs (walk.c),
 * folded functions, the address filter, the names. Results are in struct dwarf_code of the caller, which is reused for
 * the next unit.
 *
 * A context is a unit with its abbreviations. The reader has one for the unit itself (main), and a direct-mapped cache
 * of others for units that references lead to (dwarf_reader_context()), bounded by LIMIT_DWARF_OTHER_ABBREV_BYTES.
 *
 * Damage: an error in a part of a unit is recorded in code->damage and the other parts are still read
 * (record_damage()); only lack of memory or too many ranges end the object.
 *
 * Order: results and reader, contexts of other units, address filter, the unit, split units.
 */

#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/memory/array.h"
#include "common/search.h"
#include "common/sort.h"
#include "dwarf/dwarf_reader_internal.h"
#include "dwarf/ranges.h"

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
        free(c->strays);
        arena_deinit(&c->texts);
        dwarf_code_init(c);
}

static void clear_code(struct dwarf_code *c)
{
        dwarf_lines_clear(&c->lines);
        c->scope_count = c->interval_count = c->name_count = c->function_count = c->stray_count = 0;
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

        assert(code.items || !code.count);
        if (!r)
                return error_no_memory(err);
        r->object = o;
        r->regions = code;
        dwarf_name_cache_init(&r->name_cache);
        dwarf_path_cache_init(&r->path_cache);
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
                if (r->others[i].abbrevs.capacity || r->others[i].abbrevs.step_capacity) /* most were never used */
                        dwarf_context_deinit(&r->others[i]);
        dwarf_outline_deinit(&r->outline);
        dwarf_outline_deinit(&r->full_outline);
        dwarf_name_cache_deinit(&r->name_cache);
        dwarf_path_cache_deinit(&r->path_cache);
        hash_table_deinit(&r->origins);
        free(r->bounds);
        free(r->refs);
        free(r->by_ref);
        free(r);
}

/* Reuse a slot for another unit. When the abbreviation tables of all slots exceed the limit, every slot is freed. */
static enum status enter_other_unit(struct dwarf_reader *r, struct dwarf_context *x, struct dwarf_file *file,
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

        assert(ref != DWARF_NO_REF);
        if (unit && !(ref & DWARF_REF_ALT) && offset >= unit->first_die && offset < unit->end)
                return x;
        unit = dwarf_units_find(&file->units, offset);
        if (!unit)
                return NULL;
        x = &r->others[(uintptr_t)unit / sizeof *unit % DWARF_OTHER_CONTEXTS];
        if (x->unit == unit)
                return x;
        st = enter_other_unit(r, x, file, unit);
        if (st)
                r->names_damage = st;
        return st ? NULL : x;
}

/* Return only fatal errors; record others as damage of the unit. */
static enum status record_damage(struct dwarf_code *code, enum status st)
{
        if (st == ST_NO_MEMORY || (st == ST_TOO_BIG && code->interval_count >= LIMIT_RANGES_PER_OBJECT))
                return st;
        if (st && !code->damage)
                code->damage = st;
        return ST_OK;
}

/* ---- address filter ---- */

/*
 * Drops rows and intervals that cover none of the filter addresses. The result at an address depends only on the rows
 * and intervals that cover it, so no others are needed.
 */

void dwarf_reader_set_address_filter(struct dwarf_reader *r, const uint64_t *addresses, size_t count)
{
        assert(addresses || !count);
        r->filter = addresses;
        r->filter_count = count;
}

bool dwarf_reader_wants(const struct dwarf_reader *r, uint64_t start, uint64_t end)
{
        size_t at = find_lower_bound(i, 0, r->filter_count, r->filter[i] < start);

        return at < r->filter_count && r->filter[at] < end;
}

static void filter_rows(const struct dwarf_reader *r, struct dwarf_code *code)
{
        struct dwarf_lines *l = &code->lines;
        size_t kept = 0, next = 0;

        for (size_t i = 0; r->filter && i < l->row_count; i++) {
                while (next < r->filter_count && r->filter[next] < l->rows[i].start)
                        next++;
                if (next < r->filter_count && r->filter[next] < l->rows[i].end)
                        l->rows[kept++] = l->rows[i];
        }
        if (r->filter)
                l->row_count = kept;
}

/* A function with a wanted address keeps all its intervals: each of them may have a symbol with its name. */
static enum status filter_intervals(const struct dwarf_reader *r, struct dwarf_code *code)
{
        _cleanup_free_ bool *wanted = r->filter ? calloc(code->scope_count + 1, sizeof *wanted) : NULL;
        size_t kept = 0;

        if (!r->filter)
                return ST_OK;
        if (!wanted)
                return ST_NO_MEMORY;
        for (size_t i = 0; i < code->interval_count; i++)
                if (code->scopes[code->intervals[i].scope].parent == DWARF_NO_SCOPE)
                        wanted[code->intervals[i].scope] |=
                                dwarf_reader_wants(r, code->intervals[i].start, code->intervals[i].end);
        for (size_t i = 0; i < code->interval_count; i++)
                if (wanted[code->intervals[i].scope] ||
                    dwarf_reader_wants(r, code->intervals[i].start, code->intervals[i].end))
                        code->intervals[kept++] = code->intervals[i];
        code->interval_count = kept;
        return ST_OK;
}

void dwarf_address_filter_mark_names(const struct dwarf_code *code, bool *marks)
{
        for (size_t i = 0; i < code->interval_count; i++) {
                for (uint32_t s = code->intervals[i].scope; s != DWARF_NO_SCOPE; s = code->scopes[s].parent)
                        marks[code->scopes[s].name] = true;
        }
}

/* ---- the unit's addresses ---- */

/*
 * A function counts only at addresses that the DIE of its unit gives, or where the unit has a line row: the units for
 * a few addresses are chosen by these (symbolizer/sources/dwarf_selection.c), so the complete table must not have more.
 * Only functions of damaged files have other addresses.
 */

static bool add_bound(struct dwarf_reader *r, uint64_t start, uint64_t end)
{
        if (!array_reserve(&r->bounds, &r->bound_capacity, r->bound_count))
                return false;
        r->bounds[r->bound_count++] = (struct dwarf_interval){ .start = start, .end = end };
        return true;
}

/* Sort the bounds, and join those that touch. */
static void join_bounds(struct dwarf_reader *r)
{
        size_t kept = 0;

        if (r->bound_count > 1)
                sort_by_start(r->bounds, r->bound_count, sizeof *r->bounds);
        for (size_t i = 0; i < r->bound_count; i++) {
                struct dwarf_interval *last = kept ? &r->bounds[kept - 1] : NULL;

                if (!last || last->end < r->bounds[i].start)
                        r->bounds[kept++] = r->bounds[i];
                else if (last->end < r->bounds[i].end)
                        last->end = r->bounds[i].end;
        }
        r->bound_count = kept;
}

static enum status read_unit_bounds(struct dwarf_reader *r, const struct dwarf_die *die)
{
        struct dwarf_ranges ranges;
        uint64_t start, end;

        r->bound_count = 0;
        r->has_bounds = die->values[DWARF_ROLE_RANGES].form ||
                        (die->values[DWARF_ROLE_LOW_PC].form && die->values[DWARF_ROLE_HIGH_PC].form);
        dwarf_ranges_begin(&ranges, &r->main, die);
        while (r->has_bounds && dwarf_ranges_next(&ranges, &start, &end))
                if (start < end && dwarf_regions_fit(&r->regions, start, end) && !add_bound(r, start, end))
                        return ST_NO_MEMORY;
        r->has_bounds &= !ranges.is_cut;
        join_bounds(r);
        return ST_OK;
}

/* The number of the first bound that ends after an address. */
static size_t find_unit_bound(const struct dwarf_reader *r, uint64_t address)
{
        size_t number = find_lower_bound(i, 0, r->bound_count, r->bounds[i].end <= address);

        return number;
}

/* Whether all intervals are in bounds. Most are in the same one as the interval before. */
static bool are_in_bounds(const struct dwarf_reader *r, const struct dwarf_code *code)
{
        struct dwarf_interval bound = { 0 };

        for (const struct dwarf_interval *v = code->intervals, *end = v + code->interval_count; v < end; v++) {
                size_t i;

                if (bound.start <= v->start && v->end <= bound.end)
                        continue;
                i = find_unit_bound(r, v->start);
                if (i == r->bound_count || v->start < r->bounds[i].start || r->bounds[i].end < v->end)
                        return false;
                bound = r->bounds[i];
        }
        return true;
}

static bool are_sequences_in_bounds(const struct dwarf_reader *r, const struct dwarf_lines *l)
{
        struct dwarf_interval bound = { 0 };

        for (const struct dwarf_sequence *s = l->sequences, *end = s + l->sequence_count; s < end; s++) {
                size_t i;

                if (bound.start <= s->start && s->end <= bound.end)
                        continue;
                i = find_unit_bound(r, s->start);
                if (i == r->bound_count || s->start < r->bounds[i].start || r->bounds[i].end < s->end)
                        return false;
                bound = r->bounds[i];
        }
        return true;
}

static bool has_sequence_elsewhere(const struct dwarf_reader *r, const struct dwarf_lines *l)
{
        for (size_t i = 0; i < l->sequence_count; i++) {
                size_t bound = find_unit_bound(r, l->sequences[i].start);

                if (bound == r->bound_count || l->sequences[i].start < r->bounds[bound].start)
                        return true;
        }
        return false;
}

static bool add_stray(const struct dwarf_reader *r, struct dwarf_code *code, const struct dwarf_stray *s)
{
        struct dwarf_stray *last = code->stray_count ? &code->strays[code->stray_count - 1] : NULL;

        if (r->filter && !dwarf_reader_wants(r, s->start, s->end))
                return true;
        if (last && last->end == s->start) {
                last->end = s->end;
                return true;
        }
        if (!array_reserve(&code->strays, &code->stray_capacity, code->stray_count))
                return false;
        code->strays[code->stray_count++] = *s;
        return true;
}

/* Before the bounds of rows are added. */
static enum status find_stray_rows(const struct dwarf_reader *r, struct dwarf_code *code)
{
        const struct dwarf_lines *l = &code->lines;
        bool is_elsewhere;

        if (!r->has_bounds || are_sequences_in_bounds(r, l))
                return ST_OK;
        is_elsewhere = has_sequence_elsewhere(r, l);
        for (size_t i = 0; i <= r->bound_count; i++) {
                uint64_t start = i ? r->bounds[i - 1].end : 0,
                         end = i < r->bound_count ? r->bounds[i].start : UINT64_MAX;
                size_t at = find_lower_bound(k, 0, l->row_count, l->rows[k].end <= start);

                for (; at < l->row_count && l->rows[at].start < end; at++) {
                        const struct dwarf_row *row = &l->rows[at];
                        const struct dwarf_stray s = { .start = row->start > start ? row->start : start,
                                                       .end = row->end < end ? row->end : end,
                                                       .after = is_elsewhere ? UINT64_MAX : start };

                        if (!add_stray(r, code, &s))
                                return ST_NO_MEMORY;
                }
        }
        return ST_OK;
}

static enum status add_row_bounds(struct dwarf_reader *r, const struct dwarf_lines *l)
{
        for (size_t i = 0, first = 0; i < l->row_count; i++) {
                if (i + 1 < l->row_count && l->rows[i].end == l->rows[i + 1].start)
                        continue;
                if (!add_bound(r, l->rows[first].start, l->rows[i].end))
                        return ST_NO_MEMORY;
                first = i + 1;
        }
        join_bounds(r);
        return ST_OK;
}

#define MAX_PARTS 64 /* of an interval; what follows them is kept as it is */

static enum status add_bounded_parts(const struct dwarf_reader *r, struct dwarf_interval v,
                                     struct dwarf_interval **items, size_t *capacity, size_t *count)
{
        size_t bound = find_unit_bound(r, v.start);

        for (size_t parts = 1; bound < r->bound_count && r->bounds[bound].start < v.end; bound++, parts++) {
                const struct dwarf_interval *b = &r->bounds[bound];
                struct dwarf_interval part = v;

                part.start = b->start > v.start ? b->start : v.start;
                if (parts < MAX_PARTS && b->end < v.end)
                        part.end = b->end;
                if (*count >= LIMIT_RANGES_PER_OBJECT)
                        return ST_TOO_BIG;
                if (!array_reserve(items, capacity, *count))
                        return ST_NO_MEMORY;
                (*items)[(*count)++] = part;
                if (part.end == v.end)
                        break;
        }
        return ST_OK;
}

/* @return ST_TOO_BIG if the parts are too many: then the intervals are kept as they are. */
static enum status cut_intervals(struct dwarf_reader *r, struct dwarf_code *code)
{
        struct dwarf_interval *items = NULL;
        size_t capacity = 0, count = 0;
        enum status st;

        if (!r->has_bounds || !code->interval_count || are_in_bounds(r, code))
                return ST_OK;
        st = add_row_bounds(r, &code->lines);
        for (size_t i = 0; !st && i < code->interval_count; i++)
                st = add_bounded_parts(r, code->intervals[i], &items, &capacity, &count);
        if (st) {
                free(items);
                return st;
        }
        free(code->intervals);
        code->intervals = items;
        code->interval_count = count;
        code->interval_capacity = capacity;
        return ST_OK;
}

/* ---- reading a unit ---- */

static enum status read_unit_lines(struct dwarf_reader *r, struct dwarf_code *code)
{
        if (!r->main.has_lines)
                return ST_OK;
        code->line_offset = r->main.line_offset;
        return record_damage(code, dwarf_lines_read(&code->lines, &r->main, r->main.line_offset, &r->regions));
}

static enum status walk_unit_dies(struct dwarf_reader *r, struct dwarf_code *code)
{
        enum status st;

        code->scope_count = code->interval_count = code->name_count = code->function_count = 0;
        r->outline.qualifier_count = r->outline.declared_count = 0;
        r->full_outline.unit = NULL;
        dwarf_walk_reset(r);
        st = record_damage(code, dwarf_walk(r, &r->main, &r->outline, code));
        return !st && code->lines.is_folded ? dwarf_resolve_folded_functions(r, code) : st;
}

static enum status read_unit_code(struct dwarf_reader *r, struct dwarf_code *code)
{
        enum status st = read_unit_lines(r, code);

        if (!st)
                st = find_stray_rows(r, code);
        if (st)
                return st;
        if (r->main.dwo_name) {
                st = record_damage(code, dwarf_reader_enter_companion(r, code));
                if (st)
                        return st;
        }
        st = walk_unit_dies(r, code);
        if (!st)
                st = record_damage(code, cut_intervals(r, code));
        if (st)
                return st;
        filter_rows(r, code);
        st = filter_intervals(r, code);
        if (st)
                return st;
        r->names_damage = ST_OK;
        st = dwarf_names_resolve(r, code);
        return st ? st : record_damage(code, r->names_damage);
}

enum status dwarf_reader_unit(struct dwarf_reader *r, size_t i, struct dwarf_code *code)
{
        const struct dwarf_unit *unit = &r->object->main.units.items[i];
        struct dwarf_die die;
        enum status st;

        assert(i < r->object->main.units.count);
        clear_code(code);
        if (!dwarf_unit_has_code(unit))
                return ST_OK;
        st = dwarf_context_enter_die(&r->main, r->object, &r->object->main, unit, &die);
        if (st)
                return record_damage(code, st);
        if (!dwarf_context_may_have_code(&r->main))
                return ST_OK;
        st = read_unit_bounds(r, &die);
        if (!st)
                st = read_unit_code(r, code);
        dwarf_reader_forget_companions(r);
        return st;
}

enum status dwarf_reader_unit_lines(struct dwarf_reader *r, size_t i, struct dwarf_code *code)
{
        enum status st;

        assert(i < r->object->main.units.count);
        clear_code(code);
        st = dwarf_context_peek(&r->main, r->object, &r->object->main, &r->object->main.units.items[i],
                                &(struct dwarf_die){ 0 });
        if (st)
                return record_damage(code, st);
        st = read_unit_lines(r, code);
        filter_rows(r, code);
        return st;
}

enum status dwarf_reader_lines(struct dwarf_reader *r, uint64_t offset, struct dwarf_code *code)
{
        static const struct dwarf_unit nobody = { .format = { .version = 5, .address_size = 8, .offset_size = 4 } };
        enum status st;

        clear_code(code);
        r->lone = (struct dwarf_context){
                .object = r->object, .file = &r->object->main, .linked = &r->object->main, .unit = &nobody
        };
        code->line_offset = offset;
        st = record_damage(code, dwarf_lines_read(&code->lines, &r->lone, offset, &r->regions));
        filter_rows(r, code);
        return st;
}

/* ---- split units ---- */

/*
 * Switches from a skeleton to its split unit. The main context of the reader is set up for the split unit, including
 * the attributes inherited from the skeleton, so the code that reads units handles both alike.
 *
 * A companion is owned by the result that it was opened for, which another thread may clear: the reader keeps no
 * reference to it after reading its unit.
 */

#define ATTEMPTS_MAX 16

void dwarf_reader_forget_companions(struct dwarf_reader *r)
{
        if (!r->main.file || dwarf_reader_owns_file(r, r->main.file))
                return;
        dwarf_context_forget(&r->main);
        dwarf_context_forget(&r->types);
        for (size_t i = 0; i < DWARF_OTHER_CONTEXTS; i++)
                if (r->others[i].file && !dwarf_reader_owns_file(r, r->others[i].file))
                        dwarf_context_forget(&r->others[i]);
}

static enum status get_file_damage(const struct dwarf_file *file)
{
        return file->sections.damage.code ? file->sections.damage.code : file->units.damage.code;
}

/* Before version 5 the id is an attribute of the unit DIE. */
static enum status enter_companion_unit(struct dwarf_reader *r, struct dwarf_file *file, uint64_t id)
{
        enum status why = get_file_damage(file);

        for (size_t i = 0; i < file->units.count; i++) {
                const struct dwarf_unit *u = &file->units.items[i];
                enum status st;

                if (u->format.version >= 5 ? u->type != DW_UT_split_compile || u->signature != id
                                           : u->type != DW_UT_none)
                        continue;
                st = dwarf_context_enter(&r->main, r->object, file, u);
                if (!st && r->main.dwo_id == id)
                        return ST_OK;
                if (st == ST_NO_MEMORY)
                        return st;
                why = st ? st : why;
        }
        return why ? why : ST_NOT_FOUND;
}

/* Takes the companion. */
static enum status adopt_companion(struct dwarf_reader *r, struct dwarf_code *code,
                                   const struct dwarf_context *skeleton, struct dwarf_companion *c)
{
        enum status st = ST_TOO_BIG;

        if (dwarf_object_allow(r->object, &c->file.sections))
                st = enter_companion_unit(r, &c->file, skeleton->dwo_id);
        if (st) {
                dwarf_reader_forget_companions(r);
                dwarf_companion_close(c);
                return st;
        }
        dwarf_context_inherit(&r->main, skeleton);
        code->companion = c;
        if (!code->damage)
                code->damage = get_file_damage(&c->file);
        return ST_OK;
}

static enum status try_companion_package(struct dwarf_reader *r, struct dwarf_code *code,
                                         const struct dwarf_context *skeleton)
{
        const struct dwarf_package *package = r->object->companions.package;
        struct dwarf_companion *c;
        enum status st = package ? dwarf_companion_from_package(package, skeleton->dwo_id, &c) : ST_NOT_FOUND;

        return st ? st : adopt_companion(r, code, skeleton, c);
}

static enum status try_companion_files(struct dwarf_reader *r, struct dwarf_code *code,
                                       const struct dwarf_context *skeleton)
{
        const struct dwarf_dwo_source *from = &r->object->companions.dwo;
        enum status why = ST_NOT_FOUND;

        for (unsigned attempt = 0; from->open && attempt < ATTEMPTS_MAX; attempt++) {
                struct dwarf_companion *c;
                enum status st;
                int fd;

                if (from->open(from->context, skeleton->dwo_id, skeleton->directory, skeleton->dwo_name, attempt, &fd))
                        break;
                st = dwarf_companion_from_fd(fd, &c);
                close(fd);
                if (!st)
                        st = adopt_companion(r, code, skeleton, c);
                if (!st || st == ST_NO_MEMORY)
                        return st;
                if (st != ST_NOT_FOUND)
                        why = st;
        }
        return why;
}

enum status dwarf_reader_enter_companion(struct dwarf_reader *r, struct dwarf_code *code)
{
        const struct dwarf_context skeleton = r->main; /* its abbreviations are not looked at */
        enum status st = try_companion_package(r, code, &skeleton);

        if (st && st != ST_NO_MEMORY) {
                enum status of_files = try_companion_files(r, code, &skeleton);

                st = of_files == ST_NOT_FOUND ? st : of_files;
        }
        if (!st || st == ST_NO_MEMORY)
                return st;
        code->misses_companion = true;
        if (r->main.file != skeleton.file || r->main.unit != skeleton.unit) {
                enum status back = dwarf_context_enter(&r->main, r->object, skeleton.file, skeleton.unit);

                if (back)
                        return back;
        }
        return st == ST_NOT_FOUND ? ST_OK : st;
}

enum status dwarf_reader_return_to_companion(struct dwarf_reader *r, const struct dwarf_code *code)
{
        const struct dwarf_context skeleton = r->main; /* its abbreviations are not looked at */
        enum status st = enter_companion_unit(r, &code->companion->file, skeleton.dwo_id);

        if (!st)
                dwarf_context_inherit(&r->main, &skeleton);
        return st;
}
