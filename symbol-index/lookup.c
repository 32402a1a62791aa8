/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batch lookup: sort the keys, walk the blocks once, answer in the caller's
 * order.
 *
 * Keys are grouped by object and upper half of the address. Within a group a key is a 64-bit element, (lower half << 32
 * | index of the key): half the memory of (address, index), sorted by at most three radix passes, or none if already
 * sorted. Groups are independent: each starts with one search in the B-tree and continues from block to block. Most
 * batches have one group, whose elements are written in the first pass; several groups are separated in a second pass.
 *
 * With several threads, each answers a slice of the keys in its own read transaction on the same state of the index;
 * the frames are concatenated.
 */
#include "symbol-index/lookup.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory/huge_pages.h"
#include "symbol-index/lookup_internal.h"

/* ---- memory ---- */

/*
 * Arrays of a batch. Large ones use huge pages: answers are written in random
 * order, and with small pages most writes miss the TLB.
 */

static void *grow_huge(void *old, size_t old_bytes, size_t bytes)
{
        size_t rounded = (bytes + HUGE_PAGE_BYTES - 1) & ~(HUGE_PAGE_BYTES - 1);
        void *bigger = rounded >= bytes ? aligned_alloc(HUGE_PAGE_BYTES, rounded) : NULL;

        if (!bigger)
                return NULL;
        advise_huge_pages(bigger, rounded);
        if (old)
                memcpy(bigger, old, old_bytes);
        free(old);
        return bigger;
}

bool lookup_grow(void **array, size_t *capacity, size_t count, size_t size)
{
        size_t wanted = *capacity ? *capacity : 64, bytes;
        void *bigger;

        if (count <= *capacity)
                return true;
        while (wanted < count)
                if (__builtin_mul_overflow(wanted, 2, &wanted))
                        return false;
        if (__builtin_mul_overflow(wanted, size, &bytes))
                return false;
        bigger = bytes < 2 * HUGE_PAGE_BYTES ? realloc(*array, bytes) : grow_huge(*array, *capacity * size, bytes);
        if (!bigger)
                return false;
        *array = bigger;
        *capacity = wanted;
        return true;
}

/* ---- sorting ---- */

/*
 * Radix sort over the bits that differ: the code of one object spans 20 to 28
 * bits. Many elements are first partitioned by their highest bits into parts
 * that fit into the L1 cache; each part, or a small array, is sorted by LSD
 * radix sort.
 */

#define INSERTION_MAX 32
#define DEAL_FROM 16384 /* elements that exceed the L1 cache together with their copies */
#define DEAL_PART 512   /* average elements per part; most parts need two passes */
#define DEAL_BITS_MAX 11
#define COUNTERS 2048
#define NARROW_DIGIT 8 /* for fewer elements than WIDE_FROM: clearing 2048 counters per pass is expensive */
#define WIDE_DIGIT 11
#define WIDE_FROM 8192
#define PASSES_MAX 4 /* with NARROW_DIGIT */

static void insertion_sort(uint64_t *e, size_t count)
{
        for (size_t i = 1; i < count; i++) {
                uint64_t v = e[i];
                size_t at = i;

                for (; at > 0 && e[at - 1] > v; at--)
                        e[at] = e[at - 1];
                e[at] = v;
        }
}

/* Histograms of all digits in one pass over the elements. */
static void count_digits(const uint64_t *e, size_t count, unsigned shift, unsigned digit, unsigned passes,
                         uint32_t (*counts)[COUNTERS])
{
        uint32_t mask = (1u << digit) - 1;

        for (unsigned p = 0; p < passes; p++)
                memset(counts[p], 0, sizeof(uint32_t) << digit);
        for (size_t i = 0; i < count; i++)
                for (unsigned p = 0; p < passes; p++)
                        counts[p][e[i] >> (shift + p * digit) & mask]++;
}

/* Counting sort by one digit. places: in: the counts, out: the end of each value. */
static void sort_pass(const uint64_t *from, uint64_t *to, size_t count, unsigned shift, unsigned bits, uint32_t *places)
{
        uint32_t mask = (1u << bits) - 1, sum = 0;

        for (uint32_t d = 0; d <= mask; d++) {
                uint32_t n = places[d];

                places[d] = sum;
                sum += n;
        }
        for (size_t i = 0; i < count; i++)
                to[places[from[i] >> shift & mask]++] = from[i];
}

/* The bits of the upper halves that differ; false if none do. */
static bool find_differing_bits(const uint64_t *e, size_t count, unsigned *shift_ret, unsigned *bits_ret)
{
        uint64_t differ = 0;

        for (size_t i = 1; i < count; i++)
                differ |= e[i] ^ e[0];
        differ >>= 32;
        if (!differ)
                return false;
        *shift_ret = 32 + (unsigned)__builtin_ctzll(differ);
        *bits_ret = 96 - (unsigned)__builtin_clzll(differ) - *shift_ret;
        return true;
}

/* LSD radix sort of `from` with `spare` as buffer; returns the buffer with the result. */
static uint64_t *sort_least_first(uint64_t *from, uint64_t *spare, size_t count, unsigned shift, unsigned bits)
{
        unsigned digit = count < WIDE_FROM ? NARROW_DIGIT : WIDE_DIGIT, passes;
        uint32_t counts[PASSES_MAX][COUNTERS];
        uint64_t *to = spare;

        if (count <= INSERTION_MAX) {
                insertion_sort(from, count);
                return from;
        }
        /* Digits of equal size: fewer counters make a pass faster. The last digit may extend beyond the bits. */
        passes = (bits + digit - 1) / digit;
        digit = passes ? (bits + passes - 1) / passes : 0;
        count_digits(from, count, shift, digit, passes, counts);
        for (unsigned p = 0; p < passes; p++) {
                uint64_t *swap = from;

                sort_pass(from, to, count, shift + p * digit, digit, counts[p]);
                from = to;
                to = swap;
        }
        return from;
}

/* Partition by the highest bits, then sort each part. */
static void sort_parts(uint64_t *elements, uint64_t *tmp, size_t count, unsigned shift, unsigned bits)
{
        uint32_t ends[1][COUNTERS], begin = 0;
        unsigned deal = 1;

        while (deal < DEAL_BITS_MAX && deal < bits && count >> deal > DEAL_PART)
                deal++;
        bits -= deal;
        count_digits(elements, count, shift + bits, deal, 1, ends);
        sort_pass(elements, tmp, count, shift + bits, deal, ends[0]);
        for (uint32_t part = 0; part < 1u << deal; part++) {
                size_t n = ends[0][part] - begin;
                uint64_t *sorted = sort_least_first(tmp + begin, elements + begin, n, shift, bits);

                if (sorted != elements + begin)
                        memcpy(elements + begin, sorted, n * sizeof *sorted);
                begin = ends[0][part];
        }
}

void lookup_sort(uint64_t *elements, uint64_t *tmp, size_t count)
{
        unsigned shift, bits;
        uint64_t *sorted;

        if (!find_differing_bits(elements, count, &shift, &bits))
                return;
        if (count >= DEAL_FROM) {
                sort_parts(elements, tmp, count, shift, bits);
                return;
        }
        sorted = sort_least_first(elements, tmp, count, shift, bits);
        if (sorted != elements)
                memcpy(elements, sorted, count * sizeof *sorted);
}

/* ---- one thread ---- */

#define NO_GROUP UINT32_MAX
#define GROUP_SLOTS_KEPT 1024
#define KEYS_AHEAD 32 /* prefetch distance */

void symbol_batch_deinit(struct symbol_batch *b)
{
        free(b->results);
        free(b->frames);
        free(b->scratch);
        *b = (struct symbol_batch){ 0 };
}

static bool grow_array32(void **array, uint32_t *capacity, uint32_t count, size_t size)
{
        size_t wide = *capacity;

        if (!lookup_grow(array, &wide, count, size) || wide > UINT32_MAX)
                return false;
        *capacity = (uint32_t)wide;
        return true;
}

/* -- numbers of objects and groups -- */

static bool equal_object(const void *context, uint32_t number, const void *key, size_t size)
{
        const struct build_id *id = &((const struct lookup_object *)context)[number].id;

        return id->size == size && memcmp(id->bytes, key, size) == 0;
}

static bool equal_group(const void *context, uint32_t number, const void *key, size_t size)
{
        const struct lookup_group *g = &((const struct lookup_group *)context)[number];
        const uint32_t *both = key;

        (void)size;
        return g->object == both[0] && g->high == both[1];
}

static void resolve_object_state(struct lookup *l, struct lookup_object *slot)
{
        struct index_object *o = &slot->object;
        enum status st = index_object_find(l->view->index, l->view->txn, &slot->id, o, NULL);

        slot->damaged = st != ST_OK;
        if (slot->damaged)
                *o = (struct index_object){ .state = OBJECT_FAILED };
        slot->kernel_base = index_object_kernel_base(o);
        if (slot->id.size == 0)
                slot->state = SYMBOL_NO_BUILD_ID;
        else if (o->number && o->range_count)
                slot->state = SYMBOL_RESOLVED;
        else if (o->state == OBJECT_PENDING)
                slot->state = SYMBOL_PENDING;
        else if (o->state == OBJECT_FAILED)
                slot->state = SYMBOL_FAILED;
        else if (o->state == OBJECT_INDEXED)
                slot->state = SYMBOL_STRIPPED;
        else
                slot->state = SYMBOL_NO_DEBUGINFO;
}

static bool number_object(struct lookup *l, const struct build_id *id, uint32_t *ret)
{
        static const struct build_id none;
        struct lookup_cache *c = &l->known;
        uint32_t hash;

        if (!id)
                id = &none;
        hash = hash_table_hash(id->bytes, id->size);
        if (hash_table_find(&c->by_id, hash, equal_object, c->objects, id->bytes, id->size, ret))
                return true;
        if (hash_table_reserve(&c->by_id, NULL) ||
            !grow_array32((void **)&c->objects, &c->object_capacity, c->object_count + 1, sizeof *c->objects))
                return false;
        c->objects[c->object_count] = (struct lookup_object){ .id = *id };
        resolve_object_state(l, &c->objects[c->object_count]);
        *ret = c->object_count++;
        hash_table_insert(&c->by_id, hash, *ret);
        return true;
}

static bool number_group(struct lookup *l, uint32_t object, uint32_t high, uint32_t *ret)
{
        const uint32_t both[2] = { object, high };
        uint32_t hash = hash_table_hash(both, sizeof both);
        struct lookup_cache *c = &l->known;

        if (hash_table_find(&c->by_group, hash, equal_group, c->groups, both, sizeof both, ret))
                return true;
        if (hash_table_reserve(&c->by_group, NULL) ||
            !grow_array32((void **)&c->groups, &c->group_capacity, c->group_count + 1, sizeof *c->groups))
                return false;
        c->groups[c->group_count] = (struct lookup_group){ .object = object, .high = high, .sorted = true };
        *ret = c->group_count++;
        hash_table_insert(&c->by_group, hash, *ret);
        return true;
}

/* -- passes -- */

/* When the second group appears: all earlier keys belong to group 0. */
static void record_first_group(struct lookup *l, size_t until)
{
        if (l->known.group_count != 2)
                return;
        for (size_t i = 0; i < until; i++)
                l->group_of[i] = 0;
}

static bool assign_groups(struct lookup *l)
{
        const struct build_id *id = NULL;
        uint32_t number = 0, group = NO_GROUP;
        size_t element_count = 0;
        bool first = true;

        for (size_t i = 0; i < l->count; i++) {
                const struct symbol_key *key = &l->keys[i];
                const struct lookup_object *object;
                uint64_t address = key->address;
                enum symbol_state state;
                struct lookup_group *g;

                if (i + KEYS_AHEAD < l->count)
                        __builtin_prefetch(key + KEYS_AHEAD);
                if (first || key->build_id != id) {
                        if (!number_object(l, key->build_id, &number))
                                return false;
                        id = key->build_id;
                        first = false;
                }
                object = &l->known.objects[number];
                state = object->state;
                if (object->kernel_base && !key->is_file_offset && address < KERNEL_ADDRESSES &&
                    address <= UINT64_MAX - object->kernel_base)
                        address += object->kernel_base;
                if (key->is_file_offset && !index_object_translate(&object->object, address, &address) &&
                    !index_object_holds(&object->object, address) && state == SYMBOL_RESOLVED)
                        state = index_object_has_bytes(&object->object) ? SYMBOL_NOT_IN_OBJECT : SYMBOL_OUTSIDE;
                if (state != SYMBOL_RESOLVED) {
                        l->results[i] = (struct symbol_result){
                                state, object->object.quality, object->object.number, address, 0, 0
                        };
                        l->damaged_count += object->damaged;
                        continue;
                }
                if (group == NO_GROUP || l->known.groups[group].object != number ||
                    l->known.groups[group].high != address >> 32) {
                        uint32_t before = l->known.group_count;

                        if (!number_group(l, number, (uint32_t)(address >> 32), &group))
                                return false;
                        if (l->known.group_count > before)
                                record_first_group(l, element_count);
                }
                g = &l->known.groups[group];
                g->sorted &= (uint32_t)address >= g->last;
                g->last = (uint32_t)address;
                g->count++;
                if (l->known.group_count > 1)
                        l->group_of[element_count] = group;
                l->elements[element_count++] = address << 32 | (uint32_t)i;
        }
        assert(element_count <= l->count);
        l->element_count = element_count;
        return true;
}

bool is_offset_translated(const struct symbol_result *r)
{
        return r->generation && r->state != SYMBOL_NOT_IN_OBJECT && r->state != SYMBOL_OUTSIDE;
}

/* Second pass: the elements of each group, group by group. */
static void scatter_elements(struct lookup *l)
{
        uint64_t *swap = l->elements;
        uint32_t place = 0;

        if (l->known.group_count < 2)
                return;
        for (uint32_t i = 0; i < l->known.group_count; i++) {
                l->known.groups[i].place = place;
                place += l->known.groups[i].count;
        }
        for (size_t i = 0; i < l->element_count; i++)
                l->tmp[l->known.groups[l->group_of[i]].place++] = l->elements[i];
        l->elements = l->tmp;
        l->tmp = swap;
}

/* Clear the groups of a batch; small tables keep their memory. */
static void forget_groups(struct lookup_cache *c)
{
        c->group_count = 0;
        if (c->by_group.slot_count <= GROUP_SLOTS_KEPT)
                hash_table_clear(&c->by_group);
        else
                hash_table_deinit(&c->by_group);
}

void lookup_cache_deinit(struct lookup_cache *c)
{
        free(c->objects);
        free(c->groups);
        hash_table_deinit(&c->by_id);
        hash_table_deinit(&c->by_group);
}

/* Answer the keys of a lookup. */
static enum status lookup_run(struct lookup *l, struct error *err)
{
        enum status st = ST_OK;
        uint64_t *elements;

        l->known = l->view->known;
        if (!assign_groups(l)) {
                st = error_no_memory(err);
                lookup_cache_deinit(&l->known);
                l->known = (struct lookup_cache){ 0 };
        } else {
                scatter_elements(l);
                elements = l->elements;
                for (uint32_t i = 0; i < l->known.group_count && !st; i++) {
                        const struct lookup_group *g = &l->known.groups[i];

                        if (!g->sorted)
                                lookup_sort(elements, l->tmp, g->count);
                        st = lookup_answers_begin(l, g) ? lookup_walk(l, g, elements, err) : error_no_memory(err);
                        lookup_answers_end(l);
                        elements += g->count;
                }
        }
        forget_groups(&l->known);
        l->view->known = l->known;
        return st;
}

static bool reserve_batch(struct symbol_batch *b, size_t count)
{
        const size_t key_bytes = 2 * sizeof(uint64_t) + sizeof(struct lookup_answer) + sizeof(uint32_t);

        b->result_count = b->frame_count = b->damaged_count = 0;
        if (!lookup_grow(&b->scratch, &b->scratch_bytes, count * key_bytes, 1) ||
            !lookup_grow((void **)&b->results, &b->result_capacity, count, sizeof *b->results))
                return false;
        b->result_count = count;
        return true;
}

/* The part of a batch starting at key `first`. */
static struct lookup make_lookup_slice(struct symbol_view *view, const struct symbol_key *keys, size_t first,
                                       size_t count, struct symbol_batch *batch)
{
        uint64_t *elements = batch->scratch;
        struct lookup_answer *answers = (struct lookup_answer *)(elements + 2 * batch->result_count);

        return (struct lookup){ .view = view,
                                .keys = keys + first,
                                .count = count,
                                .results = batch->results + first,
                                .elements = elements + first,
                                .tmp = elements + batch->result_count + first,
                                .answers = answers + first,
                                .group_of = (uint32_t *)(answers + batch->result_count) + first };
}

/* ---- several threads ---- */

/*
 * A batch with several threads: each answers a slice of the keys in its own view, since an LMDB transaction belongs to
 * one thread. If a writer committed in between, the slice's transaction sees a different state than the caller's; the
 * calling thread then answers that slice.
 */

#define THREADS_MAX 256

struct parallel_slice {
        struct lookup lookup;
        struct symbol_view *of;     /* the caller's view */
        struct symbol_batch *batch; /* receives the frames of all slices, once their number is known */
        size_t first_frame;
        bool started, other_state;
        pthread_t thread;
        enum status st;
        struct error err;
};

static void *answer_slice(void *arg)
{
        struct parallel_slice *s = arg;
        struct symbol_view *view;

        s->st = symbol_view_begin(s->of->index, &view, &s->err);
        if (s->st)
                return NULL;
        s->other_state = mdb_txn_id(view->txn) != mdb_txn_id(s->of->txn);
        if (!s->other_state) {
                s->lookup.view = view;
                s->st = lookup_run(&s->lookup, &s->err);
        }
        symbol_view_end(view);
        return NULL;
}

static void *move_frames(void *arg)
{
        struct parallel_slice *s = arg;

        if (s->lookup.frame_count)
                memcpy(s->batch->frames + s->first_frame, s->lookup.frames,
                       s->lookup.frame_count * sizeof *s->lookup.frames);
        for (size_t i = 0; i < s->lookup.count; i++)
                if (s->lookup.results[i].frame_count)
                        s->lookup.results[i].first_frame += (uint32_t)s->first_frame;
        return NULL;
}

/* Run a step on all slices in parallel; the first, and those without a thread, on the calling thread. */
static void run_slices(struct parallel_slice *slices, unsigned count, void *(*step)(void *))
{
        for (unsigned i = 1; i < count; i++)
                slices[i].started = pthread_create(&slices[i].thread, NULL, step, &slices[i]) == 0;
        for (unsigned i = 0; i < count; i++)
                if (!slices[i].started)
                        step(&slices[i]);
        for (unsigned i = 1; i < count; i++)
                if (slices[i].started)
                        pthread_join(slices[i].thread, NULL);
}

static enum status join_slices(struct parallel_slice *slices, unsigned count, struct symbol_batch *batch,
                               struct error *err)
{
        size_t total = 0;

        for (unsigned i = 0; i < count; i++) {
                slices[i].first_frame = total;
                total += slices[i].lookup.frame_count;
                batch->damaged_count += slices[i].lookup.damaged_count;
        }
        if (total > UINT32_MAX)
                return error_set(err, ST_TOO_BIG, "a batch has more than %u frames", UINT32_MAX);
        if (!lookup_grow((void **)&batch->frames, &batch->frame_capacity, total, sizeof *batch->frames))
                return error_no_memory(err);
        batch->frame_count = total;
        run_slices(slices, count, move_frames);
        return ST_OK;
}

static enum status lookup_parallel(struct symbol_view *view, const struct symbol_key *keys, unsigned threads,
                                   struct symbol_batch *batch, struct error *err)
{
        unsigned count = threads < THREADS_MAX ? threads : THREADS_MAX;
        struct parallel_slice *slices = calloc(count, sizeof *slices);
        size_t keys_each = batch->result_count / count;
        enum status st = ST_OK;

        assert(count > 1);
        if (!slices)
                return error_no_memory(err);
        for (unsigned i = 0; i < count; i++) {
                size_t first = i * keys_each, left = batch->result_count - first;

                slices[i].of = view;
                slices[i].batch = batch;
                slices[i].lookup = make_lookup_slice(view, keys, first, i + 1 < count ? keys_each : left, batch);
        }
        run_slices(slices, count, answer_slice);
        for (unsigned i = 0; i < count && !st; i++) {
                if (!slices[i].st && slices[i].other_state)
                        slices[i].st = lookup_run(&slices[i].lookup, &slices[i].err);
                st = slices[i].st;
                if (st && err)
                        *err = slices[i].err;
        }
        if (!st)
                st = join_slices(slices, count, batch, err);
        for (unsigned i = 0; i < count; i++)
                free(slices[i].lookup.frames);
        free(slices);
        return st;
}

/* ---- public functions ---- */

#define SLICE_LEAST 4096 /* minimum keys per thread */

enum status symbol_view_lookup_threads(struct symbol_view *view, const struct symbol_key *keys, size_t count,
                                       unsigned threads, struct symbol_batch *batch, struct error *err)
{
        struct lookup l;
        enum status st;

        if (count >= UINT32_MAX)
                return error_set(err, ST_TOO_BIG, "a batch of %zu keys is larger than %u", count, UINT32_MAX - 1);
        if (!reserve_batch(batch, count))
                return error_no_memory(err);
        if (threads > count / SLICE_LEAST)
                threads = (unsigned)(count / SLICE_LEAST);
        if (threads > 1)
                return lookup_parallel(view, keys, threads, batch, err);
        l = make_lookup_slice(view, keys, 0, count, batch);
        l.frames = batch->frames;
        l.frame_capacity = batch->frame_capacity;
        st = lookup_run(&l, err);
        batch->frames = l.frames;
        batch->frame_count = l.frame_count;
        batch->frame_capacity = l.frame_capacity;
        batch->damaged_count = l.damaged_count;
        return st;
}

enum status symbol_view_lookup(struct symbol_view *view, const struct symbol_key *keys, size_t count,
                               struct symbol_batch *batch, struct error *err)
{
        return symbol_view_lookup_threads(view, keys, count, 1, batch, err);
}
