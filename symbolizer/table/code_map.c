/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>

#include "common/search.h"

#include "symbolizer/table/code_map.h"

static int compare_regions(const void *a, const void *b)
{
        const struct code_region *x = a, *y = b;

        return x->start < y->start ? -1 : x->start > y->start;
}

static void add_code_region(struct code_map *m, uint64_t start, uint64_t size)
{
        uint64_t end;

        if (size == 0 || __builtin_add_overflow(start, size, &end))
                return;
        m->regions[m->count++] = (struct code_region){ start, end };
}

static void join_code_regions(struct code_map *m)
{
        size_t kept = 0;

        qsort(m->regions, m->count, sizeof *m->regions, compare_regions);
        for (size_t i = 0; i < m->count; i++) {
                if (kept && m->regions[i].start <= m->regions[kept - 1].end) {
                        if (m->regions[i].end > m->regions[kept - 1].end)
                                m->regions[kept - 1].end = m->regions[i].end;
                } else {
                        m->regions[kept++] = m->regions[i];
                }
        }
        assert(kept <= m->count);
        m->count = kept;
}

enum status code_map_from_image(const struct elf_image *img, struct code_map *ret, struct error *err)
{
        struct code_map m = { 0 };

        m.regions = calloc(img->section_count + img->segment_count + 1, sizeof *m.regions);
        if (!m.regions)
                return error_no_memory(err);
        for (size_t i = 0; i < img->section_count; i++) {
                const struct elf_section *s = &img->sections[i];

                if (elf_section_is_code(s))
                        add_code_region(&m, s->address, s->size);
        }
        for (size_t i = 0; m.count == 0 && i < img->segment_count; i++) {
                const struct elf_segment *s = &img->segments[i];

                if (s->type == PT_LOAD && (s->flags & PF_X))
                        add_code_region(&m, s->address, s->memory_size);
        }
        join_code_regions(&m);
        *ret = m;
        return ST_OK;
}

void code_map_cover_all(struct code_map *m)
{
        assert(m->regions && m->count == 0);
        add_code_region(m, 1, UINT64_MAX - 1);
}

void code_map_deinit(struct code_map *m)
{
        free(m->regions);
        *m = (struct code_map){ 0 };
}

/* The index of the first region that ends after address; count when none does. */
static size_t next_region(const struct code_map *m, uint64_t address)
{
        size_t found = find_lower_bound(i, 0, m->count, m->regions[i].end <= address);

        return found;
}

const struct code_region *code_map_find(const struct code_map *m, uint64_t address)
{
        size_t i = next_region(m, address);

        return i < m->count && m->regions[i].start <= address ? &m->regions[i] : NULL;
}
