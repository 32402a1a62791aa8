/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_UNWIND_TABLES_CFI_POINTER_H
#define CAIRN_UNWIND_TABLES_CFI_POINTER_H

/**
 * @file
 * Encoded pointers of .eh_frame and .eh_frame_hdr in 64-bit files.
 * Source: LSB 5.0 Core, 10.5.1 (DWARF exception header encoding).
 */
#include "common/reader.h"

#define CFI_PE_ABSPTR 0x00
#define CFI_PE_PCREL 0x10
#define CFI_PE_DATAREL 0x30
#define CFI_PE_INDIRECT 0x80
#define CFI_PE_OMIT 0xff

/**
 * Read one pointer.
 * @param address  link-time address of r->data[0].
 * @param base  the base of DATAREL.
 * @return false when it is truncated or its encoding is unsupported for code addresses; the
 *         cursor may have moved.
 */
bool cfi_pointer_read(struct reader *r, uint8_t encoding, uint64_t address, uint64_t base, uint64_t *ret) MUST_CHECK;

/** Skip a pointer of any encoding, indirect ones included. */
bool cfi_pointer_skip(struct reader *r, uint8_t encoding) MUST_CHECK;

#endif
