/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two stages. With an address filter, dwarf_select() chooses the units to be read, for most of them by their first DIE
 * alone; without one, all units are read. dwarf_extraction_run() then reads them with several threads and merges them
 * in their order, and finally reads the line tables that no unit refers to.
 *
 * All units are read after all, into a new builder, if the selected units are more than max_percent of .debug_info, or
 * if no unit of the file has a function: the quality then depends on all line tables.
 *
 * Lock: x->lock covers slots, turns and counters. Units are read without it, each thread with its own reader; merging
 * runs without it too, but is_merging lets only one thread merge at a time.
 *
 * Order: selection of units, reading and merging by threads, lone line tables, a complete run, a filtered run,
 * dwarf_extract().
 */
#include "symbolizer/sources/dwarf_extract.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/limits.h"
#include "common/search.h"
#include "common/sort.h"
#include "dwarf/dwarf_object.h"
#include "dwarf/ranges.h"
#include "symbol-index/demangle.h"
#include "symbolizer/sources/dwarf_flatten.h"
#include "symbolizer/table/huge_array.h"

/* ---- selecting units ---- */

/*
 * Selection of the units that may cover the addresses of a filter.
 *
 * A unit's DIE gives its addresses, as low and high pc or as ranges; for most
 * units nothing else is decoded. A unit without them has only data if it has no
 * line rows and no abbreviation of functions with addresses; other such units,
 * and those with an unreadable DIE, are read in full. So is one whose addresses
 * are incomplete: GCC gives only the main section with -gdwarf-2 -gstrict-dwarf,
 * and in DWARF 4 a dropped function of size 0 ends a list of ranges if the linker
 * (gold) writes 0 for its address.
 * Such a unit has a sequence of line rows that starts elsewhere in code.
 * Line rows extend past the unit's addresses, into the padding before the next
 * function: of the unit whose addresses end last before an address, the line
 * table is read, and the DIEs only if a row covers the address.
 * .debug_aranges is not used: clang does not write it.
 */
struct selected_unit {
        size_t unit;
        bool only_lines;
};

struct dwarf_selection {
        struct selected_unit *units; /* owned; ascending */
        size_t count;
        uint64_t bytes;   /* of .debug_info, in those that are not only lines */
        uint64_t *tables; /* owned; by unit of the object: the offset of its line table, UINT64_MAX none */
};

static void dwarf_selection_deinit(struct dwarf_selection *s)
{
        free(s->units);
        free(s->tables);
        *s = (struct dwarf_selection){ 0 };
}

static bool has_address_ranges(const struct dwarf_die *d)
{
        return d->values[DWARF_ROLE_RANGES].form ||
               (d->values[DWARF_ROLE_LOW_PC].form && d->values[DWARF_ROLE_HIGH_PC].form);
}

struct claim {
        uint64_t start, end;
        size_t unit;
};

enum unit_need { NEEDS_NOTHING, NEEDS_LINES, NEEDS_ALL };

struct claims {
        const struct dwarf_regions *code;
        struct claim *items; /* owned */
        size_t count, capacity;
        enum unit_need *needs; /* owned; by unit */
};

static bool add_claims(struct claims *c, size_t unit, const struct dwarf_context *x, const struct dwarf_die *d)
{
        struct dwarf_ranges ranges;
        uint64_t start, end;

        dwarf_ranges_begin(&ranges, x, d);
        while (dwarf_ranges_next(&ranges, &start, &end)) {
                const struct dwarf_region *region = dwarf_regions_fit(c->code, start, end);

                if (start >= end || !region)
                        continue;
                if (!huge_array_reserve(&c->items, &c->capacity, c->count))
                        return false;
                c->items[c->count++] = (struct claim){ start, end < region->end ? end : region->end, unit };
        }
        return true;
}

/*
 * Lists of version 5 have an end that a linker cannot write by accident: they are checked only if an address is in the
 * claims of no unit.
 */
static bool may_be_incomplete(const struct dwarf_context *x, const struct dwarf_die *d)
{
        return x->unit->format.version < 5 || !d->values[DWARF_ROLE_RANGES].form;
}

/* Whether all line rows of a unit are in its claims. */
static bool cover_line_rows(const struct claims *c, struct claim *items, size_t count, const struct dwarf_context *x)
{
        struct dwarf_line_starts starts;
        uint64_t start;

        if (!x->has_lines || !dwarf_line_starts_begin(&starts, x, x->line_offset))
                return false;
        if (count > 1)
                sort_by_start(items, count, sizeof *items);
        while (dwarf_line_starts_next(&starts, &start)) {
                size_t behind = find_lower_bound(i, 0, count, items[i].start <= start);

                if ((!behind || start >= items[behind - 1].end) && dwarf_regions_find(c->code, start))
                        return false;
        }
        return true;
}

/* Such a unit describes data only: it has neither line rows nor functions, also none in a split unit. */
static bool has_only_data(struct dwarf_context *x)
{
        return !x->dwo_name && (!x->has_lines || dwarf_line_program_is_empty(x, x->line_offset)) &&
               !dwarf_context_may_have_functions(x);
}

/* @return false without memory. */
static bool inspect_unit(struct claims *c, size_t i, struct dwarf_context *x, struct dwarf_object *o,
                         uint64_t *table_ret)
{
        const struct dwarf_unit *unit = &o->main.units.items[i];
        size_t first = c->count;
        struct dwarf_die die;

        *table_ret = UINT64_MAX;
        if (!dwarf_unit_has_code(unit))
                return true;
        if (dwarf_context_peek(x, o, &o->main, unit, &die)) {
                c->needs[i] = NEEDS_ALL;
                return true;
        }
        if (!dwarf_context_may_have_code(x))
                return true;
        if (x->has_lines)
                *table_ret = x->line_offset;
        if (!has_address_ranges(&die)) {
                c->needs[i] = has_only_data(x) ? NEEDS_NOTHING : NEEDS_ALL;
                return true;
        }
        if (!add_claims(c, i, x, &die))
                return false;
        if (may_be_incomplete(x, &die) && !cover_line_rows(c, c->items + first, c->count - first, x))
                c->needs[i] = NEEDS_ALL;
        return true;
}

static bool select_claims(struct claims *c, const struct address_filter *w)
{
        _cleanup_free_ uint64_t *last_end = calloc(w->count + 1, sizeof *last_end);

        if (!last_end)
                return false;
        for (size_t i = 0; i < c->count; i++) {
                size_t n = address_filter_lower_bound(w, c->items[i].end);

                if (n < w->count && c->items[i].end > last_end[n])
                        last_end[n] = c->items[i].end;
        }
        for (size_t n = 1; n < w->count; n++)
                if (last_end[n] < last_end[n - 1])
                        last_end[n] = last_end[n - 1];
        for (size_t i = 0; i < c->count; i++) {
                const struct claim *claim = &c->items[i];
                size_t n = address_filter_lower_bound(w, claim->end);

                if (address_filter_overlaps(w, claim->start, claim->end))
                        c->needs[claim->unit] = NEEDS_ALL;
                else if (n < w->count && last_end[n] == claim->end && !c->needs[claim->unit])
                        c->needs[claim->unit] = NEEDS_LINES;
        }
        return true;
}

/* Whether an address of the filter is in code, but in no claim. False without memory. */
static bool find_unclaimed_address(const struct claims *c, const struct address_filter *w, bool *ret)
{
        _cleanup_free_ bool *claimed = calloc(w->count + 1, sizeof *claimed);

        if (!claimed)
                return false;
        for (size_t i = 0; i < c->count; i++)
                for (size_t n = address_filter_lower_bound(w, c->items[i].start);
                     n < w->count && w->addresses[n] < c->items[i].end; n++)
                        claimed[n] = true;
        for (size_t n = 0; !*ret && n < w->count; n++)
                *ret = !claimed[n] && dwarf_regions_find(c->code, w->addresses[n]);
        return true;
}

/* Read the units of version 5 that have line rows outside of their claims. Claims are in the order of the units. */
static void distrust_claims(struct claims *c, struct dwarf_context *x, struct dwarf_object *o)
{
        size_t first = 0, behind = 0;

        for (size_t i = 0; i < o->main.units.count; i++, first = behind) {
                const struct dwarf_unit *unit = &o->main.units.items[i];
                struct dwarf_die die;

                while (behind < c->count && c->items[behind].unit == i)
                        behind++;
                if (c->needs[i] != NEEDS_ALL && unit->format.version >= 5 && dwarf_unit_has_code(unit) &&
                    !dwarf_context_peek(x, o, &o->main, unit, &die) && dwarf_context_may_have_code(x) &&
                    !cover_line_rows(c, c->items + first, behind - first, x))
                        c->needs[i] = NEEDS_ALL;
        }
}

static bool select_units(struct dwarf_object *o, const struct address_filter *w, struct dwarf_context *x,
                         struct claims *c, struct dwarf_selection *ret)
{
        const struct dwarf_units *units = &o->main.units;
        bool is_unclaimed = false;

        for (size_t i = 0; i < units->count; i++)
                if (!inspect_unit(c, i, x, o, &ret->tables[i]))
                        return false;
        if (!select_claims(c, w) || !find_unclaimed_address(c, w, &is_unclaimed))
                return false;
        if (is_unclaimed)
                distrust_claims(c, x, o);
        for (size_t i = 0; i < units->count; i++) {
                if (!c->needs[i])
                        continue;
                ret->units[ret->count++] = (struct selected_unit){ i, c->needs[i] == NEEDS_LINES };
                if (c->needs[i] == NEEDS_ALL)
                        ret->bytes += units->items[i].end - units->items[i].offset;
        }
        return true;
}

static enum status dwarf_select(struct dwarf_object *o, const struct dwarf_regions *code,
                                const struct address_filter *w, struct dwarf_selection *ret)
{
        size_t count = o->main.units.count;
        struct claims claims = { .code = code, .needs = calloc(count + 1, sizeof *claims.needs) };
        struct dwarf_context *x = calloc(1, sizeof *x);
        bool ok;

        *ret = (struct dwarf_selection){ .units = calloc(count + 1, sizeof *ret->units),
                                         .tables = calloc(count + 1, sizeof *ret->tables) };
        ok = x && claims.needs && ret->units && ret->tables && select_units(o, w, x, &claims, ret);
        if (x)
                dwarf_context_deinit(x);
        free(x);
        free(claims.needs);
        free(claims.items);
        return ok ? ST_OK : ST_NO_MEMORY;
}

/* ---- reading and merging units ---- */

struct dwarf_slot;

struct dwarf_extraction {
        struct dwarf_object object;
        struct dwarf_regions regions;
        struct symbol_table_builder *builder; /* of the thread with is_merging */
        struct dwarf_merge merge;             /* of the thread with is_merging */
        struct function_symbols *symbols;     /* borrowed; of the thread with is_merging */
        struct dwarf_summary summary;         /* of the thread with is_merging */
        uint64_t function_count;
        uint64_t *tables;                    /* borrowed; by unit: the offset of its line table, UINT64_MAX none */
        const struct address_filter *filter; /* borrowed; NULL: everything */
        const struct selected_unit *units;   /* borrowed; those to be read, NULL all */
        size_t unit_count;                   /* to be read */
        uint64_t unit_bytes;                 /* in them */

        pthread_mutex_t lock;
        pthread_cond_t changed;
        struct dwarf_slot *slots; /* owned */
        struct dwarf_slot *
                *turns; /* owned; ring: unit i (of those to be read) at i % slot_count; from next_merge to next_unit */
        struct dwarf_slot **free; /* owned; a stack */
        size_t slot_count, free_count, thread_count;
        size_t next_unit, next_merge;
        uint64_t waiting_bytes; /* in the units between these two */
        bool is_merging;
        enum status failed;
};

/*
 * Threads take units in order. A thread reads and flattens its unit into a free
 * slot; any thread that finds the next unit in order ready merges it, one at a
 * time. The table is thus built in the order of the units, and a thread waits
 * only when no slot is free or too many bytes wait to be merged. Free slots are
 * a stack: the last used slot is in the cache, and often no other is needed.
 */

#define SLOTS_PER_THREAD 8
#define WAITING_BYTES_PER_THREAD MiB(2) /* of .debug_info, in units read but not merged; one unit is always allowed */
#define BYTES_PER_THREAD KiB(256)       /* of .debug_info; below, a thread costs more than it saves */
#define UNITS_PER_THREAD 4              /* with split units in other files */
#define STACK_BYTES MiB(1)

struct dwarf_slot {
        struct dwarf_flat_unit flat;
        uint64_t bytes; /* of .debug_info, in the unit */
        bool is_ready;
};

/* ---- one unit ---- */

/* @param offset of the unit or line table, for the summary. */
static void merge_unit(struct dwarf_extraction *x, struct dwarf_slot *s, uint64_t offset)
{
        const struct dwarf_code *code = &s->flat.code;

        dwarf_flat_unit_merge(&s->flat, &x->merge, x->builder);
        x->function_count += code->function_count;
        x->summary.unit_count++;
        x->summary.missing_companions += code->misses_companion;
        x->summary.skeletons_with_functions += code->misses_companion && code->function_count;
        if (code->damage && x->summary.damaged_units++ == 0) {
                x->summary.damage = code->damage;
                x->summary.damaged_at = offset;
        }
}

static size_t get_unit(const struct dwarf_extraction *x, size_t i)
{
        return x->units ? x->units[i].unit : i;
}

static enum status read_flat_unit(struct dwarf_extraction *x, struct dwarf_reader *r, struct interval_list *scratch,
                                  size_t i, struct dwarf_slot *s)
{
        size_t unit = get_unit(x, i);
        bool only_lines = x->units && x->units[i].only_lines;
        enum status st = only_lines ? dwarf_reader_unit_lines(r, unit, &s->flat.code) : ST_OK;

        /* A row at an address outside of the claims is in padding, or the claims lack a part. */
        if (!st && (!only_lines || s->flat.code.lines.row_count))
                st = dwarf_reader_unit(r, unit, &s->flat.code);
        x->tables[unit] = s->flat.code.line_offset;
        return st ? st : dwarf_flat_unit_build(&s->flat, scratch);
}

static enum status create_reader(struct dwarf_extraction *x, struct dwarf_reader **ret, struct error *err)
{
        enum status st = dwarf_reader_create(&x->object, x->regions, ret, err);

        if (st)
                return st;
        if (x->filter)
                dwarf_reader_set_address_filter(*ret, x->filter->addresses, x->filter->count);
        return ST_OK;
}

/* ---- threads ---- */

static struct dwarf_slot **get_turn(const struct dwarf_extraction *x, size_t i)
{
        return &x->turns[i % x->slot_count];
}

static bool can_merge(const struct dwarf_extraction *x)
{
        return !x->is_merging && x->next_merge < x->next_unit && (*get_turn(x, x->next_merge))->is_ready;
}

static bool can_read(const struct dwarf_extraction *x)
{
        return x->next_unit < x->unit_count && x->free_count &&
               (x->next_unit == x->next_merge || x->waiting_bytes < x->thread_count * WAITING_BYTES_PER_THREAD);
}

static struct dwarf_slot *begin_reading(struct dwarf_extraction *x)
{
        const struct dwarf_unit *unit = &x->object.main.units.items[get_unit(x, x->next_unit)];
        struct dwarf_slot *s = x->free[--x->free_count];

        assert(!s->is_ready);
        s->bytes = unit->end - unit->offset;
        x->waiting_bytes += s->bytes;
        *get_turn(x, x->next_unit++) = s;
        return s;
}

static void end_merging(struct dwarf_extraction *x, struct dwarf_slot *s)
{
        assert(x->is_merging && x->free_count < x->slot_count && x->waiting_bytes >= s->bytes);
        x->is_merging = s->is_ready = false;
        x->waiting_bytes -= s->bytes;
        x->next_merge++;
        x->free[x->free_count++] = s;
}

static void process_units(struct dwarf_extraction *x, struct dwarf_reader *r)
{
        struct interval_list scratch = { 0 };

        pthread_mutex_lock(&x->lock);
        while (!x->failed && x->next_merge < x->unit_count) {
                struct dwarf_slot *s;
                enum status st = ST_OK;

                if (can_merge(x)) {
                        s = *get_turn(x, x->next_merge);
                        x->is_merging = true;
                        pthread_mutex_unlock(&x->lock);
                        merge_unit(x, s, x->object.main.units.items[get_unit(x, x->next_merge)].offset);
                        pthread_mutex_lock(&x->lock);
                        end_merging(x, s);
                        st = x->builder->failed;
                } else if (can_read(x)) {
                        size_t unit = x->next_unit;

                        s = begin_reading(x);
                        pthread_mutex_unlock(&x->lock);
                        st = read_flat_unit(x, r, &scratch, unit, s);
                        pthread_mutex_lock(&x->lock);
                        s->is_ready = true;
                } else {
                        pthread_cond_wait(&x->changed, &x->lock);
                        continue;
                }
                if (st && !x->failed)
                        x->failed = st;
                pthread_cond_broadcast(&x->changed);
        }
        pthread_mutex_unlock(&x->lock);
        interval_list_deinit(&scratch);
}

static void *run_unit_thread(void *context)
{
        struct dwarf_extraction *x = context;
        struct dwarf_reader *r;

        if (create_reader(x, &r, NULL) == ST_OK) {
                process_units(x, r);
                dwarf_reader_destroy(r);
        }
        return NULL; /* without memory for a reader, the other threads do the work */
}

static size_t count_threads(const struct dwarf_extraction *x)
{
        size_t n = x->unit_bytes / BYTES_PER_THREAD + 1;
        cpu_set_t cpus;

        if (x->object.companions.package || x->object.companions.dwo.open)
                n += x->unit_count / UNITS_PER_THREAD;
        if (sched_getaffinity(0, sizeof cpus, &cpus) == 0 && n > (size_t)CPU_COUNT(&cpus))
                n = (size_t)CPU_COUNT(&cpus);
        return n < LIMIT_EXTRACT_THREADS ? n : LIMIT_EXTRACT_THREADS;
}

/* The caller's thread works too; threads that cannot be started are skipped. */
static void run_threads(struct dwarf_extraction *x, struct dwarf_reader *r)
{
        pthread_t threads[LIMIT_EXTRACT_THREADS];
        pthread_attr_t attributes;
        size_t started = 0;

        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, STACK_BYTES);
        while (started + 1 < x->thread_count &&
               pthread_create(&threads[started], &attributes, run_unit_thread, x) == 0) {
                pthread_setname_np(threads[started], "dwarf");
                started++;
        }
        pthread_attr_destroy(&attributes);
        process_units(x, r);
        for (size_t i = 0; i < started; i++)
                pthread_join(threads[i], NULL);
}

/* ---- line tables that no unit refers to ---- */

static int compare_offsets(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return x < y ? -1 : x > y;
}

static void sort_offsets(uint64_t *offsets, size_t count)
{
        for (size_t i = 1; i < count; i++) {
                if (offsets[i - 1] <= offsets[i])
                        continue;
                qsort(offsets, count, sizeof *offsets, compare_offsets); /* seldom: tables are in the order of units */
                return;
        }
}

static enum status extract_lone_lines(struct dwarf_extraction *x, struct dwarf_reader *r)
{
        const struct dwarf_sections *sections = &x->object.main.sections;
        size_t unit_count = x->object.main.units.count, next = 0;
        uint64_t offset = sections->data[DWARF_LINE].size ? 0 : UINT64_MAX;
        struct dwarf_slot *s = &x->slots[0]; /* all are free by now */
        struct interval_list none = { 0 };
        enum status st = ST_OK;

        sort_offsets(x->tables, unit_count);
        for (; !st && offset != UINT64_MAX; offset = dwarf_lines_next(sections, offset)) {
                while (next < unit_count && x->tables[next] < offset)
                        next++;
                if (next < unit_count && x->tables[next] == offset)
                        continue;
                st = dwarf_reader_lines(r, offset, &s->flat.code);
                if (!st)
                        st = dwarf_flat_unit_build(&s->flat, &none);
                if (!st)
                        merge_unit(x, s, offset);
        }
        interval_list_deinit(&none);
        return st;
}

/* ---- the run ---- */

static enum status dwarf_extraction_run(struct dwarf_extraction *x, struct error *err)
{
        struct dwarf_reader *r;
        enum status st;

        x->thread_count = count_threads(x);
        x->slot_count = x->thread_count * SLOTS_PER_THREAD;
        x->slots = calloc(x->slot_count, sizeof *x->slots);
        x->turns = calloc(x->slot_count, sizeof(struct dwarf_slot *));
        x->free = calloc(x->slot_count, sizeof(struct dwarf_slot *));
        if (!x->slots || !x->turns || !x->free)
                return error_no_memory(err);
        for (size_t i = 0; i < x->slot_count; i++) {
                dwarf_flat_unit_init(&x->slots[i].flat);
                x->slots[i].flat.filter = x->filter;
                x->slots[i].flat.code.lines.wants_positions = x->builder->has_positions;
                x->free[x->free_count++] = &x->slots[i];
        }
        st = create_reader(x, &r, err);
        if (st)
                return st;
        run_threads(x, r);
        st = x->failed ? x->failed : extract_lone_lines(x, r);
        dwarf_reader_destroy(r);
        if (st == ST_TOO_BIG)
                return error_set(err, st, "the DWARF ranges exceed the size of a symbol table");
        return st ? error_no_memory(err) : ST_OK;
}

static void dwarf_extraction_reset(struct dwarf_extraction *x)
{
        for (size_t i = 0; x->slots && i < x->slot_count; i++)
                dwarf_flat_unit_deinit(&x->slots[i].flat);
        free(steal_ptr(x->slots));
        free(steal_ptr(x->turns));
        free(steal_ptr(x->free));
        dwarf_merge_deinit(&x->merge);
        x->merge.symbols = x->symbols;
        x->next_unit = x->next_merge = x->free_count = x->function_count = 0;
        x->waiting_bytes = 0;
        x->summary = (struct dwarf_summary){ 0 };
}

/* ---- extraction ---- */

static void record_missing(struct dwarf_summary *s, const struct dwarf_file *f)
{
        s->left_out += f->units.left_out;
        if (!s->missing.code)
                s->missing = f->sections.damage.code ? f->sections.damage : f->units.damage;
}

/* ---- the run ---- */

static enum status extract_all_units(struct dwarf_extraction *x, struct error *err)
{
        _cleanup_free_ uint64_t *tables = calloc(x->object.main.units.count + 1, sizeof *tables);
        enum status st;

        if (!tables)
                return error_no_memory(err);
        x->tables = tables;
        x->filter = NULL;
        x->units = NULL;
        x->unit_count = x->object.main.units.count;
        x->unit_bytes = x->object.main.sections.data[DWARF_INFO].size;
        x->summary.is_complete = true;
        st = dwarf_extraction_run(x, err);
        x->tables = NULL;
        return st;
}

/* ---- extraction for a filter ---- */

/* The quality depends on whether any unit has a function; usually the first unit with code has one. */
static enum status find_any_function(struct dwarf_extraction *x, struct error *err)
{
        struct dwarf_reader *r;
        struct dwarf_code code;
        enum status st = dwarf_reader_create(&x->object, x->regions, &r, err);

        if (st)
                return st;
        dwarf_code_init(&code);
        for (size_t i = 0; !st && !x->function_count && i < x->object.main.units.count; i++) {
                st = dwarf_reader_unit(r, i, &code);
                x->function_count += code.function_count;
        }
        dwarf_code_deinit(&code);
        dwarf_reader_destroy(r);
        return st ? error_no_memory(err) : ST_OK;
}

static enum status extract_selected_units(struct dwarf_extraction *x, const struct address_filter *w,
                                          struct dwarf_selection *selection, bool *enough_ret, struct error *err)
{
        enum status st = dwarf_select(&x->object, &x->regions, w, selection);
        uint64_t bytes = x->object.main.sections.data[DWARF_INFO].size;

        if (st)
                return error_no_memory(err);
        *enough_ret = selection->bytes * 100 <= bytes * w->max_percent;
        if (!*enough_ret)
                return ST_OK;
        x->tables = selection->tables;
        x->units = selection->units;
        x->unit_count = selection->count;
        x->unit_bytes = selection->bytes;
        x->filter = w;
        st = dwarf_extraction_run(x, err);
        x->tables = NULL;
        if (!st && !x->function_count)
                st = find_any_function(x, err);
        if (!st)
                *enough_ret = x->function_count != 0;
        return st;
}

static enum status extract_filtered(struct dwarf_extraction *x, const struct address_filter *w, struct error *err)
{
        const bool has_positions = x->builder->has_positions;
        struct dwarf_selection selection;
        bool enough = false;
        enum status st = extract_selected_units(x, w, &selection, &enough, err);

        dwarf_selection_deinit(&selection);
        if (st || enough)
                return st;
        dwarf_extraction_reset(x);
        symbol_table_builder_deinit(x->builder);
        symbol_table_builder_init(x->builder);
        x->builder->has_positions = has_positions;
        return extract_all_units(x, err);
}

static void deinit_extraction(struct dwarf_extraction *x)
{
        dwarf_extraction_reset(x);
        dwarf_object_close(&x->object);
}

enum status dwarf_extract(const struct dwarf_input *in, struct symbol_table_builder *builder, struct dwarf_summary *ret,
                          struct error *err)
{
        const struct code_map *code = in->code;
        struct dwarf_extraction x = { .builder = builder,
                                      .symbols = in->symbols,
                                      .merge.symbols = in->symbols,
                                      .lock = PTHREAD_MUTEX_INITIALIZER,
                                      .changed = PTHREAD_COND_INITIALIZER };
        _cleanup_free_ struct dwarf_region *regions = calloc(code->count + 1, sizeof *regions);
        enum status st;

        if (!regions)
                return error_no_memory(err);
        for (size_t i = 0; i < code->count; i++)
                regions[i] = (struct dwarf_region){ code->regions[i].start, code->regions[i].end };
        x.regions = (struct dwarf_regions){ regions, code->count };
        st = dwarf_object_open(in->img, in->altlink, &x.object, err);
        if (st == ST_NOT_FOUND) {
                *ret = (struct dwarf_summary){ .quality = QUALITY_NONE, .is_complete = true };
                return ST_OK;
        }
        if (st)
                return st;
        x.object.has_relative_paths = in->has_relative_paths;
        if (in->companions)
                x.object.companions = *in->companions;
        st = dwarf_object_set_name_test(&x.object, symbol_can_be_demangled, err);
        if (!st)
                st = in->filter ? extract_filtered(&x, in->filter, err) : extract_all_units(&x, err);
        if (!st) {
                *ret = x.summary;
                record_missing(ret, &x.object.main);
                record_missing(ret, &x.object.alt);
                ret->quality = x.function_count ? QUALITY_DWARF : builder->range_count ? QUALITY_LINES : QUALITY_NONE;
        }
        deinit_extraction(&x);
        return st;
}
