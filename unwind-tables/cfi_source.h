/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_UNWIND_TABLES_CFI_SOURCE_H
#define CAIRN_UNWIND_TABLES_CFI_SOURCE_H

/**
 * @file
 * Call frame information (CFI) of an ELF file: all FDEs, sorted by address.
 *
 * .eh_frame is found by its section or, in a file without section headers, by
 * PT_GNU_EH_FRAME; .debug_frame, decompressed if necessary, supplies the FDEs
 * that .eh_frame lacks. FDEs of discarded code (start 0) and FDEs outside
 * executable segments are counted and skipped.
 *
 * Threads: one source belongs to one thread; the section bytes are borrowed.
 * Source: DWARF 5, 6.4.1; LSB 5.0 Core, 10.6 (.eh_frame, .eh_frame_hdr).
 */
#include "common/hash/hash_table.h"
#include "common/reader.h"
#include "elf-image/elf_image.h"
#include "unwind-tables/cfi_arch.h"
#include "unwind-tables/cfi_rule.h"

/**
 * A CIE. It is parsed when the first FDE refers to it, its initial instructions
 * run once, and it is cached by its offset.
 */
struct cfi_cie {
        enum status state; /* not ST_OK: the CIE and its FDEs are unreadable */
        uint64_t offset;   /* in the section */
        uint64_t code_align;
        int64_t data_align;
        uint64_t ra;              /* return address column */
        uint8_t pointer_encoding; /* of its FDEs: DW_EH_PE_* */
        bool has_augmentation_size, is_signal;
        struct cfi_row initial;
};

/** The records of .eh_frame or .debug_frame. */
struct cfi_section {
        const struct cfi_arch *arch;
        const uint8_t *data; /* borrowed */
        size_t size;
        uint64_t address;      /* of data[0], link-time */
        bool is_eh;            /* .eh_frame, else .debug_frame */
        struct cfi_cie **cies; /* owned, in order of first use */
        size_t cie_count, cie_capacity;
        struct hash_table cies_by_offset;
};

struct cfi_fde {
        uint64_t start, end;       /* link-time addresses */
        const struct cfi_cie *cie; /* borrowed from the section */
        const uint8_t *program;    /* borrowed from the section's bytes */
        size_t program_size;
        uint64_t program_address;
};

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
 * Parse the CFI of an image, borrowed until cfi_source_deinit().
 * @return ST_UNSUPPORTED for another processor, a 32-bit, big-endian or relocatable file;
 *         ST_BAD_DATA for malformed CFI; ST_TOO_BIG past LIMIT_UNWIND_FDES. A file without CFI
 *         is ST_OK with no FDE.
 */
enum status cfi_source_open(const struct elf_image *img, struct cfi_source *ret, struct error *err) MUST_CHECK;
void cfi_source_deinit(struct cfi_source *s);
#define _cleanup_cfi_source_ _cleanup_(cfi_source_deinit)

/** The first FDE that ends past an address; fde_count when there is none. */
size_t cfi_source_find_fde(const struct cfi_source *s, uint64_t address);

#endif
