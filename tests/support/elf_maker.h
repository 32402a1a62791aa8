/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_ELF_MAKER_H
#define CAIRN_TESTS_SUPPORT_ELF_MAKER_H

/*
 * Writes small ELF files of either class and byte order from a table, including malformed ones: a section may claim any
 * offset and size.
 */
#include <elf.h>
#include <stdbool.h>

#include "common/memory/buf.h"

struct elf_maker_section {
        const char *name;
        uint32_t type;
        uint64_t flags, address;
        const void *content;
        uint64_t size;
        uint32_t link, info;
        uint64_t entry_size;
        uint64_t claimed_offset, claimed_size; /* if not 0, written into the header in place of the actual value */
};

struct elf_maker_segment {
        uint32_t type, flags;
        uint64_t offset, address, file_size, memory_size;
};

struct elf_maker {
        bool is_64, big_endian;
        uint16_t type, machine;
        bool wide_counts;                         /* counts and the string table index are stored in section 0 */
        const struct elf_maker_section *sections; /* sections from index 1; .shstrtab is appended */
        size_t section_count;
        const struct elf_maker_segment *segments;
        size_t segment_count;
};

/** Append the file to `to`, which must be empty. */
void elf_make(const struct elf_maker *m, struct buf *to);

/** A 2-, 4- or 8-byte word in the maker's byte order. */
void elf_make_word(const struct elf_maker *m, struct buf *to, uint64_t v, unsigned bytes);

/** A padded note. name_size includes the NUL. */
void elf_make_note(const struct elf_maker *m, struct buf *to, const char *name, size_t name_size, uint32_t type,
                   const void *desc, size_t desc_size);

#endif
