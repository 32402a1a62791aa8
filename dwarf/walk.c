/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk over the DIEs of a unit.
 *
 * Depth first, without recursion, and forward only: a sibling link is followed only if it points forward, so no input
 * causes a loop, and each byte of the unit is read at most once. For DIEs that can hold neither code nor the name of a
 * function only the size is computed; their subtrees are skipped by the sibling link, or counted through where the
 * compiler (clang) emits none.
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory/array.h"
#include "dwarf/dwarf_reader_internal.h"
#include "dwarf/ranges.h"

#define SPARSE_FACTOR 16 /* a table with more slots per entry is freed instead of cleared */

/* ---- the unit's names ---- */

void dwarf_walk_reset(struct dwarf_reader *r)
{
        /*
         * Clearing costs time for each slot: a table sized by one huge unit must not slow down every small unit after
         * it.
         */
        if (r->origins.slot_count / SPARSE_FACTOR > r->origins.count)
                hash_table_deinit(&r->origins);
        else
                hash_table_clear(&r->origins);
}

static bool equal_origin(const void *context, uint32_t name, const void *key, size_t size)
{
        const struct dwarf_reader *r = context;

        assert(size == sizeof *r->refs);
        return memcmp(&r->refs[name], key, size) == 0;
}

/* Add a name of the unit; UINT32_MAX without memory. */
static uint32_t add_origin(struct dwarf_reader *r, struct dwarf_code *code, dwarf_ref ref)
{
        size_t n = code->name_count;

        if (n >= UINT32_MAX || !array_reserve(&r->refs, &r->ref_capacity, n) ||
            !array_reserve(&code->names, &code->name_capacity, n))
                return UINT32_MAX;
        r->refs[n] = ref;
        code->names[n] = (struct dwarf_name){ 0 };
        code->name_count++;
        return (uint32_t)n;
}

/* The number of the name that an origin leads to, added when it is new; UINT32_MAX without memory. */
static uint32_t find_or_add_origin(struct dwarf_reader *r, struct dwarf_code *code, dwarf_ref ref)
{
        uint32_t hash = hash_table_hash(&ref, sizeof ref), name;

        if (hash_table_find(&r->origins, hash, equal_origin, r, &ref, sizeof ref, &name))
                return name;
        if (hash_table_reserve(&r->origins, NULL))
                return UINT32_MAX;
        name = add_origin(r, code, ref);
        if (name != UINT32_MAX)
                hash_table_insert(&r->origins, hash, name);
        return name;
}

struct walk {
        struct dwarf_reader *r;
        const struct dwarf_context *x;
        struct dwarf_outline *outline;
        struct dwarf_code *code; /* NULL: build only the outline */
        struct dwarf_cursor c;
        const uint8_t *section;
        bool qualifies; /* C++, and for a full outline: names are qualified */
        uint32_t top;   /* of the levels */
        uint64_t dead;  /* number of nested open subtrees without anything of interest */
        bool is_cut;    /* something exceeded a limit and was left out */
        enum status failed;
};

static bool is_cplusplus(uint32_t language)
{
        switch (language) {
        case DW_LANG_C_plus_plus:
        case DW_LANG_ObjC_plus_plus:
        case DW_LANG_C_plus_plus_03:
        case DW_LANG_C_plus_plus_11:
        case DW_LANG_C_plus_plus_14:
        case DW_LANG_C_plus_plus_17:
        case DW_LANG_C_plus_plus_20:
        case DW_LANG_C_plus_plus_23:
                return true;
        default:
                return false;
        }
}

static inline uint64_t sibling_target(const struct walk *w, const struct dwarf_value *v)
{
        return v->form == DW_FORM_ref_addr ? v->number : w->x->unit->offset + v->number;
}

/* Follow a sibling link that points forward. False when there is none. */
static inline bool follow_sibling(struct walk *w, uint64_t target)
{
        uint64_t here = (uint64_t)(w->c.pos - w->section);

        if (target <= here || target > w->x->unit->end)
                return false;
        w->c.pos = w->section + target;
        return true;
}

/* Step over the values of a DIE. @return its sibling's offset, 0 unknown */
static inline uint64_t skip_die_values(struct walk *w, const struct dwarf_abbrev *a)
{
        const struct dwarf_step *s = a->skip.count ? w->x->abbrevs.steps + a->skip.first : NULL;
        uint64_t sibling = 0;

        for (uint32_t i = 0; i < a->skip.count; i++, s++) {
                dwarf_skip(&w->c, s->skip);
                if (s->role == DWARF_ROLE_SIBLING) {
                        if (s->form == DW_FORM_ref4) {
                                sibling = w->x->unit->offset + dwarf_u32(&w->c);
                        } else {
                                struct dwarf_value v;

                                dwarf_value_read(&w->c, &w->x->unit->format, s->form, s->implicit, &v);
                                sibling = sibling_target(w, &v);
                        }
                } else if (s->form == DW_FORM_exprloc) {
                        dwarf_skip(&w->c, dwarf_uleb(&w->c));
                } else {
                        dwarf_value_skip(&w->c, &w->x->unit->format, s->form);
                }
        }
        dwarf_skip(&w->c, a->skip.tail);
        return sibling;
}

/* Skip the children of the DIE just read, which contain nothing of interest. */
static inline void pass_children(struct walk *w, const struct dwarf_abbrev *a, uint64_t sibling)
{
        if (a->has_children && !follow_sibling(w, sibling))
                w->dead++;
}

static void leave_out_children(struct walk *w)
{
        w->is_cut = true;
        w->dead++;
}

static inline void enter_children(struct walk *w, const struct dwarf_abbrev *a, const struct dwarf_level *inner)
{
        if (!a->has_children)
                return;
        if (w->top + 1 == LIMIT_DIE_DEPTH)
                leave_out_children(w);
        else
                w->r->levels[++w->top] = *inner;
}

static uint32_t add_scope(struct walk *w, const struct dwarf_scope *s)
{
        struct dwarf_code *code = w->code;

        if (code->scope_count >= DWARF_NO_SCOPE || s->name == UINT32_MAX ||
            !array_reserve(&code->scopes, &code->scope_capacity, code->scope_count)) {
                w->failed = ST_NO_MEMORY;
                return DWARF_NO_SCOPE;
        }
        code->scopes[code->scope_count] = *s;
        return (uint32_t)code->scope_count++;
}

static uint64_t read_low_pc(const struct walk *w, const struct dwarf_die *d)
{
        uint64_t low_pc = UINT64_MAX;

        if (w->code->lines.wants_positions && !dwarf_context_address(w->x, &d->values[DWARF_ROLE_LOW_PC], &low_pc))
                return UINT64_MAX;
        return low_pc;
}

static inline bool add_interval(struct walk *w, uint64_t start, uint64_t end, uint32_t scope)
{
        struct dwarf_code *code = w->code;

        if (code->interval_count >= LIMIT_RANGES_PER_OBJECT)
                w->failed = ST_TOO_BIG;
        else if (!array_reserve(&code->intervals, &code->interval_capacity, code->interval_count))
                w->failed = ST_NO_MEMORY;
        if (w->failed)
                return false;
        code->intervals[code->interval_count++] = (struct dwarf_interval){ start, end, scope, w->top };
        return true;
}

/*
 * An inlined call is inside the function around it. What exceeds it, in damaged files, is cut off, since an address
 * that is looked up alone does without the calls of functions that do not cover it. A function of more intervals than
 * this is no limit: comparing each of its calls with each would take too long.
 */
#define LIMITING_INTERVALS 8

/* The number of intervals, from the first on, that limit calls in a function; 0: none do. */
static size_t count_limits(const struct dwarf_code *code, size_t first)
{
        size_t count = 1;

        while (count <= LIMITING_INTERVALS && first + count < code->interval_count &&
               code->intervals[first + count].scope == code->intervals[first].scope)
                count++;
        return count <= LIMITING_INTERVALS ? count : 0;
}

static bool add_limited_interval(struct walk *w, uint64_t start, uint64_t end, uint32_t scope)
{
        const size_t first = w->r->levels[w->top].first_interval;
        size_t count = 0;

        if (start < w->code->intervals[first].start || end > w->code->intervals[first].end)
                count = count_limits(w->code, first);
        if (!count)
                return add_interval(w, start, end, scope);
        for (size_t i = first; i < first + count; i++) {
                const struct dwarf_interval limit = w->code->intervals[i];
                uint64_t from = start > limit.start ? start : limit.start, to = end < limit.end ? end : limit.end;

                if (from < to && !add_interval(w, from, to, scope))
                        return false;
        }
        return true;
}

/*
 * @param is_call  inlined into the function of the current level.
 * @return whether any of the DIE's addresses are in code
 */
static bool add_intervals(struct walk *w, const struct dwarf_die *d, uint32_t scope, bool is_call)
{
        struct dwarf_ranges ranges;
        uint64_t start, end;
        bool found = false;

        dwarf_ranges_begin(&ranges, w->x, d);
        while (dwarf_ranges_next(&ranges, &start, &end)) {
                const struct dwarf_region *region = dwarf_regions_fit(&w->r->regions, start, end);

                if (!region)
                        continue;
                if (end > region->end)
                        end = region->end;
                if (is_call ? !add_limited_interval(w, start, end, scope) : !add_interval(w, start, end, scope))
                        return found;
                found = true;
        }
        w->is_cut |= ranges.is_cut;
        return found;
}

static dwarf_ref make_ref(const struct walk *w, uint64_t offset)
{
        return offset | (w->x->file == &w->x->object->alt ? DWARF_REF_ALT : 0);
}

static void declare_function(struct walk *w, uint64_t offset)
{
        uint32_t qualifier = w->r->levels[w->top].qualifier;

        if (qualifier != DWARF_NO_QUALIFIER && !dwarf_outline_add_declared(w->outline, offset, qualifier))
                w->failed = ST_NO_MEMORY;
}

/* GCC places the code of lambdas and local classes inside the abstract instance of the enclosing function. */
static void enter_function_without_code(struct walk *w, const struct dwarf_abbrev *a, uint64_t offset)
{
        struct dwarf_level inner = w->r->levels[w->top];

        inner.scope = DWARF_NO_SCOPE;
        inner.function = (uint32_t)offset;
        enter_children(w, a, &inner);
}

/* Whether one of the newest intervals, those from the first on, covers an address of the filter. */
static bool has_wanted_interval(const struct walk *w, size_t first)
{
        const struct dwarf_code *code = w->code;

        if (!w->r->filter || !count_limits(code, first))
                return true;
        for (size_t i = first; i < code->interval_count; i++)
                if (dwarf_reader_wants(w->r, code->intervals[i].start, code->intervals[i].end))
                        return true;
        return false;
}

static void visit_function(struct walk *w, const struct dwarf_abbrev *a, uint64_t offset)
{
        size_t first = w->code ? w->code->interval_count : 0;
        struct dwarf_level inner = w->r->levels[w->top];
        struct dwarf_die d;

        dwarf_context_read_die(w->x, &w->c, a, &d);
        if (w->c.failed)
                return; /* the values of a truncated DIE are undefined */
        if (d.values[DWARF_ROLE_NAME].form && (!d.values[DWARF_ROLE_LINKAGE_NAME].form || w->outline->is_full))
                declare_function(w, offset);
        if (!w->code || !add_intervals(w, &d, (uint32_t)w->code->scope_count, false)) {
                enter_function_without_code(w, a, offset);
                return;
        }
        inner.scope = add_scope(w, &(struct dwarf_scope){ .parent = DWARF_NO_SCOPE,
                                                          .call_file = UINT32_MAX,
                                                          .die = (uint32_t)offset,
                                                          .low_pc = read_low_pc(w, &d),
                                                          .name = add_origin(w->r, w->code, make_ref(w, offset)) });
        if (!has_wanted_interval(w, first))
                inner.scope = DWARF_NO_SCOPE; /* calls inlined into it are passed over */
        inner.first_interval = (uint32_t)first;
        inner.inlined = 0;
        inner.function = (uint32_t)offset;
        w->code->function_count++;
        enter_children(w, a, &inner);
}

static uint32_t value_uint32_or(const struct dwarf_value *v, uint32_t otherwise)
{
        uint64_t number;

        return dwarf_value_uint(v, &number) && number <= UINT32_MAX ? (uint32_t)number : otherwise;
}

static void visit_inlined(struct walk *w, const struct dwarf_abbrev *a, uint64_t offset)
{
        struct dwarf_level inner = w->r->levels[w->top];
        struct dwarf_scope s = { .parent = inner.scope, .die = (uint32_t)offset };
        struct dwarf_die d;
        dwarf_ref origin;

        if (!w->code || inner.scope == DWARF_NO_SCOPE || inner.inlined >= LIMIT_INLINE_DEPTH - 1) {
                w->is_cut |= inner.inlined >= LIMIT_INLINE_DEPTH - 1;
                pass_children(w, a, skip_die_values(w, a));
                return;
        }
        dwarf_context_read_die(w->x, &w->c, a, &d);
        if (w->c.failed)
                return;
        origin = dwarf_context_reference(w->x, &d.values[DWARF_ROLE_ORIGIN]);
        if (origin == DWARF_NO_REF)
                origin = make_ref(w, offset);
        s.name = find_or_add_origin(w->r, w->code, origin);
        s.call_file = value_uint32_or(&d.values[DWARF_ROLE_CALL_FILE], UINT32_MAX);
        s.call_line = value_uint32_or(&d.values[DWARF_ROLE_CALL_LINE], 0);
        s.call_column = value_uint32_or(&d.values[DWARF_ROLE_CALL_COLUMN], 0);
        s.call_discriminator = value_uint32_or(&d.values[DWARF_ROLE_CALL_DISCRIMINATOR], 0);
        s.low_pc = read_low_pc(w, &d);
        add_intervals(w, &d, (uint32_t)w->code->scope_count, true);
        inner.scope = add_scope(w, &s);
        inner.inlined++;
        enter_children(w, a, &inner);
}

/* @return the number of the new qualifier */
static uint32_t push_qualifier(struct walk *w, uint32_t parent, uint16_t tag, const struct dwarf_value *name)
{
        if (!dwarf_outline_add_qualifier(w->outline,
                                         &(struct dwarf_qualifier){ .parent = parent, .tag = tag, .name = *name }))
                w->failed = ST_NO_MEMORY;
        return (uint32_t)(w->outline->qualifier_count - !w->failed);
}

static void visit_scope(struct walk *w, const struct dwarf_abbrev *a)
{
        struct dwarf_level inner = w->r->levels[w->top];
        struct dwarf_die d;

        if (!a->has_children || !w->qualifies) {
                skip_die_values(w, a);
                enter_children(w, a, &inner);
                return;
        }
        dwarf_context_read_die(w->x, &w->c, a, &d);
        if (inner.function)
                inner.qualifier = push_qualifier(w, inner.qualifier, DW_TAG_subprogram,
                                                 &(struct dwarf_value){ .number = make_ref(w, inner.function) });
        inner.qualifier =
                push_qualifier(w, inner.qualifier, a->tag,
                               &d.values[d.values[DWARF_ROLE_NAME].form ? DWARF_ROLE_NAME : DWARF_ROLE_SIGNATURE]);
        inner.function = 0;
        enter_children(w, a, &inner);
}

static void visit_die(struct walk *w, const struct dwarf_abbrev *a, uint64_t offset)
{
        switch ((enum dwarf_kind)a->kind) {
        case DWARF_KIND_FUNCTION:
                visit_function(w, a, offset);
                return;
        case DWARF_KIND_INLINED:
                visit_inlined(w, a, offset);
                return;
        case DWARF_KIND_SCOPE:
                visit_scope(w, a);
                return;
        case DWARF_KIND_BLOCK:
                if (a->tag == DW_TAG_module && w->outline->is_full) {
                        visit_scope(w, a);
                        return;
                }
                skip_die_values(w, a);
                enter_children(w, a, &w->r->levels[w->top]);
                return;
        case DWARF_KIND_DECLARED:
                declare_function(w, offset);
                skip_die_values(w, a);
                enter_function_without_code(w, a, offset);
                return;
        case DWARF_KIND_ABSTRACT:
                if (w->outline->is_full)
                        declare_function(w, offset);
                skip_die_values(w, a);
                enter_function_without_code(w, a, offset);
                return;
        case DWARF_KIND_PLAIN:
                pass_children(w, a, skip_die_values(w, a));
                return;
        }
}

enum status dwarf_walk(struct dwarf_reader *r, const struct dwarf_context *x, struct dwarf_outline *outline,
                       struct dwarf_code *code)
{
        struct walk w = { .r = r,
                          .x = x,
                          .outline = outline,
                          .code = code,
                          .section = x->file->sections.data[DWARF_INFO].bytes,
                          .qualifies = outline->is_full || is_cplusplus(x->language ? x->language : r->main.language) };

        if (!x->has_children)
                return ST_OK;
        w.c = dwarf_context_cursor(x, x->children);
        r->levels[0] = (struct dwarf_level){ .scope = DWARF_NO_SCOPE, .qualifier = DWARF_NO_QUALIFIER };
        while (w.c.pos != w.c.end && !w.failed) {
                uint64_t offset = (uint64_t)(w.c.pos - w.section), number = dwarf_uleb(&w.c);
                const struct dwarf_abbrev *a;

                if (number == 0) {
                        if (w.dead)
                                w.dead--;
                        else if (w.top-- == 0)
                                break;
                        continue;
                }
                a = dwarf_abbrevs_find(&x->abbrevs, number);
                if (!a)
                        return ST_BAD_DATA;
                if (w.dead || a->kind == DWARF_KIND_PLAIN)
                        pass_children(&w, a, skip_die_values(&w, a));
                else
                        visit_die(&w, a, offset);
        }
        return w.failed ? w.failed : w.c.failed ? ST_BAD_DATA : w.is_cut ? ST_TOO_BIG : ST_OK;
}
