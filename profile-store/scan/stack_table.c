/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/scan/stack_table.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash/hash_table.h"
#include "common/memory/huge_pages.h"
#include "common/threads/work_threads.h"

#define LEAST_SLOTS 1024 /* these, and half as many items, are not reserved: small queries need no budget */

void stack_table_init(struct stack_table *t)
{
        *t = (struct stack_table){ .memory.use = MEMORY_QUERIES };
}

void stack_table_deinit(struct stack_table *t)
{
        free(t->items);
        free(t->slots);
        memory_release(&t->memory);
        t->items = NULL;
        t->slots = NULL;
        t->count = t->capacity = t->slot_count = 0;
}

static uint32_t get_slot_tag(uint64_t hash)
{
        return (uint32_t)(hash >> 32);
}

/* The slot of the id, or the free slot for it. Ids are hashes of content that senders choose: the hash is keyed. */
static struct stack_slot *find_stack_slot(const struct stack_table *t, const uint8_t id[16], uint64_t hash)
{
        size_t i = hash & (t->slot_count - 1);
        const uint32_t tag = get_slot_tag(hash);

        while (t->slots[i].item &&
               (t->slots[i].tag != tag || memcmp(t->items[t->slots[i].item - 1].id, id, sizeof(stack_id)) != 0))
                i = (i + 1) & (t->slot_count - 1);
        return &t->slots[i];
}

void stack_table_prefetch_slot(const struct stack_table *t, const uint8_t id[16])
{
        if (t->slot_count)
                __builtin_prefetch(&t->slots[keyed_hash_id(id) & (t->slot_count - 1)]);
}

void stack_table_prefetch_item(const struct stack_table *t, const uint8_t id[16])
{
        uint32_t item = t->slot_count ? t->slots[keyed_hash_id(id) & (t->slot_count - 1)].item : 0;

        if (item)
                __builtin_prefetch(&t->items[item - 1]);
}

/* Slots are free, and all items are different. */
static void fill_slots(struct stack_table *t)
{
        for (size_t k = 0; k < t->count; k++) {
                uint64_t hash = keyed_hash_id(t->items[k].id);
                size_t i = hash & (t->slot_count - 1);

                if (k + STACK_TABLE_AHEAD < t->count)
                        stack_table_prefetch_slot(t, t->items[k + STACK_TABLE_AHEAD].id);
                while (t->slots[i].item)
                        i = (i + 1) & (t->slot_count - 1);
                t->slots[i] = (struct stack_slot){ (uint32_t)(k + 1), get_slot_tag(hash) };
        }
}

static enum status grow_slots(struct stack_table *t, struct error *err)
{
        size_t count = t->slot_count ? t->slot_count * 2 : LEAST_SLOTS;
        struct stack_slot *slots;
        enum status st = t->slot_count ? memory_reserve(&t->memory, count * sizeof *slots, err) : ST_OK;

        if (st)
                return st;
        slots = calloc_huge(count, sizeof *slots);
        if (!slots)
                return error_no_memory(err);
        if (t->slot_count > LEAST_SLOTS)
                memory_shrink(&t->memory, t->memory.bytes - t->slot_count * sizeof *slots);
        free(t->slots);
        t->slots = slots;
        t->slot_count = count;
        fill_slots(t);
        return ST_OK;
}

static size_t count_usable_stack_slots(size_t slot_count)
{
        return slot_count / 4 * 3;
}

static enum status grow_items(struct stack_table *t, struct error *err)
{
        size_t capacity = t->capacity ? t->capacity * 2 : LEAST_SLOTS / 2;
        struct stack_total *items;
        enum status st;

        if (capacity > UINT32_MAX / 2)
                return error_set(err, ST_TOO_BIG, "more than %u distinct stacks; narrow the time range or the labels",
                                 UINT32_MAX / 2);
        st = t->capacity ? memory_reserve(&t->memory, (capacity - t->capacity) * sizeof *items, err) : ST_OK;
        if (st)
                return st;
        items = realloc(t->items, capacity * sizeof *items);
        if (!items)
                return error_no_memory(err);
        advise_huge_pages(items, capacity * sizeof *items);
        t->items = items;
        t->capacity = capacity;
        return ST_OK;
}

static void add_to_total(struct stack_total *to, __int128 value, uint64_t samples)
{
        unsigned __int128 sum =
                ((unsigned __int128)(uint64_t)to->value_high << 64 | to->value_low) + (unsigned __int128)value;

        to->value_high = (int64_t)(uint64_t)(sum >> 64);
        to->value_low = (uint64_t)sum;
        to->samples += samples;
}

enum status stack_table_add(struct stack_table *t, const uint8_t id[16], __int128 value, uint64_t samples,
                            struct error *err)
{
        const uint64_t hash = keyed_hash_id(id);
        struct stack_slot *slot;
        enum status st = ST_OK;

        if (t->count >= count_usable_stack_slots(t->slot_count))
                st = grow_slots(t, err);
        if (!st && t->count == t->capacity)
                st = grow_items(t, err);
        if (st)
                return st;
        slot = find_stack_slot(t, id, hash);
        if (!slot->item) {
                memcpy(t->items[t->count].id, id, sizeof(stack_id));
                t->items[t->count].samples = t->items[t->count].value_low = 0;
                t->items[t->count].value_high = 0;
                *slot = (struct stack_slot){ (uint32_t)++t->count, get_slot_tag(hash) };
        }
        add_to_total(&t->items[slot->item - 1], value, samples);
        return ST_OK;
}

static __int128 get_total_value(const struct stack_total *t)
{
        return (__int128)((unsigned __int128)(uint64_t)t->value_high << 64 | t->value_low);
}

enum status stack_table_merge(struct stack_table *into, struct stack_table *from, struct work_meter *meter,
                              struct error *err)
{
        enum status st = ST_OK;

        if (!into->count) {
                struct stack_table before = *into;

                *into = *from;
                *from = before;
                return ST_OK;
        }
        for (size_t i = 0; !st && i < from->count; i++) {
                if (i + STACK_TABLE_AHEAD < from->count) {
                        stack_table_prefetch_slot(into, from->items[i + STACK_TABLE_AHEAD].id);
                        stack_table_prefetch_item(into, from->items[i + STACK_TABLE_AHEAD / 2].id);
                }
                st = work_meter_add(meter, 8, err);
                if (!st)
                        st = stack_table_add(into, from->items[i].id, get_total_value(&from->items[i]),
                                             from->items[i].samples, err);
        }
        stack_table_deinit(from);
        return st;
}

/* ---- sums, sorted by id ---- */

static uint64_t load_id_word(const stack_id id, size_t at)
{
        uint64_t word;

        memcpy(&word, id + at, sizeof word);
        return be64toh(word);
}

static int compare_sum_ids(const void *a, const void *b, void *context)
{
        const struct stack_sum *x = a, *y = b;
        uint64_t high_x = load_id_word(x->id, 0), high_y = load_id_word(y->id, 0), low_x, low_y;

        (void)context;
        if (high_x != high_y)
                return high_x < high_y ? -1 : 1;
        low_x = load_id_word(x->id, 8);
        low_y = load_id_word(y->id, 8);
        return low_x < low_y ? -1 : low_x > low_y;
}

/* Ids are hashes: their first bits divide them into buckets that fit into the CPU caches. */
#define BUCKET_BITS 11
#define SORT_BUCKETS (1u << BUCKET_BITS)
#define SUMS_PER_SORT 65536 /* fewer are sorted without buckets, by one thread */

struct bucket_sorting {
        struct stack_sum *sums;
        size_t ends[SORT_BUCKETS];
        struct work_ranges ranges; /* of buckets */
};

static size_t get_bucket_start(const struct bucket_sorting *s, size_t bucket)
{
        return bucket ? s->ends[bucket - 1] : 0;
}

static size_t get_id_bucket(const stack_id id)
{
        return load_id_word(id, 0) >> (64 - BUCKET_BITS);
}

/* Move the sums of each bucket next to each other, in place (American flag sort). */
static enum status divide_into_buckets(struct bucket_sorting *s, size_t count, struct work_meter *meter,
                                       struct error *err)
{
        _cleanup_free_ size_t *next = calloc(SORT_BUCKETS, sizeof *next);
        enum status st = next ? ST_OK : error_no_memory(err);

        for (size_t i = 0; !st && i < count; i++)
                s->ends[get_id_bucket(s->sums[i].id)]++;
        for (size_t b = 1; !st && b < SORT_BUCKETS; b++) {
                s->ends[b] += s->ends[b - 1];
                next[b] = s->ends[b - 1];
        }
        for (size_t b = 0; !st && b < SORT_BUCKETS; b++) {
                st = work_meter_add(meter, 4 * (s->ends[b] - next[b]), err);
                while (!st && next[b] < s->ends[b]) {
                        struct stack_sum sum = s->sums[next[b]];
                        size_t to = get_id_bucket(sum.id);

                        if (to != b) {
                                s->sums[next[b]] = s->sums[next[to]];
                                s->sums[next[to]] = sum;
                        }
                        next[to]++;
                }
        }
        return st;
}

static enum status sort_buckets(void *context, struct work_thread *t, struct error *err)
{
        struct bucket_sorting *s = context;
        size_t i, end;
        enum status st = ST_OK;

        while (!st && take_work_range(&s->ranges, &i, &end)) {
                size_t start = get_bucket_start(s, i), count = s->ends[i] - start;

                if (count > 1)
                        st = work_meter_sort(&t->meter, s->sums + start, count, sizeof *s->sums, compare_sum_ids, NULL,
                                             err);
        }
        return st;
}

static enum status sort_sums(struct stack_sum *sums, size_t count, struct work_meter *meter, struct error *err)
{
        _cleanup_free_ struct bucket_sorting *s = NULL;
        enum status st;

        if (count < 2)
                return ST_OK;
        if (count < SUMS_PER_SORT)
                return work_meter_sort(meter, sums, count, sizeof *sums, compare_sum_ids, NULL, err);
        s = calloc(1, sizeof *s);
        if (!s)
                return error_no_memory(err);
        s->sums = sums;
        s->ranges = (struct work_ranges){ .count = SORT_BUCKETS, .step = 1 };
        st = divide_into_buckets(s, count, meter, err);
        return st ? st : share_work(meter, count / SUMS_PER_SORT, sort_buckets, s, err);
}

void stack_sums_deinit(struct stack_sums *s)
{
        free(s->items);
        memory_release(&s->memory);
        s->items = NULL;
        s->count = 0;
}

/* Shrink the items to the sums, which stay reserved. */
static void hand_over_items(struct stack_table *t, struct stack_sum *sums, struct stack_sums *ret)
{
        size_t counted = t->capacity > LEAST_SLOTS / 2 ? t->count * sizeof *sums : 0;
        struct stack_sum *smaller = t->count ? realloc(sums, t->count * sizeof *sums) : sums;

        ret->items = smaller ? smaller : sums;
        ret->count = t->count;
        memory_shrink(&t->memory, counted);
        ret->memory = t->memory;
        t->memory.bytes = 0;
        t->items = NULL;
        stack_table_deinit(t);
}

enum status stack_table_finish(struct stack_table *t, struct work_meter *meter, struct stack_sums *ret,
                               struct error *err)
{
        struct stack_sum *sums = (struct stack_sum *)(void *)t->items;
        size_t count = t->count;
        enum status st;

        _Static_assert(sizeof(struct stack_sum) <= sizeof(struct stack_total), "sums are made in place");
        for (size_t i = 0; i < count; i++) {
                struct stack_total total = t->items[i];
                __int128 value = get_total_value(&total);
                struct stack_sum sum = { .samples = total.samples,
                                         .value = value > INT64_MAX   ? INT64_MAX
                                                  : value < INT64_MIN ? INT64_MIN
                                                                      : (int64_t)value };

                memcpy(sum.id, total.id, sizeof sum.id);
                memcpy(&sums[i], &sum, sizeof sum);
        }
        st = sort_sums(sums, count, meter, err);
        if (st)
                return st;
        hand_over_items(t, sums, ret);
        return ST_OK;
}
