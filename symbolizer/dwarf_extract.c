/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Units are dealt out one after the other to all threads. A thread reads and
 * flattens its unit into a part that is free; whoever then finds the next unit
 * in turn to be ready merges it, one thread at a time. So the table comes out
 * in the order of the units, and a thread only waits when no part is free, or
 * when too much is waiting to be merged. The part that was used last is taken
 * again first: its memory is in the cache, and often no other is ever needed.
 */
#include "symbolizer/dwarf_extract.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "common/limits.h"
#include "symbolizer/dwarf_select.h"
#include "symbolizer/dwarf_spans.h"

#define PARTS_PER_THREAD 8
#define WAITING_BYTES_PER_THREAD MiB(2) /* of .debug_info, in units that are read but not merged; one always may */
#define BYTES_PER_THREAD KiB(256) /* of .debug_info; below, a thread costs more than it saves */
#define UNITS_PER_THREAD 4        /* whose other halves are elsewhere */
#define STACK_BYTES MiB(1)

struct slot {
        struct dwarf_part part;
        uint64_t bytes; /* of .debug_info, in the unit */
        bool is_ready;
};

struct extraction {
        struct dwarf_object object;
        struct dwarf_regions regions;
        struct symbol_table_builder *builder; /* of who merges */
        struct dwarf_merge merge;             /* of who merges */
        struct dwarf_summary summary;         /* of who merges */
        uint64_t function_count;
        uint64_t *tables; /* borrowed; by unit: the offset of its line table, UINT64_MAX none */
        const struct wanted *wanted; /* borrowed; NULL: everything */
        const size_t *units; /* borrowed; those to be read, NULL all */
        size_t unit_count;   /* to be read */
        uint64_t unit_bytes; /* in them */

        pthread_mutex_t lock;
        pthread_cond_t changed;
        struct slot *slots;        /* owned */
        struct slot **turns;       /* owned; of the i-th unit that is read at i % slot_count, from next_merge to next_unit */
        struct slot **free;        /* owned; a stack */
        size_t slot_count, free_count, thread_count;
        size_t next_unit, next_merge;
        uint64_t waiting_bytes;    /* in the units between these two */
        bool is_merging;
        enum status failed;
};

/* ---- one unit ---- */

/* @param offset of the unit or line table, for the summary. */
static void merge_one(struct extraction *x, struct slot *s, uint64_t offset)
{
        const struct dwarf_code *code = &s->part.code;

        dwarf_part_merge(&s->part, &x->merge, x->builder);
        x->function_count += code->function_count;
        x->summary.unit_count++;
        x->summary.missing_companions += code->misses_companion;
        if (code->damage && x->summary.damaged_units++ == 0) {
                x->summary.damage = code->damage;
                x->summary.damaged_at = offset;
        }
}

static size_t unit_of(const struct extraction *x, size_t i)
{
        return x->units ? x->units[i] : i;
}

static enum status read_one(struct extraction *x, struct dwarf_reader *r, struct interval_list *scratch, size_t i,
                            struct slot *s)
{
        size_t unit = unit_of(x, i);
        enum status st = dwarf_reader_unit(r, unit, &s->part.code);

        x->tables[unit] = s->part.code.line_offset;
        return st ? st : dwarf_part_flatten(&s->part, scratch);
}

static enum status create_reader(struct extraction *x, struct dwarf_reader **ret, struct error *err)
{
        enum status st = dwarf_reader_create(&x->object, x->regions, ret, err);

        if (!st && x->wanted)
                dwarf_reader_want(*ret, x->wanted->addresses, x->wanted->count);
        return st;
}

/* ---- threads ---- */

static struct slot **turn_of(const struct extraction *x, size_t i)
{
        return &x->turns[i % x->slot_count];
}

static bool can_merge(const struct extraction *x)
{
        return !x->is_merging && x->next_merge < x->next_unit && (*turn_of(x, x->next_merge))->is_ready;
}

static bool can_read(const struct extraction *x)
{
        return x->next_unit < x->unit_count && x->free_count &&
               (x->next_unit == x->next_merge || x->waiting_bytes < x->thread_count * WAITING_BYTES_PER_THREAD);
}

static struct slot *begin_reading(struct extraction *x)
{
        const struct dwarf_unit *unit = &x->object.main.units.items[unit_of(x, x->next_unit)];
        struct slot *s = x->free[--x->free_count];

        s->bytes = unit->end - unit->offset;
        x->waiting_bytes += s->bytes;
        *turn_of(x, x->next_unit++) = s;
        return s;
}

static void end_merging(struct extraction *x, struct slot *s)
{
        x->is_merging = s->is_ready = false;
        x->waiting_bytes -= s->bytes;
        x->next_merge++;
        x->free[x->free_count++] = s;
}

static void work(struct extraction *x, struct dwarf_reader *r)
{
        struct interval_list scratch = { 0 };

        pthread_mutex_lock(&x->lock);
        while (!x->failed && x->next_merge < x->unit_count) {
                struct slot *s;
                enum status st = ST_OK;

                if (can_merge(x)) {
                        s = *turn_of(x, x->next_merge);
                        x->is_merging = true;
                        pthread_mutex_unlock(&x->lock);
                        merge_one(x, s, x->object.main.units.items[unit_of(x, x->next_merge)].offset);
                        pthread_mutex_lock(&x->lock);
                        end_merging(x, s);
                        st = x->builder->failed;
                } else if (can_read(x)) {
                        size_t unit = x->next_unit;

                        s = begin_reading(x);
                        pthread_mutex_unlock(&x->lock);
                        st = read_one(x, r, &scratch, unit, s);
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

static void *thread_main(void *context)
{
        struct extraction *x = context;
        struct dwarf_reader *r;

        if (create_reader(x, &r, NULL) == ST_OK) {
                work(x, r);
                dwarf_reader_destroy(r);
        }
        return NULL; /* without memory for a reader the other threads do it all */
}

static size_t count_threads(const struct extraction *x)
{
        size_t n = x->unit_bytes / BYTES_PER_THREAD + 1;
        cpu_set_t cpus;

        if (x->object.companions.package || x->object.companions.dwo.open)
                n += x->unit_count / UNITS_PER_THREAD;
        if (sched_getaffinity(0, sizeof cpus, &cpus) == 0 && n > (size_t)CPU_COUNT(&cpus))
                n = (size_t)CPU_COUNT(&cpus);
        return n < LIMIT_EXTRACT_THREADS ? n : LIMIT_EXTRACT_THREADS;
}

/* The caller's thread works too; those that cannot be started are done without. */
static void run_threads(struct extraction *x, struct dwarf_reader *r)
{
        pthread_t threads[LIMIT_EXTRACT_THREADS];
        pthread_attr_t attributes;
        size_t started = 0;

        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, STACK_BYTES);
        while (started + 1 < x->thread_count &&
               pthread_create(&threads[started], &attributes, thread_main, x) == 0) {
                pthread_setname_np(threads[started], "dwarf");
                started++;
        }
        pthread_attr_destroy(&attributes);
        work(x, r);
        for (size_t i = 0; i < started; i++)
                pthread_join(threads[i], NULL);
}

/* ---- line tables that no unit refers to ---- */

static int by_value(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return x < y ? -1 : x > y;
}

static enum status extract_lone_lines(struct extraction *x, struct dwarf_reader *r)
{
        const struct dwarf_sections *sections = &x->object.main.sections;
        size_t unit_count = x->object.main.units.count;
        uint64_t offset = sections->data[DWARF_LINE].size ? 0 : UINT64_MAX;
        struct slot *s = &x->slots[0]; /* all are free by now */
        struct interval_list none = { 0 };
        enum status st = ST_OK;

        if (unit_count)
                qsort(x->tables, unit_count, sizeof *x->tables, by_value);
        for (; !st && offset != UINT64_MAX; offset = dwarf_lines_next(sections, offset)) {
                if (unit_count && bsearch(&offset, x->tables, unit_count, sizeof offset, by_value))
                        continue;
                st = dwarf_reader_lines(r, offset, &s->part.code);
                if (!st)
                        st = dwarf_part_flatten(&s->part, &none);
                if (!st)
                        merge_one(x, s, offset);
        }
        interval_list_deinit(&none);
        return st;
}

/* ---- all of it ---- */

static void note_missing(struct dwarf_summary *s, const struct dwarf_file *f)
{
        s->left_out += f->units.left_out;
        if (!s->missing.code)
                s->missing = f->sections.damage.code ? f->sections.damage : f->units.damage;
}

static enum status run(struct extraction *x, struct error *err)
{
        struct dwarf_reader *r;
        enum status st;

        x->thread_count = count_threads(x);
        x->slot_count = x->thread_count * PARTS_PER_THREAD;
        x->slots = calloc(x->slot_count, sizeof *x->slots);
        x->turns = calloc(x->slot_count, sizeof(struct slot *));
        x->free = calloc(x->slot_count, sizeof(struct slot *));
        if (!x->slots || !x->turns || !x->free)
                return error_no_memory(err);
        for (size_t i = 0; i < x->slot_count; i++) {
                dwarf_part_init(&x->slots[i].part);
                x->free[x->free_count++] = &x->slots[i];
        }
        st = create_reader(x, &r, err);
        if (st)
                return st;
        run_threads(x, r);
        st = x->failed ? x->failed : extract_lone_lines(x, r);
        dwarf_reader_destroy(r);
        if (st == ST_TOO_BIG)
                return error_set(err, st, "more DWARF ranges than a symbol table holds");
        return st ? error_no_memory(err) : ST_OK;
}

static void forget_run(struct extraction *x)
{
        for (size_t i = 0; x->slots && i < x->slot_count; i++)
                dwarf_part_deinit(&x->slots[i].part);
        free(steal_ptr(x->slots));
        free(steal_ptr(x->turns));
        free(steal_ptr(x->free));
        dwarf_merge_deinit(&x->merge);
        x->next_unit = x->next_merge = x->free_count = x->function_count = 0;
        x->waiting_bytes = 0;
        x->summary = (struct dwarf_summary){ 0 };
}

static enum status extract_all(struct extraction *x, struct error *err)
{
        _cleanup_free_ uint64_t *tables = calloc(x->object.main.units.count + 1, sizeof *tables);
        enum status st;

        if (!tables)
                return error_no_memory(err);
        x->tables = tables;
        x->wanted = NULL;
        x->units = NULL;
        x->unit_count = x->object.main.units.count;
        x->unit_bytes = x->object.main.sections.data[DWARF_INFO].size;
        x->summary.is_complete = true;
        st = run(x, err);
        x->tables = NULL;
        return st;
}

/* ---- what covers a few addresses ---- */

/* Whether there are functions is said of the whole file; nearly always the first unit with code has one. */
static enum status count_a_function(struct extraction *x, struct error *err)
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

static enum status extract_selected(struct extraction *x, const struct wanted *w, struct dwarf_selection *selection,
                                    bool *enough_ret, struct error *err)
{
        enum status st = dwarf_select(&x->object, w, selection);
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
        x->wanted = w;
        st = run(x, err);
        x->tables = NULL;
        if (!st && !x->function_count)
                st = count_a_function(x, err);
        if (!st)
                *enough_ret = x->function_count != 0;
        return st;
}

static enum status extract_wanted(struct extraction *x, const struct wanted *w, struct error *err)
{
        struct dwarf_selection selection;
        bool enough = false;
        enum status st = extract_selected(x, w, &selection, &enough, err);

        dwarf_selection_deinit(&selection);
        if (st || enough)
                return st;
        forget_run(x);
        symbol_table_builder_deinit(x->builder);
        symbol_table_builder_init(x->builder);
        return extract_all(x, err);
}

static void deinit(struct extraction *x)
{
        forget_run(x);
        dwarf_object_close(&x->object);
}

enum status dwarf_extract_wanted(const struct elf_image *img, const struct elf_image *altlink,
                                 const struct dwarf_companions *companions, const struct code_map *code,
                                 const struct wanted *wanted, struct symbol_table_builder *builder,
                                 struct dwarf_summary *ret, struct error *err)
{
        struct extraction x = { .builder = builder, .lock = PTHREAD_MUTEX_INITIALIZER,
                                .changed = PTHREAD_COND_INITIALIZER };
        _cleanup_free_ struct dwarf_region *regions = calloc(code->count + 1, sizeof *regions);
        enum status st;

        if (!regions)
                return error_no_memory(err);
        for (size_t i = 0; i < code->count; i++)
                regions[i] = (struct dwarf_region){ code->regions[i].start, code->regions[i].end };
        x.regions = (struct dwarf_regions){ regions, code->count };
        st = dwarf_object_open(img, altlink, &x.object, err);
        if (st == ST_NOT_FOUND) {
                *ret = (struct dwarf_summary){ .quality = QUALITY_NONE, .is_complete = true };
                return ST_OK;
        }
        if (st)
                return st;
        if (companions)
                x.object.companions = *companions;
        st = wanted ? extract_wanted(&x, wanted, err) : extract_all(&x, err);
        if (!st) {
                *ret = x.summary;
                note_missing(ret, &x.object.main);
                note_missing(ret, &x.object.alt);
                ret->quality = x.function_count ? QUALITY_DWARF : builder->range_count ? QUALITY_LINES : QUALITY_NONE;
        }
        deinit(&x);
        return st;
}

enum status dwarf_extract(const struct elf_image *img, const struct elf_image *altlink, const struct code_map *code,
                          struct symbol_table_builder *builder, struct dwarf_summary *ret, struct error *err)
{
        return dwarf_extract_wanted(img, altlink, NULL, code, NULL, builder, ret, err);
}
