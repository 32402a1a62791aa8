/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_UNWIND_TABLES_CFI_SECTION_H
#define CAIRN_UNWIND_TABLES_CFI_SECTION_H

/**
 * @file
 * Records of .eh_frame and .debug_frame: CIEs and FDEs.
 *
 * A CIE is read when the first FDE needs it, its initial instructions run once,
 * and it is remembered by its offset.
 * Threads: one section belongs to one thread; its bytes are borrowed.
 * Source: DWARF 5, 6.4.1; LSB 5.0 Core, 10.6 (.eh_frame, .eh_frame_hdr).
 */
#include "common/reader.h"
#include "unwind-tables/cfi_arch.h"
#include "unwind-tables/cfi_row.h"

struct cfi_cie {
        enum status state; /* not ST_OK: unreadable, and so are its FDEs */
        uint64_t code_align;
        int64_t data_align;
        uint64_t ra; /* its column */
        uint8_t pointer_encoding; /* of its FDEs: DW_EH_PE_* */
        bool has_augmentation_size, is_signal;
        struct cfi_row initial;
};

struct cfi_section {
        const struct cfi_arch *arch;
        const uint8_t *data; /* borrowed */
        size_t size;
        uint64_t address; /* of data[0], link-time */
        bool is_eh;       /* .eh_frame, else .debug_frame */
        struct cfi_cie **cies; /* owned, in order of first use */
        size_t cie_count, cie_capacity;
        uint64_t *slot_offsets; /* open addressing: where each CIE begins */
        uint32_t *slots;        /* index + 1, 0 free */
        size_t slot_count;
};

struct cfi_fde {
        uint64_t start, end; /* link-time addresses */
        const struct cfi_cie *cie; /* borrowed from the section */
        const uint8_t *program;    /* borrowed from the section's bytes */
        size_t program_size;
        uint64_t program_address;
};

void cfi_section_init(struct cfi_section *s, const struct cfi_arch *arch, const void *data, size_t size,
                      uint64_t address, bool is_eh);
void cfi_section_deinit(struct cfi_section *s);

/**
 * Read the record at *pos and move *pos behind it.
 * @return ST_OK with an FDE; ST_NOT_FOUND for a CIE, an empty record, and at the end (*pos is then size);
 *         ST_UNSUPPORTED for an FDE that cannot be read though its length can (*pos moves);
 *         ST_BAD_DATA for a record that does not lie in the section, ST_TOO_BIG past LIMIT_UNWIND_CIES,
 *         ST_NO_MEMORY: *pos stays.
 */
enum status cfi_section_next(struct cfi_section *s, size_t *pos, struct cfi_fde *ret, struct error *err) MUST_CHECK;

#endif
