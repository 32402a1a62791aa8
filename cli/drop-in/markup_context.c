/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/drop-in/markup_context.h"

#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/memory/array.h"

void markup_context_clear(struct markup_context *c)
{
        for (size_t i = 0; i < c->module_count; i++)
                free(c->modules[i].name);
        free(c->modules);
        free(c->mmaps);
        *c = (struct markup_context){ .modules = NULL };
}

size_t markup_context_find_module(const struct markup_context *c, uint64_t id)
{
        size_t i = 0;

        while (i < c->module_count && c->modules[i].id != id)
                i++;
        return i;
}

enum status markup_context_add_module(struct markup_context *c, uint64_t id, const struct markup_span *name,
                                      const struct build_id *build_id, struct error *err)
{
        struct markup_module m = { .id = id, .build_id = *build_id };

        if (c->module_count >= LIMIT_MARKUP_MODULES)
                return error_set(err, ST_TOO_BIG, "the log has over %d modules", LIMIT_MARKUP_MODULES);
        if (!array_reserve(&c->modules, &c->module_capacity, c->module_count))
                return error_no_memory(err);
        m.name = strndup(name->data, name->size);
        if (!m.name)
                return error_no_memory(err);
        c->modules[c->module_count++] = m;
        return ST_OK;
}

/* The number of mmaps that start at or before an address. */
static size_t count_mmaps_before(const struct markup_context *c, uint64_t address)
{
        size_t low = 0, high = c->mmap_count;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (c->mmaps[middle].address <= address)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

const struct markup_mmap *markup_context_at(const struct markup_context *c, uint64_t address)
{
        size_t n = count_mmaps_before(c, address);
        const struct markup_mmap *m = n ? &c->mmaps[n - 1] : NULL;

        return m && address - m->address < m->size ? m : NULL;
}

const struct markup_mmap *markup_context_overlap(const struct markup_context *c, const struct markup_mmap *m)
{
        size_t n = count_mmaps_before(c, m->address);

        if (n < c->mmap_count && c->mmaps[n].address - m->address < m->size)
                return &c->mmaps[n];
        return markup_context_at(c, m->address);
}

enum status markup_context_add_mmap(struct markup_context *c, const struct markup_mmap *m, struct error *err)
{
        size_t n = count_mmaps_before(c, m->address);

        if (c->mmap_count >= LIMIT_MARKUP_MMAPS)
                return error_set(err, ST_TOO_BIG, "the log has over %d mappings", LIMIT_MARKUP_MMAPS);
        if (!array_reserve(&c->mmaps, &c->mmap_capacity, c->mmap_count))
                return error_no_memory(err);
        memmove(c->mmaps + n + 1, c->mmaps + n, (c->mmap_count - n) * sizeof *c->mmaps);
        c->mmaps[n] = *m;
        c->mmap_count++;
        return ST_OK;
}
