/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/processes/moved_text.h"

#include <stdlib.h>

#include "common/cleanup.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "common/search.h"

#define PAGE UINT64_C(4096)

/* The mappings and objects after the splits. */
struct pieces {
        struct proc_mapping *mappings;
        const struct object **objects;
        size_t count, mapping_capacity, object_capacity;
};

static bool append_piece(struct pieces *to, const struct proc_mapping *m, const struct object *o)
{
        if (to->count == LIMIT_AGENT_MAPPINGS || !array_reserve(&to->mappings, &to->mapping_capacity, to->count) ||
            !array_reserve(&to->objects, &to->object_capacity, to->count))
                return false;
        to->mappings[to->count] = *m;
        to->objects[to->count++] = o;
        return true;
}

/* The part [start, end) of a mapping. */
static struct proc_mapping cut_mapping(const struct proc_mapping *m, uint64_t start, uint64_t end)
{
        struct proc_mapping ret = *m;

        ret.file_offset += m->inode ? start - m->start : 0;
        ret.start = start;
        ret.end = end;
        return ret;
}

/* The part of m in an executable segment of the object that `of` maps, as a mapping of its file. */
static bool find_part_of_file(const struct proc_mapping *m, const struct proc_mapping *of, const struct object *o,
                              struct proc_mapping *ret)
{
        uint64_t address;

        if (!object_find_mapped_address(o, of->file_offset, of->executable, &address))
                return false;
        for (size_t i = 0; i < o->segment_count; i++) {
                const struct load_segment *s = &o->segments[i];
                uint64_t first = s->address & ~(PAGE - 1), before = s->address - first;
                uint64_t start = first - address + of->start, end; /* modulo 2^64, as the kernel computes it */

                if (!s->executable || s->offset < before ||
                    __builtin_add_overflow(start, (before + s->file_size + PAGE - 1) & ~(PAGE - 1), &end) ||
                    start >= m->end || end <= m->start)
                        continue;
                *ret = *of;
                ret->executable = true;
                ret->start = m->start > start ? m->start : start;
                ret->end = m->end < end ? m->end : end;
                ret->file_offset = s->offset - before + (ret->start - start);
                return true;
        }
        return false;
}

/* The nearest neighbors before and after m decide. */
static const struct object *find_file_of_code(const struct proc_maps *maps, const struct proc_mapping *m,
                                              find_object_fn *find, void *context, struct proc_mapping *ret)
{
        size_t after = find_lower_bound(i, 0, maps->neighbor_count, maps->neighbors[i].start < m->start);

        for (size_t i = after ? after - 1 : 0; i <= after && i < maps->neighbor_count; i++) {
                const struct object *o = find(context, &maps->neighbors[i]);

                if (o && find_part_of_file(m, &maps->neighbors[i], o, ret))
                        return o;
        }
        return NULL;
}

static bool append_code(struct pieces *to, const struct proc_maps *maps, const struct proc_mapping *m,
                        find_object_fn *find, void *context)
{
        struct proc_mapping part, rest;
        const struct object *o = find_file_of_code(maps, m, find, context, &part);

        if (!o)
                return append_piece(to, m, NULL);
        rest = cut_mapping(m, m->start, part.start);
        if (rest.start < rest.end && !append_piece(to, &rest, NULL))
                return false;
        rest = cut_mapping(m, part.end, m->end);
        return append_piece(to, &part, o) && (rest.start == rest.end || append_piece(to, &rest, NULL));
}

void moved_text_assign(struct proc_maps *maps, const struct object ***objects, find_object_fn *find, void *context)
{
        struct pieces to = { 0 };
        bool complete = true;

        if (!maps->neighbor_count)
                return;
        for (size_t i = 0; i < maps->count && complete; i++)
                complete = (*objects)[i] ? append_piece(&to, &maps->items[i], (*objects)[i])
                                         : append_code(&to, maps, &maps->items[i], find, context);
        if (complete) {
                free(maps->items);
                free(*objects);
                maps->items = steal_ptr(to.mappings);
                *objects = steal_ptr(to.objects);
                maps->count = to.count;
        }
        free(to.mappings);
        free(to.objects);
}
