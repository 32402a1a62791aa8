/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two stages. With an address filter, dwarf_select() chooses the units to be read; without one, all units are read.
 * dwarf_extraction_run() then reads them with several threads and merges them in their order, reads the line tables
 * that no unit refers to, and cuts off the line rows that do not count (dwarf_strays.h).
 *
 * All units are read after all, into a new builder, if the selected units are more than max_percent of .debug_info, or
 * if no unit of the file has a function: the quality then depends on all line tables.
 *
 * Lock: x->lock covers slots, turns and counters. Units are read without it, each thread with its own reader; merging
 * runs without it too, but is_merging lets only one thread merge at a time.
 *
 * Order: reading and merging by threads, lone line tables, a complete run, a filtered run, dwarf_extract().
 */
#include "symbolizer/sources/dwarf_extract.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/limits.h"
#include "common/search.h"
#include "dwarf/dwarf_object.h"
#include "symbol-index/demangle.h"
#include "symbolizer/sources/dwarf_flatten.h"
#include "symbolizer/sources/dwarf_selection.h"
#include "symbolizer/sources/dwarf_strays.h"

/* ---- reading and merging units ---- */

struct dwarf_slot;

struct dwarf_extraction {
        struct dwarf_object object;
        struct dwarf_regions regions;
        struct symbol_table_builder *builder; /* of the thread with is_merging */
        struct dwarf_merge merge;             /* of the thread with is_merging */
        struct function_symbols *symbols;     /* borrowed; of the thread with is_merging */
        struct dwarf_stray_list strays;       /* of the thread with is_merging */
        struct dwarf_summary summary;         /* of the thread with is_merging */
        uint64_t function_count;
        uint64_t *tables;                    /* borrowed; by unit: the offset of its line table, UINT64_MAX none */
        const struct address_filter *filter; /* borrowed; NULL: everything */
        const struct selected_unit *units;   /* borrowed; those to be read, NULL all */
        bool is_first_look;                  /* its result counts only if no other unit or line table could change it */
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
        const size_t first = x->builder->range_count;

        dwarf_flat_unit_merge(&s->flat, &x->merge, x->builder);
        if (!dwarf_stray_list_add(&x->strays, code, x->builder, first))
                x->builder->failed = ST_NO_MEMORY;
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

static enum status finish_table(struct dwarf_extraction *x, struct dwarf_reader *r)
{
        enum status st = x->failed ? x->failed : extract_lone_lines(x, r);

        if (st)
                return st;
        dwarf_stray_list_cut(&x->strays, &x->object, &x->regions, x->builder);
        return x->builder->failed;
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
        st = x->is_first_look ? x->failed : finish_table(x, r);
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
        dwarf_stray_list_deinit(&x->strays);
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
        x->is_first_look = false;
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

static enum status run_selection(struct dwarf_extraction *x, const struct address_filter *w,
                                 const struct dwarf_selection *selection, bool *enough_ret, struct error *err)
{
        uint64_t bytes = x->object.main.sections.data[DWARF_INFO].size;
        enum status st;

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
        return st;
}

/* Whether each address in code has a function and a line row. */
static bool are_all_resolved(struct dwarf_extraction *x, const struct address_filter *w)
{
        const struct symbol_table_builder *b = x->builder;

        symbol_table_builder_settle(x->builder);
        for (size_t i = 0; !b->failed && i < w->count; i++) {
                size_t at = find_lower_bound(k, 0, b->range_count, b->ranges[k].end <= w->addresses[i]);

                if (!dwarf_regions_find(&x->regions, w->addresses[i]))
                        continue;
                if (at == b->range_count || b->ranges[at].start > w->addresses[i] ||
                    !symbol_table_builder_has_row_and_name(b, b->ranges[at].chain))
                        return false;
        }
        return !b->failed;
}

static enum status extract_by_aranges(struct dwarf_extraction *x, const struct address_filter *w, bool *enough_ret,
                                      struct error *err)
{
        struct dwarf_selection selection;
        bool is_found;
        enum status st = dwarf_select_by_aranges(&x->object, &x->regions, w, &selection, &is_found);

        if (st)
                st = error_no_memory(err);
        x->is_first_look = true;
        if (!st && is_found)
                st = run_selection(x, w, &selection, enough_ret, err);
        if (!st && *enough_ret)
                *enough_ret = !x->strays.count && x->function_count && are_all_resolved(x, w);
        dwarf_selection_deinit(&selection);
        return st;
}

static enum status extract_by_dies(struct dwarf_extraction *x, const struct address_filter *w, bool *enough_ret,
                                   struct error *err)
{
        struct dwarf_selection selection;
        enum status st = dwarf_select(&x->object, &x->regions, w, &selection);

        if (st)
                st = error_no_memory(err);
        x->is_first_look = false;
        if (!st)
                st = run_selection(x, w, &selection, enough_ret, err);
        if (!st && *enough_ret && !x->function_count)
                st = find_any_function(x, err);
        if (!st)
                *enough_ret &= x->function_count != 0;
        dwarf_selection_deinit(&selection);
        return st;
}

static void restart_extraction(struct dwarf_extraction *x)
{
        const bool has_positions = x->builder->has_positions;

        dwarf_extraction_reset(x);
        symbol_table_builder_deinit(x->builder);
        symbol_table_builder_init(x->builder);
        x->builder->has_positions = has_positions;
}

static enum status extract_filtered(struct dwarf_extraction *x, const struct address_filter *w, struct error *err)
{
        bool enough = false;
        enum status st = extract_by_aranges(x, w, &enough, err);

        if (!st && !enough) {
                restart_extraction(x);
                st = extract_by_dies(x, w, &enough, err);
        }
        if (st || enough)
                return st;
        restart_extraction(x);
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
