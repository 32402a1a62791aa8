/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/sources/data_pieces.h"

static bool get_section_piece(const struct elf_image *img, const struct elf_section *s, struct data_piece *ret)
{
        if (!(s->flags & SHF_ALLOC) || (s->flags & SHF_EXECINSTR) || !elf_section_has_content(s) ||
            elf_section_raw(img, s, &ret->bytes, &ret->size, NULL))
                return false;
        ret->address = s->address;
        ret->writable = s->flags & SHF_WRITE;
        return true;
}

static bool get_segment_piece(const struct elf_image *img, const struct elf_segment *g, struct data_piece *ret)
{
        if (g->type != PT_LOAD || (g->flags & PF_X) || !elf_image_bytes_at(img, g->address, g->file_size, &ret->bytes))
                return false;
        ret->address = g->address;
        ret->size = g->file_size;
        ret->writable = g->flags & PF_W;
        return true;
}

bool next_data_piece(const struct elf_image *img, size_t *cursor, struct data_piece *ret)
{
        while (*cursor < img->section_count)
                if (get_section_piece(img, &img->sections[(*cursor)++], ret))
                        return true;
        while (!img->section_count && *cursor < img->segment_count)
                if (get_segment_piece(img, &img->segments[(*cursor)++], ret))
                        return true;
        return false;
}

bool read_image_bytes(const struct elf_image *img, uint64_t address, uint64_t n, const uint8_t **ret)
{
        struct data_piece p;
        size_t cursor = 0;

        while (next_data_piece(img, &cursor, &p)) {
                if (address >= p.address && address - p.address <= p.size && n <= p.size - (address - p.address)) {
                        *ret = p.bytes + (address - p.address);
                        return true;
                }
        }
        return false;
}
