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
 * to block. What depends on the object alone is written to the results in the
 * first pass, so the walk writes frames only.
 */
#include "symbolizer/lookup.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "symbolizer/block.h"
#include "symbolizer/index_object.h"
#include "symbolizer/lookup_internal.h"

#define NO_GROUP UINT32_MAX
#define PREFETCH_AHEAD 16

struct object_slot {
        const struct build_id *id;
        struct index_object object;
        enum symbol_state state; /* of keys that no block can answer; SYMBOL_RESOLVED: blocks can */
        bool damaged;
};

struct group {
        uint32_t slot, high;
        uint32_t count, place;   /* place: of its next element */
        uint32_t last;
        bool sorted;
};

/* Hash table from a hash to a small number; grows at half full. */
struct numbering {
        uint32_t *slots;         /* number + 1, 0 free */
        uint32_t mask;
};

struct lookup {
        struct symbol_view *view;
        const struct symbol_key *keys;
        size_t count;
        struct symbol_batch *batch;
        struct object_slot *objects;
        uint32_t object_count, object_capacity;
        struct group *groups;
        uint32_t group_count, group_capacity;
        struct numbering by_id, by_group;
        uint32_t *group_of;
        uint64_t *elements, *tmp;
};

/* Where the walk of one group is. */
struct walk {
        const struct object_slot *slot;
        bool have_block;
        struct block block;
        struct block_cursor cursor;
        uint64_t until;          /* the answer below holds for addresses before it */
        enum symbol_state state;
        uint32_t first_frame, frame_count;
};

void symbol_batch_deinit(struct symbol_batch *b)
{
        free(b->results);
        free(b->frames);
        free(b->scratch);
        *b = (struct symbol_batch){ 0 };
}

/* Room for count items of size in *array, whose capacity is doubled. */
static bool grow(void **array, size_t *capacity, size_t count, size_t size)
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
        bigger = realloc(*array, bytes);
        if (!bigger)
                return false;
        *array = bigger;
        *capacity = wanted;
        return true;
}

static bool grow32(void **array, uint32_t *capacity, uint32_t count, size_t size)
{
        size_t wide = *capacity;

        if (!grow(array, &wide, count, size) || wide > UINT32_MAX)
                return false;
        *capacity = (uint32_t)wide;
        return true;
}

/* ---- numbering of objects and groups */

static uint64_t object_hash(const struct lookup *l, uint32_t number)
{
        return hash64(l->objects[number].id->bytes, l->objects[number].id->size);
}

static uint64_t group_hash(const struct lookup *l, uint32_t number)
{
        uint64_t both[1] = { (uint64_t)l->groups[number].slot << 32 | l->groups[number].high };

        return hash64(both, sizeof both);
}

static bool numbering_add(struct lookup *l, struct numbering *n, uint32_t number,
                          uint64_t (*hash)(const struct lookup *, uint32_t))
{
        uint32_t first = 0;

        if (2 * ((uint64_t)number + 1) > n->mask) {
                uint64_t size = n->mask ? 2 * ((uint64_t)n->mask + 1) : 64;

                free(n->slots);
                n->slots = size <= UINT32_MAX ? calloc(size, sizeof *n->slots) : NULL;
                if (!n->slots) {
                        n->mask = 0;
                        return false;
                }
                n->mask = (uint32_t)size - 1;
        } else {
                first = number;
        }
        for (uint32_t i = first; i <= number; i++) {
                uint32_t at = (uint32_t)hash(l, i) & n->mask;

                while (n->slots[at])
                        at = (at + 1) & n->mask;
                n->slots[at] = i + 1;
        }
        return true;
}

static void open_object(struct lookup *l, struct object_slot *slot)
{
        struct index_object *o = &slot->object;
        enum status st = index_object_get(l->view->index, l->view->txn, slot->id, o, NULL);

        slot->damaged = st != ST_OK;
        if (slot->damaged)
                *o = (struct index_object){ .state = OBJECT_FAILED };
        if (slot->id->size == 0)
                slot->state = SYMBOL_NO_BUILD_ID;
        else if (o->number && o->range_count)
                slot->state = SYMBOL_RESOLVED;
        else if (o->state == OBJECT_PENDING)
                slot->state = SYMBOL_PENDING;
        else if (o->state == OBJECT_FAILED)
                slot->state = SYMBOL_FAILED;
        else
                slot->state = SYMBOL_NO_DEBUGINFO;
}

static bool object_number(struct lookup *l, const struct build_id *id, uint32_t *ret)
{
        static const struct build_id none;

        if (!id)
                id = &none;
        if (l->by_id.mask) {
                uint32_t at = (uint32_t)hash64(id->bytes, id->size) & l->by_id.mask;

                for (; l->by_id.slots[at]; at = (at + 1) & l->by_id.mask) {
                        if (build_id_equal(l->objects[l->by_id.slots[at] - 1].id, id)) {
                                *ret = l->by_id.slots[at] - 1;
                                return true;
                        }
                }
        }
        if (!grow32((void **)&l->objects, &l->object_capacity, l->object_count + 1, sizeof *l->objects))
                return false;
        l->objects[l->object_count] = (struct object_slot){ .id = id };
        open_object(l, &l->objects[l->object_count]);
        *ret = l->object_count++;
        return numbering_add(l, &l->by_id, *ret, object_hash);
}

static bool group_number(struct lookup *l, uint32_t slot, uint32_t high, uint32_t *ret)
{
        uint64_t both[1] = { (uint64_t)slot << 32 | high };

        if (l->by_group.mask) {
                uint32_t at = (uint32_t)hash64(both, sizeof both) & l->by_group.mask;

                for (; l->by_group.slots[at]; at = (at + 1) & l->by_group.mask) {
                        const struct group *g = &l->groups[l->by_group.slots[at] - 1];

                        if (g->slot == slot && g->high == high) {
                                *ret = l->by_group.slots[at] - 1;
                                return true;
                        }
                }
        }
        if (!grow32((void **)&l->groups, &l->group_capacity, l->group_count + 1, sizeof *l->groups))
                return false;
        l->groups[l->group_count] = (struct group){ .slot = slot, .high = high, .sorted = true };
        *ret = l->group_count++;
        return numbering_add(l, &l->by_group, *ret, group_hash);
}

/* ---- first pass: what the object says, and which group a key belongs to */

static bool assign(struct lookup *l)
{
        const struct build_id *id = NULL;
        uint32_t number = 0, group = NO_GROUP;
        bool first = true;

        for (size_t i = 0; i < l->count; i++) {
                const struct symbol_key *key = &l->keys[i];
                struct symbol_result *result = &l->batch->results[i];
                const struct object_slot *slot;
                struct group *g;

                if (first || key->build_id != id) {
                        if (!object_number(l, key->build_id, &number))
                                return false;
                        id = key->build_id;
                        first = false;
                }
                slot = &l->objects[number];
                *result = (struct symbol_result){
                        .state = slot->state,
                        .quality = slot->object.quality,
                        .generation = slot->object.number,
                        .address = key->address,
                };
                l->batch->damaged_count += slot->damaged;
                l->group_of[i] = NO_GROUP;
                if (key->is_file_offset && !index_object_translate(&slot->object, key->address, &result->address)) {
                        if (slot->state == SYMBOL_RESOLVED)
                                result->state = SYMBOL_OUTSIDE;
                        continue;
                }
                if (slot->state != SYMBOL_RESOLVED)
                        continue;
                if (group == NO_GROUP || l->groups[group].slot != number ||
                    l->groups[group].high != result->address >> 32)
                        if (!group_number(l, number, (uint32_t)(result->address >> 32), &group))
                                return false;
                g = &l->groups[group];
                g->sorted &= (uint32_t)result->address >= g->last;
                g->last = (uint32_t)result->address;
                g->count++;
                l->group_of[i] = group;
        }
        return true;
}

/* Second pass: the elements of each group, one group after the other. */
static void scatter(struct lookup *l)
{
        uint32_t place = 0;

        for (uint32_t i = 0; i < l->group_count; i++) {
                l->groups[i].place = place;
                place += l->groups[i].count;
        }
        for (size_t i = 0; i < l->count; i++)
                if (l->group_of[i] != NO_GROUP)
                        l->elements[l->groups[l->group_of[i]].place++] =
                                l->batch->results[i].address << 32 | (uint32_t)i;
}

/* ---- the walk */

static void answer(struct walk *w, enum symbol_state state, uint64_t until)
{
        w->state = state;
        w->until = until;
        w->first_frame = w->frame_count = 0;
}

/* Move the cursor to the block that ends at or after address: the next one, most often. */
static int find_block(struct lookup *l, struct walk *w, uint64_t address, MDB_val *key, MDB_val *value)
{
        uint32_t object = w->slot->object.number;
        struct block_key wanted;

        if (w->have_block) {
                int rc = mdb_cursor_get(l->view->ranges, key, value, MDB_NEXT);

                if (rc || key->mv_size != BLOCK_KEY_BYTES || block_key_object(key->mv_data) != object ||
                    block_key_last(key->mv_data) >= address)
                        return rc;
        }
        wanted = block_key_make(object, address);
        *key = (MDB_val){ sizeof wanted.bytes, wanted.bytes };
        return mdb_cursor_get(l->view->ranges, key, value, MDB_SET_RANGE);
}

/* Open the block for address, or answer what it means that there is none. False on an LMDB error. */
static bool enter_block(struct lookup *l, struct walk *w, uint64_t address, int *rc)
{
        MDB_val key, value;

        *rc = find_block(l, w, address, &key, &value);
        w->have_block = false;
        if (*rc == MDB_NOTFOUND ||
            (*rc == 0 && (key.mv_size != BLOCK_KEY_BYTES || block_key_object(key.mv_data) != w->slot->object.number))) {
                answer(w, SYMBOL_OUTSIDE, UINT64_MAX);
                return true;
        }
        if (*rc)
                return false;
        if (block_open(&w->block, key.mv_data, value.mv_data, value.mv_size, NULL)) {
                answer(w, SYMBOL_FAILED, block_key_last(key.mv_data) + 1);
                return true;
        }
        w->have_block = true;
        w->cursor = (struct block_cursor){ 0 };
        return true;
}

/* Answer for the row of an open block that holds address. False without memory for its frames. */
static bool enter_row(struct lookup *l, struct walk *w, uint64_t address)
{
        struct symbol_batch *b = l->batch;
        uint32_t row, count;
        uint64_t end;

        if (!grow((void **)&b->frames, &b->frame_capacity, b->frame_count + w->block.node_count + 1,
                  sizeof *b->frames))
                return false;
        if (block_seek(&w->block, &w->cursor, address, &row, &end) ||
            block_frames(&w->block, row, b->frames + b->frame_count, &count)) {
                w->have_block = false;
                answer(w, SYMBOL_FAILED, w->block.last + 1);
                return true;
        }
        answer(w, count ? SYMBOL_RESOLVED : SYMBOL_OUTSIDE, end);
        w->first_frame = (uint32_t)b->frame_count;
        w->frame_count = count;
        b->frame_count += count;
        return b->frame_count <= UINT32_MAX;
}

/* Make w's answer the one for address, which is not below the last one. */
static bool advance(struct lookup *l, struct walk *w, uint64_t address, int *rc)
{
        if (!w->have_block || address > w->block.last) {
                if (!enter_block(l, w, address, rc))
                        return false;
                if (!w->have_block)
                        return true;
        }
        if (address < w->block.base) {
                answer(w, SYMBOL_OUTSIDE, w->block.base);
                return true;
        }
        return enter_row(l, w, address);
}

static enum status walk_group(struct lookup *l, const struct group *g, const uint64_t *elements, struct error *err)
{
        struct walk w = { .slot = &l->objects[g->slot] };
        uint64_t high = (uint64_t)g->high << 32;
        int rc = 0;

        for (uint32_t i = 0; i < g->count; i++) {
                uint64_t address = high | elements[i] >> 32;
                struct symbol_result *result = &l->batch->results[(uint32_t)elements[i]];

                /* Answers go to places in no order: have the line there when it is written. */
                if (i + PREFETCH_AHEAD < g->count)
                        __builtin_prefetch(&l->batch->results[(uint32_t)elements[i + PREFETCH_AHEAD]], 1);
                if (address >= w.until && !advance(l, &w, address, &rc))
                        return rc ? index_error(err, l->view->index, rc, "cannot read the index")
                                  : error_no_memory(err);
                result->state = w.state;
                result->first_frame = w.first_frame;
                result->frame_count = w.frame_count;
                l->batch->damaged_count += w.state == SYMBOL_FAILED;
        }
        return ST_OK;
}

static enum status look_up(struct lookup *l, struct error *err)
{
        uint64_t *elements = l->elements;

        if (!assign(l))
                return error_no_memory(err);
        scatter(l);
        for (uint32_t i = 0; i < l->group_count; i++) {
                const struct group *g = &l->groups[i];
                enum status st;

                if (!g->sorted)
                        lookup_sort(elements, l->tmp, g->count);
                st = walk_group(l, g, elements, err);
                if (st)
                        return st;
                elements += g->count;
        }
        return ST_OK;
}

static bool make_room(struct lookup *l)
{
        struct symbol_batch *b = l->batch;
        size_t element_bytes = l->count * sizeof *l->elements;

        b->result_count = b->frame_count = b->damaged_count = 0;
        if (!grow(&b->scratch, &b->scratch_bytes, 2 * element_bytes + l->count * sizeof *l->group_of, 1) ||
            !grow((void **)&b->results, &b->result_capacity, l->count, sizeof *b->results))
                return false;
        l->elements = b->scratch;
        l->tmp = l->elements + l->count;
        l->group_of = (uint32_t *)(l->tmp + l->count);
        b->result_count = l->count;
        return true;
}

enum status symbol_view_lookup(struct symbol_view *view, const struct symbol_key *keys, size_t count,
                               struct symbol_batch *batch, struct error *err)
{
        struct lookup l = { .view = view, .keys = keys, .count = count, .batch = batch };
        enum status st;

        if (count >= UINT32_MAX)
                return error_set(err, ST_TOO_BIG, "a batch of %zu keys is larger than %u", count, UINT32_MAX - 1);
        st = make_room(&l) ? look_up(&l, err) : error_no_memory(err);
        free(l.objects);
        free(l.groups);
        free(l.by_id.slots);
        free(l.by_group.slots);
        return st;
}
