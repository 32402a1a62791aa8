/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_UPLOADER_ELF_HEADERS_H
#define CAIRN_UPLOADER_ELF_HEADERS_H

/**
 * @file
 * Writes the headers of a new ELF file with libelf, in the class and byte order of the file that it is made from. The
 * contents do not pass through libelf: the caller copies them to the offsets that the headers give.
 *
 * Threads: one at a time in the process, since libelf is not thread-safe.
 */
#include <gelf.h>

#include "elf-image/elf_image.h"

struct elf_headers {
        uint64_t program_offset;   /* of the program headers in the new file */
        const GElf_Phdr *programs; /* borrowed */
        size_t program_count;
        uint64_t section_offset;   /* of the section headers in the new file */
        const GElf_Shdr *sections; /* borrowed; [0] is the null section, whose content is ignored */
        size_t section_count;
        size_t name_section; /* number of the section of section names */
};

/** The next multiple of a section's alignment. Alignments are untrusted: only plausible ones are applied. */
static inline uint64_t align_file_offset(uint64_t offset, uint64_t alignment)
{
        if (alignment < 2 || alignment > 4096 || (alignment & (alignment - 1)))
                return offset;
        return (offset + alignment - 1) & ~(alignment - 1);
}

static inline GElf_Phdr make_program_header(const struct elf_segment *s)
{
        return (GElf_Phdr){ .p_type = s->type,
                            .p_flags = s->flags,
                            .p_offset = s->offset,
                            .p_vaddr = s->address,
                            .p_paddr = s->physical,
                            .p_filesz = s->file_size,
                            .p_memsz = s->memory_size,
                            .p_align = s->alignment };
}

/**
 * Write the headers into fd, an empty file open for reading and writing; the other members of the ELF header are the
 * image's.
 * @return ST_BAD_DATA when libelf fails, also when fd cannot be written.
 */
enum status elf_headers_write(const struct elf_image *img, const struct elf_headers *h, int fd,
                              struct error *err) MUST_CHECK;

#endif
