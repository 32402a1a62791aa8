/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batch lookup: sort the keys, walk the blocks once, answer in the caller's
 * order.
 *
 * Keys are put into groups of one object and one upper half of addresses. Then
 * a key of a group is a 64-bit element, (lower half << 32 | index of the key):
 * half the memory of (address, index), sorted by at most three radix passes,
 * or by none when the keys came in order. Groups need no order among
 * themselves: each begins with one search in the B-tree and goes on from block
 * to block. Most batches have one group, whose elements are written in the
 * first pass; others are dealt out in a second one.
 *
 * Several threads take a slice of the keys each, with a read transaction of
 * their own on the same state of the index, and put their frames together in
 * the end.
 */
#include "symbolizer/lookup.h"

#include <stdlib.h>
#include <string.h>

#include "symbolizer/lookup_internal.h"
#include "symbolizer/lookup_tiles.h"

#define NO_GROUP UINT32_MAX
#define GROUP_SLOTS_KEPT 1024
#define KEYS_AHEAD 32 /* fetched before they are looked at */

void symbol_batch_deinit(struct symbol_batch *b)
{
        free(b->results);
        free(b->frames);
        free(b->scratch);
        *b = (struct symbol_batch){ 0 };
}

static bool grow32(void **array, uint32_t *capacity, uint32_t count, size_t size)
{
        size_t wide = *capacity;

        if (!lookup_grow(array, &wide, count, size) || wide > UINT32_MAX)
                return false;
        *capacity = (uint32_t)wide;
        return true;
}

/* ---- numbering of objects and groups */

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

static void open_object(struct lookup *l, struct lookup_object *slot)
{
        struct index_object *o = &slot->object;
        enum status st = index_object_find(l->view->index, l->view->txn, &slot->id, o, NULL);

        slot->damaged = st != ST_OK;
        if (slot->damaged)
                *o = (struct index_object){ .state = OBJECT_FAILED };
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

static bool object_number(struct lookup *l, const struct build_id *id, uint32_t *ret)
{
        static const struct build_id none;
        struct lookup_known *k = &l->known;
        uint32_t hash;

        if (!id)
                id = &none;
        hash = hash_table_hash(id->bytes, id->size);
        if (hash_table_find(&k->by_id, hash, equal_object, k->objects, id->bytes, id->size, ret))
                return true;
        if (hash_table_reserve(&k->by_id, NULL) ||
            !grow32((void **)&k->objects, &k->object_capacity, k->object_count + 1, sizeof *k->objects))
                return false;
        k->objects[k->object_count] = (struct lookup_object){ .id = *id };
        open_object(l, &k->objects[k->object_count]);
        *ret = k->object_count++;
        hash_table_insert(&k->by_id, hash, *ret);
        return true;
}

static bool group_number(struct lookup *l, uint32_t object, uint32_t high, uint32_t *ret)
{
        const uint32_t both[2] = { object, high };
        uint32_t hash = hash_table_hash(both, sizeof both);
        struct lookup_known *k = &l->known;

        if (hash_table_find(&k->by_group, hash, equal_group, k->groups, both, sizeof both, ret))
                return true;
        if (hash_table_reserve(&k->by_group, NULL) ||
            !grow32((void **)&k->groups, &k->group_capacity, k->group_count + 1, sizeof *k->groups))
                return false;
        k->groups[k->group_count] = (struct lookup_group){ .object = object, .high = high, .sorted = true };
        *ret = k->group_count++;
        hash_table_insert(&k->by_group, hash, *ret);
        return true;
}

/* ---- first pass: what the object says, and which group a key belongs to */

/* The second group: from now on each key's is kept. */
static void keep_groups(struct lookup *l, size_t until)
{
        if (l->known.group_count != 2)
                return;
        for (size_t i = 0; i < until; i++)
                l->group_of[i] = 0;
}

static bool assign(struct lookup *l)
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
                        if (!object_number(l, key->build_id, &number))
                                return false;
                        id = key->build_id;
                        first = false;
                }
                object = &l->known.objects[number];
                state = object->state;
                if (key->is_file_offset && !index_object_translate(&object->object, address, &address) &&
                    !index_object_holds(&object->object, address) && state == SYMBOL_RESOLVED)
                        state = index_object_has_bytes(&object->object) ? SYMBOL_NOT_IN_OBJECT : SYMBOL_OUTSIDE;
                if (state != SYMBOL_RESOLVED) {
                        l->results[i] = (struct symbol_result){ state, object->object.quality, object->object.number,
                                                                address, 0, 0 };
                        l->damaged_count += object->damaged;
                        continue;
                }
                if (group == NO_GROUP || l->known.groups[group].object != number ||
                    l->known.groups[group].high != address >> 32) {
                        uint32_t before = l->known.group_count;

                        if (!group_number(l, number, (uint32_t)(address >> 32), &group))
                                return false;
                        if (l->known.group_count > before)
                                keep_groups(l, element_count);
                }
                g = &l->known.groups[group];
                g->sorted &= (uint32_t)address >= g->last;
                g->last = (uint32_t)address;
                g->count++;
                if (l->known.group_count > 1)
                        l->group_of[element_count] = group;
                l->elements[element_count++] = address << 32 | (uint32_t)i;
        }
        l->element_count = element_count;
        return true;
}

/* Second pass: the elements of each group, one group after the other. */
static void scatter(struct lookup *l)
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

/* Groups are a batch's own; a few keep their memory for the next one. */
static void forget_groups(struct lookup_known *k)
{
        k->group_count = 0;
        if (k->by_group.slot_count <= GROUP_SLOTS_KEPT)
                hash_table_clear(&k->by_group);
        else
                hash_table_deinit(&k->by_group);
}

void lookup_known_deinit(struct lookup_known *k)
{
        free(k->objects);
        free(k->groups);
        hash_table_deinit(&k->by_id);
        hash_table_deinit(&k->by_group);
}

enum status lookup_run(struct lookup *l, struct error *err)
{
        enum status st = ST_OK;
        uint64_t *elements;

        l->known = l->view->known;
        if (!assign(l)) {
                st = error_no_memory(err);
                lookup_known_deinit(&l->known);
                l->known = (struct lookup_known){ 0 };
        } else {
                scatter(l);
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

static bool make_room(struct symbol_batch *b, size_t count)
{
        const size_t key_bytes = 2 * sizeof(uint64_t) + sizeof(struct lookup_answer) + sizeof(uint32_t);

        b->result_count = b->frame_count = b->damaged_count = 0;
        if (!lookup_grow(&b->scratch, &b->scratch_bytes, count * key_bytes, 1) ||
            !lookup_grow((void **)&b->results, &b->result_capacity, count, sizeof *b->results))
                return false;
        b->result_count = count;
        return true;
}

/* The part of a batch from key `first` on. */
struct lookup lookup_slice(struct symbol_view *view, const struct symbol_key *keys, size_t first, size_t count,
                           struct symbol_batch *batch)
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

enum status symbol_view_lookup_threads(struct symbol_view *view, const struct symbol_key *keys, size_t count,
                                       unsigned threads, struct symbol_batch *batch, struct error *err)
{
        struct lookup l;
        enum status st;

        if (count >= UINT32_MAX)
                return error_set(err, ST_TOO_BIG, "a batch of %zu keys is larger than %u", count, UINT32_MAX - 1);
        if (!make_room(batch, count))
                return error_no_memory(err);
        if (threads > count / LOOKUP_SLICE_LEAST)
                threads = (unsigned)(count / LOOKUP_SLICE_LEAST);
        if (threads > 1)
                return lookup_parallel(view, keys, threads, batch, err);
        l = lookup_slice(view, keys, 0, count, batch);
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
