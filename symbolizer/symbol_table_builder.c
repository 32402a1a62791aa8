/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/symbol_table_builder.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/hash.h"
#include "common/limits.h"
#include "symbolizer/huge_array.h"

#define HUGE_PAGE_BYTES MiB(2) /* slots are a power of two, so a multiple of it from there on */

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

/* Slots are looked at in no order: in huge pages, where there are any, their page needs no look of its own. */
static uint64_t *make_slots(size_t count)
{
        size_t bytes = count * sizeof(uint64_t);
        uint64_t *slots;

        if (bytes < HUGE_PAGE_BYTES)
                return calloc(count, sizeof *slots);
        slots = aligned_alloc(HUGE_PAGE_BYTES, bytes);
        if (!slots)
                return NULL;
        madvise(slots, bytes, MADV_HUGEPAGE);
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
 * The next number that may be it, from *at on, or UINT32_MAX when there is no
 * other; then *at is where a new one belongs. Start with *at = hash.
 */
static uint32_t intern_next(const struct intern *set, uint64_t hash, size_t *at)
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
        *b = (struct symbol_table_builder){ .failed = ST_OK };
}

static uint32_t failed(struct symbol_table_builder *b, enum status st)
{
        if (!b->failed)
                b->failed = st;
        return 0;
}

uint64_t symbol_text_hash(const char *text, size_t size)
{
        return hash64(text, size);
}

void symbol_table_builder_prefetch_text(const struct symbol_table_builder *b, uint64_t hash)
{
        if (b->string_set.slot_count)
                __builtin_prefetch(&b->string_set.slots[(uint32_t)hash & (b->string_set.slot_count - 1)]);
}

uint32_t symbol_table_builder_string(struct symbol_table_builder *b, const char *text)
{
        size_t size = strnlen(text, LIMIT_NAME_BYTES);

        return symbol_table_builder_text(b, text, size, symbol_text_hash(text, size));
}

/* The set's numbers are the offsets of the texts. */
uint32_t symbol_table_builder_text(struct symbol_table_builder *b, const char *text, size_t size, uint64_t hash)
{
        struct intern *set = &b->string_set;
        size_t at = hash, offset = b->strings.size;
        uint32_t number;

        if (size == 0 || b->failed)
                return 0;
        if (!intern_grow(set))
                return failed(b, ST_NO_MEMORY);
        while ((number = intern_next(set, hash, &at)) != UINT32_MAX) {
                const char *other = (const char *)b->strings.data + number;

                if (strncmp(other, text, size) == 0 && other[size] == 0)
                        return number;
        }
        buf_append(&b->strings, text, size);
        buf_append_u8(&b->strings, 0);
        if (b->strings.failed)
                return failed(b, b->strings.failed);
        if (!intern_add(set, hash, at, offset))
                return failed(b, ST_TOO_BIG);
        return (uint32_t)offset;
}

uint32_t symbol_table_builder_function(struct symbol_table_builder *b, const char *linkage_name, const char *name)
{
        uint32_t linkage = symbol_table_builder_string(b, linkage_name);

        return symbol_table_builder_function_of(b, linkage, symbol_table_builder_string(b, name));
}

uint32_t symbol_table_builder_function_of(struct symbol_table_builder *b, uint32_t linkage_name, uint32_t name)
{
        struct symbol_function f = { linkage_name, name };
        struct intern *set = &b->function_set;
        uint64_t hash = hash64(&f, sizeof f);
        size_t at = hash;
        uint32_t number;

        if (b->failed)
                return 0;
        if (!intern_grow(set))
                return failed(b, ST_NO_MEMORY);
        while ((number = intern_next(set, hash, &at)) != UINT32_MAX)
                if (memcmp(&b->functions[number], &f, sizeof f) == 0)
                        return number;
        if (!huge_array_reserve(&b->functions, &b->function_capacity, set->count))
                return failed(b, ST_NO_MEMORY);
        b->functions[set->count] = f;
        if (!intern_add(set, hash, at, set->count))
                return failed(b, ST_TOO_BIG);
        return (uint32_t)set->count - 1;
}

/* ---- chains ---- */

uint32_t symbol_table_builder_add_chains(struct symbol_table_builder *b, const struct symbol_chain *chains, size_t count,
                                         const struct symbol_table_frame *frames, size_t frame_count)
{
        uint32_t first = (uint32_t)b->chain_count;

        if (b->failed || count == 0)
                return 0;
        if (b->frame_count + frame_count >= UINT32_MAX || b->chain_count + count >= UINT32_MAX)
                return failed(b, ST_TOO_BIG);
        if (!huge_array_reserve_more(&b->chains, &b->chain_capacity, b->chain_count, count) ||
            !huge_array_reserve_more(&b->frames, &b->frame_capacity, b->frame_count, frame_count))
                return failed(b, ST_NO_MEMORY);
        for (size_t i = 0; i < count; i++)
                b->chains[b->chain_count++] = (struct symbol_chain){ chains[i].first_frame + (uint32_t)b->frame_count,
                                                                     chains[i].frame_count };
        memcpy(b->frames + b->frame_count, frames, frame_count * sizeof *frames);
        b->frame_count += frame_count;
        return first;
}

uint32_t symbol_table_builder_chain(struct symbol_table_builder *b, const struct symbol_table_frame *frames,
                                    size_t count)
{
        const struct symbol_chain chain = { 0, (uint32_t)count };
        uint64_t hash = hash64(frames, count * sizeof *frames);
        struct intern *set = &b->chain_set;
        size_t at = hash;
        uint32_t number;

        assert(count > 0);
        if (b->failed)
                return 0;
        if (!intern_grow(set))
                return failed(b, ST_NO_MEMORY);
        while ((number = intern_next(set, hash, &at)) != UINT32_MAX) {
                const struct symbol_chain *c = &b->chains[number];

                if (c->frame_count == count && memcmp(b->frames + c->first_frame, frames, count * sizeof *frames) == 0)
                        return number;
        }
        number = symbol_table_builder_add_chains(b, &chain, 1, frames, count);
        if (!b->failed && !intern_add(set, hash, at, number))
                return failed(b, ST_TOO_BIG);
        return number;
}

void symbol_table_builder_range(struct symbol_table_builder *b, uint64_t start, uint64_t end, uint32_t chain)
{
        struct symbol_range *last = b->range_count ? &b->ranges[b->range_count - 1] : NULL;

        if (b->failed || start >= end)
                return;
        if (last && last->end == start && last->chain == chain) {
                last->end = end;
                return;
        }
        if (b->range_count >= LIMIT_RANGES_PER_OBJECT)
                failed(b, ST_TOO_BIG);
        else if (!huge_array_reserve(&b->ranges, &b->range_capacity, b->range_count))
                failed(b, ST_NO_MEMORY);
        else
                b->ranges[b->range_count++] = (struct symbol_range){ start, end, chain };
}

bool symbol_table_builder_is_nameless(const struct symbol_table_builder *b, uint32_t chain)
{
        const struct symbol_chain *c = &b->chains[chain];

        return b->frames[c->first_frame + c->frame_count - 1].function == SYMBOL_NO_FUNCTION;
}

enum status symbol_table_builder_finish(struct symbol_table_builder *b, struct symbol_table *ret, struct error *err)
{
        symbol_table_builder_settle(b);
        if (b->failed == ST_TOO_BIG)
                return error_set(err, ST_TOO_BIG, "more symbols than a symbol table holds");
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
        };
        return ST_OK;
}
