/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/elf_maker.h"

#include <string.h>

void elf_make_word(const struct elf_maker *m, struct buf *to, uint64_t v, unsigned bytes)
{
        for (unsigned i = 0; i < bytes; i++)
                buf_append_u8(to, (uint8_t)(v >> 8 * (m->big_endian ? bytes - 1 - i : i)));
}

static void put_word(const struct elf_maker *m, struct buf *to, uint64_t v)
{
        elf_make_word(m, to, v, m->is_64 ? 8 : 4);
}

static void put_padding(struct buf *to, size_t alignment)
{
        while (to->size % alignment)
                buf_append_u8(to, 0);
}

void elf_make_note(const struct elf_maker *m, struct buf *to, const char *name, size_t name_size, uint32_t type,
                   const void *desc, size_t desc_size)
{
        elf_make_word(m, to, name_size, 4);
        elf_make_word(m, to, desc_size, 4);
        elf_make_word(m, to, type, 4);
        buf_append(to, name, name_size);
        put_padding(to, 4);
        buf_append(to, desc, desc_size);
        put_padding(to, 4);
}

static void section_header(const struct elf_maker *m, struct buf *to, uint32_t name, const struct elf_maker_section *s,
                           uint64_t offset)
{
        elf_make_word(m, to, name, 4);
        elf_make_word(m, to, s->type, 4);
        put_word(m, to, s->flags);
        put_word(m, to, s->address);
        put_word(m, to, s->claimed_offset ? s->claimed_offset : offset);
        put_word(m, to, s->claimed_size ? s->claimed_size : s->size);
        elf_make_word(m, to, s->link, 4);
        elf_make_word(m, to, s->info, 4);
        put_word(m, to, s->type == SHT_NULL ? 0 : 1);
        put_word(m, to, s->entry_size);
}

static void segment_header(const struct elf_maker *m, struct buf *to, const struct elf_maker_segment *s)
{
        elf_make_word(m, to, s->type, 4);
        if (m->is_64)
                elf_make_word(m, to, s->flags, 4);
        put_word(m, to, s->offset);
        put_word(m, to, s->address);
        put_word(m, to, s->address);
        put_word(m, to, s->file_size);
        put_word(m, to, s->memory_size);
        if (!m->is_64)
                elf_make_word(m, to, s->flags, 4);
        put_word(m, to, 1);
}

static void file_header(const struct elf_maker *m, struct buf *to, uint64_t shoff, size_t count)
{
        const uint8_t ident[EI_NIDENT] = {
                0x7f,      'E', 'L', 'F', m->is_64 ? ELFCLASS64 : ELFCLASS32, m->big_endian ? ELFDATA2MSB : ELFDATA2LSB,
                EV_CURRENT
        };

        buf_append(to, ident, sizeof ident);
        elf_make_word(m, to, m->type ? m->type : ET_DYN, 2);
        elf_make_word(m, to, m->machine ? m->machine : EM_X86_64, 2);
        elf_make_word(m, to, EV_CURRENT, 4);
        put_word(m, to, 0);
        put_word(m, to, m->segment_count ? (m->is_64 ? 64 : 52) : 0);
        put_word(m, to, m->section_count ? shoff : 0);
        elf_make_word(m, to, 0, 4);
        elf_make_word(m, to, m->is_64 ? 64 : 52, 2);
        elf_make_word(m, to, m->is_64 ? 56 : 32, 2);
        elf_make_word(m, to, m->segment_count, 2);
        elf_make_word(m, to, m->is_64 ? 64 : 40, 2);
        elf_make_word(m, to, m->wide_counts ? 0 : count, 2);
        elf_make_word(m, to, m->wide_counts ? SHN_XINDEX : count ? count - 1 : 0, 2);
}

void elf_make(const struct elf_maker *m, struct buf *to)
{
        size_t count = m->section_count ? m->section_count + 1 : 0; /* including .shstrtab */
        size_t start = (m->is_64 ? 64 : 52) + m->segment_count * (m->is_64 ? 56 : 32);
        struct elf_maker_section zero = { 0 }, strtab = { .name = ".shstrtab", .type = SHT_STRTAB };
        _cleanup_buf_ struct buf body, names, table;

        buf_init(&body, 1 << 28);
        buf_init(&names, 1 << 20);
        buf_init(&table, 1 << 24);
        buf_append_u8(&names, 0);
        if (m->wide_counts) {
                zero.size = count;
                zero.link = (uint32_t)count - 1;
        }
        if (count)
                section_header(m, &table, 0, &zero, 0);
        for (size_t i = 1; i < m->section_count; i++) {
                const struct elf_maker_section *s = &m->sections[i];

                put_padding(&body, 8);
                section_header(m, &table, (uint32_t)names.size, s, start + body.size);
                buf_append(&names, s->name, strlen(s->name) + 1);
                if (s->content)
                        buf_append(&body, s->content, s->size);
        }
        if (count) {
                size_t at = names.size;

                buf_append(&names, strtab.name, strlen(strtab.name) + 1);
                strtab.size = names.size;
                section_header(m, &table, (uint32_t)at, &strtab, start + body.size);
                buf_append(&body, names.data, names.size);
        }
        file_header(m, to, start + body.size, count);
        for (size_t i = 0; i < m->segment_count; i++)
                segment_header(m, to, &m->segments[i]);
        buf_append(to, body.data, body.size);
        buf_append(to, table.data, table.size);
}
