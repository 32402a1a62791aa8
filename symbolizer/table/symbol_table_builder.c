/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two parts. The first interns: an intern set is an open-addressed hash table of numbers only, with half of the hash
 * beside each number; the elements are in the builder's arrays, and the caller of intern_find_next() compares them.
 *
 * The second settles the ranges: sorts them and resolves overlaps. Large objects have millions of ranges, which arrive
 * unit by unit, mostly in order within a unit. sort_runs() first moves whole runs of neighbours, then sort_by_start()
 * puts them in order; after that, groups of ranges that overlap one another are resolved by interval_list_overlay(),
 * all others are copied. The result is written over the input (struct symbol_table_rewrite), since ranges are most of
 * the memory; gap_fill.c merges sources by the same means.
 *
 * Order: intern set, texts and functions, chains and ranges, symbol_table_builder_finish(), rewriting, settling,
 * sorting.
 */
#include "symbolizer/table/symbol_table_builder.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/limits.h"
#include "common/memory/huge_pages.h"
#include "common/sort.h"
#include "symbolizer/table/huge_array.h"
#include "symbolizer/table/interval_overlay.h"

/* ---- a set of numbers ---- */

static void intern_deinit(struct intern *set)
{
        free(set->slots);
}

static void intern_put(uint64_t *slots, size_t slot_count, uint64_t slot)
{
        size_t at = slot >> 32 & (slot_count - 1);

        while (slots[at])
                at = (at + 1) & (slot_count - 1);
        slots[at] = slot;
}

/* In random order: huge pages save TLB misses. The bytes are a power of two, so large ones are whole huge pages. */
static uint64_t *make_slots(size_t count)
{
        size_t bytes = count * sizeof(uint64_t);
        uint64_t *slots;

        if (bytes < HUGE_PAGE_BYTES)
                return calloc(count, sizeof *slots);
        slots = aligned_alloc(HUGE_PAGE_BYTES, bytes);
        if (!slots)
                return NULL;
        advise_huge_pages(slots, bytes);
        return memset(slots, 0, bytes);
}

static bool intern_grow(struct intern *set)
{
        size_t slot_count = set->slot_count ? set->slot_count * 2 : 1024;
        uint64_t *slots;

        if (set->count * 4 < set->slot_count * 3)
                return true;
        slots = make_slots(slot_count);
        if (!slots)
                return false;
        for (size_t i = 0; i < set->slot_count; i++)
                if (set->slots[i])
                        intern_put(slots, slot_count, set->slots[i]);
        free(set->slots);
        set->slots = slots;
        set->slot_count = slot_count;
        return true;
}

/*
 * The next candidate from slot *at on, or UINT32_MAX at the end of the probe
 * sequence; *at is then the slot for a new number. Start with *at = hash.
 */
static uint32_t intern_find_next(const struct intern *set, uint64_t hash, size_t *at)
{
        for (;; ++*at) {
                uint64_t slot;

                *at = (uint32_t)*at & (set->slot_count - 1);
                slot = set->slots[*at];
                if (slot == 0)
                        return UINT32_MAX;
                if (slot >> 32 == (uint32_t)hash) {
                        ++*at;
                        return (uint32_t)slot - 1;
                }
        }
}

static bool intern_add(struct intern *set, uint64_t hash, size_t at, size_t number)
{
        if (number >= UINT32_MAX - 1)
                return false;
        set->count++;
        set->slots[at] = hash << 32 | (uint32_t)(number + 1);
        return true;
}

/* ---- the builder ---- */

void symbol_table_builder_init(struct symbol_table_builder *b)
{
        *b = (struct symbol_table_builder){ .failed = ST_OK };
        buf_init(&b->strings, UINT32_MAX);
        buf_append_u8(&b->strings, 0);
}

void symbol_table_builder_deinit(struct symbol_table_builder *b)
{
        buf_deinit(&b->strings);
        intern_deinit(&b->string_set);
        intern_deinit(&b->function_set);
        intern_deinit(&b->chain_set);
        free(b->functions);
        free(b->chains);
        free(b->frames);
        free(b->ranges);
        free(b->positions);
        *b = (struct symbol_table_builder){ .failed = ST_OK };
}

static uint32_t set_builder_failed(struct symbol_table_builder *b, enum status st)
{
        if (!b->failed)
                b->failed = st;
        return 0;
}

uint64_t hash_symbol_text(const char *text, size_t size)
{
        return hash_bytes64(text, size);
}

void symbol_table_builder_prefetch_text(const struct symbol_table_builder *b, uint64_t hash)
{
        if (b->string_set.slot_count)
                __builtin_prefetch(&b->string_set.slots[(uint32_t)hash & (b->string_set.slot_count - 1)]);
}

uint32_t symbol_table_builder_add_string(struct symbol_table_builder *b, const char *text)
{
        size_t size = strnlen(text, LIMIT_NAME_BYTES);

        return symbol_table_builder_add_text(b, text, size, hash_symbol_text(text, size));
}

/* The set's numbers are the offsets of the texts. */
uint32_t symbol_table_builder_add_text(struct symbol_table_builder *b, const char *text, size_t size, uint64_t hash)
{
        struct intern *set = &b->string_set;
        size_t at = hash, offset = b->strings.size;
        uint32_t number;

        if (size == 0 || b->failed)
                return 0;
        if (!intern_grow(set))
                return set_builder_failed(b, ST_NO_MEMORY);
        while ((number = intern_find_next(set, hash, &at)) != UINT32_MAX) {
                const char *other = (const char *)b->strings.data + number;

                if (strncmp(other, text, size) == 0 && other[size] == 0)
                        return number;
        }
        buf_append(&b->strings, text, size);
        buf_append_u8(&b->strings, 0);
        if (b->strings.failed)
                return set_builder_failed(b, b->strings.failed);
        if (!intern_add(set, hash, at, offset))
                return set_builder_failed(b, ST_TOO_BIG);
        return (uint32_t)offset;
}

uint32_t symbol_table_builder_add_function(struct symbol_table_builder *b, const char *linkage_name, const char *name)
{
        struct symbol_function f = { .linkage_name = symbol_table_builder_add_string(b, linkage_name) };

        f.name = symbol_table_builder_add_string(b, name);
        return symbol_table_builder_intern_function(b, &f);
}

uint32_t symbol_table_builder_intern_function(struct symbol_table_builder *b, const struct symbol_function *f)
{
        struct intern *set = &b->function_set;
        uint64_t hash = hash_bytes64(f, sizeof *f);
        size_t at = hash;
        uint32_t number;

        if (b->failed)
                return 0;
        if (!intern_grow(set))
                return set_builder_failed(b, ST_NO_MEMORY);
        while ((number = intern_find_next(set, hash, &at)) != UINT32_MAX)
                if (memcmp(&b->functions[number], f, sizeof *f) == 0)
                        return number;
        if (!huge_array_reserve(&b->functions, &b->function_capacity, set->count))
                return set_builder_failed(b, ST_NO_MEMORY);
        b->functions[set->count] = *f;
        if (!intern_add(set, hash, at, set->count))
                return set_builder_failed(b, ST_TOO_BIG);
        return (uint32_t)set->count - 1;
}

/* ---- positions ---- */

uint32_t symbol_table_builder_reserve_positions(struct symbol_table_builder *b, size_t count)
{
        static const struct symbol_position unknown = { .entry = UINT64_MAX };
        size_t first = b->position_count ? b->position_count : 1;

        if (b->failed)
                return 0;
        if (count >= UINT32_MAX - first)
                return set_builder_failed(b, ST_TOO_BIG);
        if (!huge_array_reserve_more(&b->positions, &b->position_capacity, b->position_count, count + 1))
                return set_builder_failed(b, ST_NO_MEMORY);
        b->positions[0] = unknown;
        b->position_count = first + count;
        return (uint32_t)first;
}

/* The last position is usually the same. */
uint32_t symbol_table_builder_number_line(struct symbol_table_builder *b, uint32_t line)
{
        const struct symbol_position p = { .place.line = line, .entry = UINT64_MAX };
        uint32_t number = (uint32_t)b->position_count - 1;

        if (!b->has_positions || !line)
                return line; /* position 0 is the unknown one */
        if (!b->position_count || b->positions[number].entry != p.entry ||
            memcmp(&b->positions[number].place, &p.place, sizeof p.place) != 0)
                number = symbol_table_builder_reserve_positions(b, 1);
        if (b->failed)
                return 0;
        b->positions[number] = p;
        return number;
}

/* ---- chains ---- */

uint32_t symbol_table_builder_add_chains(struct symbol_table_builder *b, const struct symbol_chain *chains,
                                         size_t count, const struct symbol_table_frame *frames, size_t frame_count)
{
        uint32_t first = (uint32_t)b->chain_count;

        if (b->failed || count == 0)
                return 0;
        if (b->frame_count + frame_count >= UINT32_MAX || b->chain_count + count >= UINT32_MAX)
                return set_builder_failed(b, ST_TOO_BIG);
        if (!huge_array_reserve_more(&b->chains, &b->chain_capacity, b->chain_count, count) ||
            !huge_array_reserve_more(&b->frames, &b->frame_capacity, b->frame_count, frame_count))
                return set_builder_failed(b, ST_NO_MEMORY);
        for (size_t i = 0; i < count; i++)
                b->chains[b->chain_count++] = (struct symbol_chain){ chains[i].first_frame + (uint32_t)b->frame_count,
                                                                     chains[i].frame_count };
        memcpy(b->frames + b->frame_count, frames, frame_count * sizeof *frames);
        b->frame_count += frame_count;
        return first;
}

uint32_t symbol_table_builder_add_chain(struct symbol_table_builder *b, const struct symbol_table_frame *frames,
                                        size_t count)
{
        const struct symbol_chain chain = { 0, (uint32_t)count };
        uint64_t hash = hash_bytes64(frames, count * sizeof *frames);
        struct intern *set = &b->chain_set;
        size_t at = hash;
        uint32_t number;

        assert(count > 0);
        if (b->failed)
                return 0;
        if (!intern_grow(set))
                return set_builder_failed(b, ST_NO_MEMORY);
        while ((number = intern_find_next(set, hash, &at)) != UINT32_MAX) {
                const struct symbol_chain *c = &b->chains[number];

                if (c->frame_count == count && memcmp(b->frames + c->first_frame, frames, count * sizeof *frames) == 0)
                        return number;
        }
        number = symbol_table_builder_add_chains(b, &chain, 1, frames, count);
        if (!b->failed && !intern_add(set, hash, at, number))
                return set_builder_failed(b, ST_TOO_BIG);
        return number;
}

void symbol_table_builder_add_range(struct symbol_table_builder *b, uint64_t start, uint64_t end, uint32_t chain)
{
        struct symbol_range *last = b->range_count ? &b->ranges[b->range_count - 1] : NULL;

        if (b->failed || start >= end)
                return;
        if (last && last->end == start && last->chain == chain) {
                last->end = end;
                return;
        }
        if (b->range_count >= LIMIT_RANGES_PER_OBJECT)
                set_builder_failed(b, ST_TOO_BIG);
        else if (!huge_array_reserve(&b->ranges, &b->range_capacity, b->range_count))
                set_builder_failed(b, ST_NO_MEMORY);
        else
                b->ranges[b->range_count++] = (struct symbol_range){ start, end, chain };
}

bool symbol_table_builder_is_nameless(const struct symbol_table_builder *b, uint32_t chain)
{
        const struct symbol_chain *c = &b->chains[chain];

        assert(chain < b->chain_count && c->frame_count > 0);
        return b->frames[c->first_frame + c->frame_count - 1].function == SYMBOL_NO_FUNCTION;
}

enum status symbol_table_builder_finish(struct symbol_table_builder *b, struct symbol_table *ret, struct error *err)
{
        symbol_table_builder_settle(b);
        if (b->has_positions)
                symbol_table_builder_reserve_positions(b, 0); /* at least the unknown one */
        if (b->failed == ST_TOO_BIG)
                return error_set(err, ST_TOO_BIG, "the symbols exceed the size of a symbol table");
        if (b->failed)
                return error_no_memory(err);
        *ret = (struct symbol_table){
                .ranges = steal_ptr(b->ranges),
                .range_count = (uint32_t)b->range_count,
                .chains = steal_ptr(b->chains),
                .chain_count = (uint32_t)b->chain_count,
                .frames = steal_ptr(b->frames),
                .frame_count = (uint32_t)b->frame_count,
                .functions = steal_ptr(b->functions),
                .function_count = (uint32_t)b->function_set.count,
                .strings = (char *)steal_ptr(b->strings.data),
                .string_bytes = (uint32_t)b->strings.size,
                .positions = steal_ptr(b->positions),
                .position_count = (uint32_t)b->position_count,
                .has_positions = b->has_positions,
        };
        return ST_OK;
}

/* ---- settling ---- */

/* Sorting the ranges of a builder, resolving overlaps, and rewriting ranges in place. */

/*
 * Ranges are most of the memory of a large object, so they are rewritten in
 * place. When the write position reaches the read position, the unread ranges
 * are moved up by an eighth of their count, which keeps moves rare.
 */
static void make_gap(struct symbol_table_rewrite *w)
{
        struct symbol_table_builder *b = w->b;
        size_t left = b->range_count - w->read, gap = left / 8 + 64, capacity = b->range_count + gap;
        struct symbol_range *grown;

        if (capacity > LIMIT_RANGES_PER_OBJECT) {
                set_builder_failed(b, ST_TOO_BIG);
                return;
        }
        if (capacity > b->range_capacity) {
                grown = reallocarray(b->ranges, capacity, sizeof *grown);
                if (!grown) {
                        set_builder_failed(b, ST_NO_MEMORY);
                        return;
                }
                b->ranges = grown;
                b->range_capacity = capacity;
        }
        assert(b->ranges);
        memmove(b->ranges + w->read + gap, b->ranges + w->read, left * sizeof *b->ranges);
        w->read += gap;
        b->range_count += gap;
}

bool symbol_table_rewrite_next(struct symbol_table_rewrite *w, struct symbol_range *ret)
{
        if (w->b->failed || w->read == w->b->range_count)
                return false;
        *ret = w->b->ranges[w->read++];
        return true;
}

void symbol_table_rewrite_add(struct symbol_table_rewrite *w, uint64_t start, uint64_t end, uint32_t chain)
{
        struct symbol_range *last = w->write ? &w->b->ranges[w->write - 1] : NULL;

        if (w->b->failed || start >= end)
                return;
        if (last && last->end == start && last->chain == chain) {
                last->end = end;
                return;
        }
        if (w->write == w->read)
                make_gap(w);
        if (w->b->failed)
                return;
        assert(w->b->ranges);
        w->b->ranges[w->write++] = (struct symbol_range){ start, end, chain };
}

void symbol_table_rewrite_end(struct symbol_table_rewrite *w)
{
        assert(w->b->failed || w->read == w->b->range_count);
        w->b->range_count = w->write;
}

static bool are_ranges_settled(const struct symbol_table_builder *b)
{
        for (size_t i = 1; i < b->range_count; i++)
                if (b->ranges[i].start < b->ranges[i - 1].end)
                        return false;
        return true;
}

/* The overlay puts the greatest item on top; the earliest chain must win. */
static uint32_t reverse_chain(uint32_t chain)
{
        return UINT32_MAX - chain;
}

static void add_settled_range(void *context, uint64_t start, uint64_t end, uint32_t item)
{
        symbol_table_rewrite_add(context, start, end, reverse_chain(item));
}

/* The ranges from s->read on that overlap one another. @return how many, at least 1 */
static size_t count_overlapping(const struct symbol_table_rewrite *s)
{
        const struct symbol_range *r = s->b->ranges + s->read;
        size_t n = s->b->range_count - s->read, i = 1;
        uint64_t end = r[0].end;

        for (; i < n && r[i].start < end; i++)
                if (r[i].end > end)
                        end = r[i].end;
        return i;
}

/*
 * A line row is at the instruction, while the length of a function may be wrong: GNU as for RISC-V writes it before
 * relaxation, so that the last function of an assembly file overlaps the next file.
 */
static uint32_t rank_chain(const struct symbol_table_builder *b, uint32_t chain)
{
        bool has_row = b->frames[b->chains[chain].first_frame].file != 0;

        return 2u * has_row + !symbol_table_builder_is_nameless(b, chain);
}

bool symbol_table_builder_has_row_and_name(const struct symbol_table_builder *b, uint32_t chain)
{
        return rank_chain(b, chain) == 3;
}

static void settle_overlapping(struct symbol_table_rewrite *s, size_t count, struct interval_list *list)
{
        struct symbol_table_builder *b = s->b;
        bool ok = true;

        list->count = 0;
        for (size_t i = 0; ok && i < count; i++) {
                const struct symbol_range *r = &b->ranges[s->read + i];

                ok = interval_list_add(
                        list, (struct interval){ r->start, r->end, reverse_chain(r->chain), rank_chain(b, r->chain) });
        }
        s->read += count;
        if (!ok || !interval_list_overlay(list, add_settled_range, s))
                set_builder_failed(b, ST_NO_MEMORY);
}

/* ---- sorting ---- */

#define APART 64 /* bytes between two ranges that end a run */
#define FEW_IN_A_RUN 4

/* Consecutive ranges that are moved together. start first: sort_by_start(). */
struct range_run {
        uint64_t start;
        uint64_t first, count;
};

static size_t count_runs(const struct symbol_range *r, size_t count, struct range_run *runs)
{
        size_t n = 0;

        for (size_t i = 0; i < count; i++) {
                if (i == 0 || r[i].start < r[i - 1].end || r[i].start - r[i - 1].end > APART) {
                        if (runs)
                                runs[n] = (struct range_run){ r[i].start, i, 0 };
                        n++;
                }
                if (runs)
                        runs[n - 1].count++;
        }
        return n;
}

/*
 * Each unit has its functions in a few places: sort these runs and move their
 * ranges together. Interleaved runs leave work for the final sort. An
 * optimization only: without memory nothing is done.
 */
static void sort_runs(struct symbol_table_builder *b)
{
        size_t count = count_runs(b->ranges, b->range_count, NULL), done = 0;
        _cleanup_free_ struct range_run *runs = NULL;
        struct symbol_range *sorted = NULL;
        size_t capacity = 0;

        if (!count || count > b->range_count / FEW_IN_A_RUN)
                return;
        runs = calloc(count, sizeof *runs);
        if (!runs || !huge_array_reserve_more(&sorted, &capacity, 0, b->range_count))
                return;
        count_runs(b->ranges, b->range_count, runs);
        sort_by_start(runs, count, sizeof *runs);
        for (size_t i = 0; i < count; i++) {
                memcpy(sorted + done, b->ranges + runs[i].first, runs[i].count * sizeof *sorted);
                done += runs[i].count;
        }
        free(b->ranges);
        b->ranges = sorted;
        b->range_capacity = capacity;
}

void symbol_table_builder_settle(struct symbol_table_builder *b)
{
        struct symbol_table_rewrite s = { .b = b };
        struct interval_list list = { 0 };

        if (b->failed || are_ranges_settled(b))
                return;
        sort_runs(b);
        sort_by_start(b->ranges, b->range_count, sizeof *b->ranges);
        while (s.read < b->range_count && !b->failed) {
                size_t count = count_overlapping(&s);

                if (count == 1) {
                        struct symbol_range r;

                        if (symbol_table_rewrite_next(&s, &r))
                                symbol_table_rewrite_add(&s, r.start, r.end, r.chain);
                } else {
                        settle_overlapping(&s, count, &list);
                }
        }
        symbol_table_rewrite_end(&s);
        interval_list_deinit(&list);
}
