/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Units are dealt out one after the other to all threads. A thread reads and
 * flattens its unit into a part that is free; whoever then finds the next unit
 * in turn to be ready merges it, one thread at a time. So the table comes out
 * in the order of the units, and a thread only waits when no part is free, or
 * when too much is waiting to be merged. The part that was used last is taken
 * again first: its memory is in the cache, and often no other is ever needed.
 */
#include "symbolizer/dwarf_extract_run.h"

#include <sched.h>
#include <stdlib.h>

#include "common/limits.h"

#define PARTS_PER_THREAD 8
#define WAITING_BYTES_PER_THREAD MiB(2) /* of .debug_info, in units that are read but not merged; one always may */
#define BYTES_PER_THREAD KiB(256) /* of .debug_info; below, a thread costs more than it saves */
#define UNITS_PER_THREAD 4        /* whose other halves are elsewhere */
#define STACK_BYTES MiB(1)

struct dwarf_slot {
        struct dwarf_part part;
        uint64_t bytes; /* of .debug_info, in the unit */
        bool is_ready;
};

/* ---- one unit ---- */

/* @param offset of the unit or line table, for the summary. */
static void merge_one(struct dwarf_extraction *x, struct dwarf_slot *s, uint64_t offset)
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

static size_t unit_of(const struct dwarf_extraction *x, size_t i)
{
        return x->units ? x->units[i] : i;
}

static enum status read_one(struct dwarf_extraction *x, struct dwarf_reader *r, struct interval_list *scratch, size_t i,
                            struct dwarf_slot *s)
{
        size_t unit = unit_of(x, i);
        enum status st = dwarf_reader_unit(r, unit, &s->part.code);

        x->tables[unit] = s->part.code.line_offset;
        return st ? st : dwarf_part_flatten(&s->part, scratch);
}

static enum status create_reader(struct dwarf_extraction *x, struct dwarf_reader **ret, struct error *err)
{
        enum status st = dwarf_reader_create(&x->object, x->regions, ret, err);

        if (!st && x->wanted)
                dwarf_reader_want(*ret, x->wanted->addresses, x->wanted->count);
        return st;
}

/* ---- threads ---- */

static struct dwarf_slot **turn_of(const struct dwarf_extraction *x, size_t i)
{
        return &x->turns[i % x->slot_count];
}

static bool can_merge(const struct dwarf_extraction *x)
{
        return !x->is_merging && x->next_merge < x->next_unit && (*turn_of(x, x->next_merge))->is_ready;
}

static bool can_read(const struct dwarf_extraction *x)
{
        return x->next_unit < x->unit_count && x->free_count &&
               (x->next_unit == x->next_merge || x->waiting_bytes < x->thread_count * WAITING_BYTES_PER_THREAD);
}

static struct dwarf_slot *begin_reading(struct dwarf_extraction *x)
{
        const struct dwarf_unit *unit = &x->object.main.units.items[unit_of(x, x->next_unit)];
        struct dwarf_slot *s = x->free[--x->free_count];

        s->bytes = unit->end - unit->offset;
        x->waiting_bytes += s->bytes;
        *turn_of(x, x->next_unit++) = s;
        return s;
}

static void end_merging(struct dwarf_extraction *x, struct dwarf_slot *s)
{
        x->is_merging = s->is_ready = false;
        x->waiting_bytes -= s->bytes;
        x->next_merge++;
        x->free[x->free_count++] = s;
}

static void work(struct dwarf_extraction *x, struct dwarf_reader *r)
{
        struct interval_list scratch = { 0 };

        pthread_mutex_lock(&x->lock);
        while (!x->failed && x->next_merge < x->unit_count) {
                struct dwarf_slot *s;
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
        struct dwarf_extraction *x = context;
        struct dwarf_reader *r;

        if (create_reader(x, &r, NULL) == ST_OK) {
                work(x, r);
                dwarf_reader_destroy(r);
        }
        return NULL; /* without memory for a reader the other threads do it all */
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

/* The caller's thread works too; those that cannot be started are done without. */
static void run_threads(struct dwarf_extraction *x, struct dwarf_reader *r)
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

static enum status extract_lone_lines(struct dwarf_extraction *x, struct dwarf_reader *r)
{
        const struct dwarf_sections *sections = &x->object.main.sections;
        size_t unit_count = x->object.main.units.count;
        uint64_t offset = sections->data[DWARF_LINE].size ? 0 : UINT64_MAX;
        struct dwarf_slot *s = &x->slots[0]; /* all are free by now */
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

enum status dwarf_extraction_run(struct dwarf_extraction *x, struct error *err)
{
        struct dwarf_reader *r;
        enum status st;

        x->thread_count = count_threads(x);
        x->slot_count = x->thread_count * PARTS_PER_THREAD;
        x->slots = calloc(x->slot_count, sizeof *x->slots);
        x->turns = calloc(x->slot_count, sizeof(struct dwarf_slot *));
        x->free = calloc(x->slot_count, sizeof(struct dwarf_slot *));
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

void dwarf_extraction_forget(struct dwarf_extraction *x)
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
