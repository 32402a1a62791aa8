/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DWARF_FORM_H
#define CAIRN_DWARF_FORM_H

/**
 * @file
 * Encoding of attribute values: reading and skipping them.
 * dwarf/context.h interprets the values.
 * Source: DWARF 5, 7.5.6.
 */
#include "dwarf/constants.h"
#include "dwarf/cursor.h"

/** Unit header fields that determine the size of some forms. */
struct dwarf_format {
        uint8_t version;
        uint8_t address_size; /* 4 or 8; 2 is read as well */
        uint8_t offset_size;  /* 4, or 8 in the 64-bit format */
};

/** A value as it is written. */
struct dwarf_value {
        uint16_t form;   /* 0: the attribute is absent; never DW_FORM_indirect */
        uint64_t number; /* of all forms but DW_FORM_string; an sdata is its two's complement, an exprloc its size, a
                            DW_FORM_LLVM_addrx_offset the index, and the offset in the upper half */
        union {
                const char *string;   /* DW_FORM_string */
                const uint8_t *block; /* DW_FORM_exprloc */
        };
};

/** Size of a form in bytes, -1 when it varies, -2 for an unknown form. */
int dwarf_form_size(uint16_t form, const struct dwarf_format *f);

/** Read a value. Other blocks and data16 are skipped and have the number 0. Bad forms fail the cursor. */
void dwarf_value_read(struct dwarf_cursor *c, const struct dwarf_format *f, uint16_t form, int64_t implicit,
                      struct dwarf_value *ret);

/** Skip a value of a form whose size varies. */
void dwarf_value_skip(struct dwarf_cursor *c, const struct dwarf_format *f, uint16_t form);

#endif
