/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/extraction/prelink_bias.h"

#include <string.h>

#define COMPARED_SECTIONS 64 /* of code; linked files have about five */
#define COMPARED_NAME_BYTES 64

static bool is_named_code_section(const struct elf_section *s)
{
        size_t n = elf_section_is_code(s) ? strnlen(s->name, COMPARED_NAME_BYTES) : 0;

        return n > 0 && n < COMPARED_NAME_BYTES;
}

static bool find_section_bias(const struct elf_image *runs, const struct elf_image *other, uint64_t *ret)
{
        bool found = false;
        int compared = 0;

        for (size_t i = 1; i < runs->section_count && compared < COMPARED_SECTIONS; i++) {
                const struct elf_section *a = &runs->sections[i], *b;

                if (!is_named_code_section(a))
                        continue;
                compared++;
                b = elf_image_section(other, a->name);
                if (!b || !is_named_code_section(b) || a->size != b->size)
                        continue;
                if (found && a->address - b->address != *ret) {
                        *ret = 0;
                        return true;
                }
                *ret = a->address - b->address;
                found = true;
        }
        return found;
}

static const struct elf_segment *find_code_segment(const struct elf_image *img)
{
        for (size_t i = 0; i < img->segment_count; i++)
                if (img->segments[i].type == PT_LOAD && (img->segments[i].flags & PF_X))
                        return &img->segments[i];
        return NULL;
}

uint64_t find_prelink_bias(const struct elf_image *runs, const struct elf_image *other)
{
        const struct elf_segment *a = find_code_segment(runs), *b = find_code_segment(other);
        uint64_t prelink_bias = 0;

        if (find_section_bias(runs, other, &prelink_bias))
                return prelink_bias;
        return a && b && a->memory_size == b->memory_size ? a->address - b->address : 0;
}

/* Wrapping around may change the order; settling sorts the ranges again. */
void add_prelink_bias(struct symbol_table_builder *b, struct code_map *code, uint64_t by)
{
        size_t kept = 0;

        if (!by)
                return;
        for (size_t i = 0; i < b->range_count; i++) {
                struct symbol_range r = b->ranges[i];

                r.start += by;
                r.end += by;
                if (r.start < r.end)
                        b->ranges[kept++] = r;
        }
        b->range_count = kept;
        for (size_t i = 0; i < b->position_count; i++)
                if (b->positions[i].entry != UINT64_MAX)
                        b->positions[i].entry += by;
        kept = 0;
        for (size_t i = 0; i < code->count; i++) {
                struct code_region r = { code->regions[i].start + by, code->regions[i].end + by };

                if (r.start < r.end && (kept == 0 || code->regions[kept - 1].end <= r.start))
                        code->regions[kept++] = r;
        }
        code->count = kept;
}
