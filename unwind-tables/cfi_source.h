/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_UNWIND_TABLES_CFI_SOURCE_H
#define CAIRN_UNWIND_TABLES_CFI_SOURCE_H

/**
 * @file
 * The CFI that an ELF file has, and all its FDEs by address.
 *
 * .eh_frame comes from its section or, in a file without section headers, from
 * PT_GNU_EH_FRAME; .debug_frame, unpacked if need be, adds what .eh_frame has
 * not. FDEs of code that the linker dropped (start 0) and those outside of
 * executable segments are counted and left out.
 * Threads: one source belongs to one thread.
 */
#include "elf-image/elf_image.h"
#include "unwind-tables/cfi_section.h"

struct cfi_code { /* [start, end) of an executable segment */
        uint64_t start, end;
};

struct cfi_source {
        const struct cfi_arch *arch;
        struct cfi_section eh, debug;
        struct elf_section_data debug_data;
        struct cfi_fde *fdes; /* owned; by start, then .eh_frame first; ends do not reach past the next start */
        size_t fde_count, fde_capacity;
        struct cfi_code *code; /* owned; by start */
        size_t code_count;
        uint64_t fdes_seen, fdes_discarded, fdes_outside, fdes_double, fdes_unreadable;
};

/**
 * The image is borrowed until cfi_source_deinit().
 * @return ST_UNSUPPORTED for another processor, a 32-bit or a big-endian file, or one that is not linked;
 *         ST_BAD_DATA for CFI that breaks its format; ST_TOO_BIG past LIMIT_UNWIND_FDES.
 *         A file without CFI is ST_OK with no FDE.
 */
enum status cfi_source_open(const struct elf_image *img, struct cfi_source *ret, struct error *err) MUST_CHECK;
void cfi_source_deinit(struct cfi_source *s);
#define _cleanup_cfi_source_ _cleanup_(cfi_source_deinit)

/** The first FDE that ends past an address; fde_count when there is none. */
size_t cfi_source_find(const struct cfi_source *s, uint64_t address);

#endif
