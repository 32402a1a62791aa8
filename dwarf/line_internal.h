/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DWARF_LINE_INTERNAL_H
#define CAIRN_DWARF_LINE_INTERNAL_H

/* Between line.c, which runs programs, and line_header.c. */
#include "dwarf/line.h"

struct dwarf_line_header {
        struct dwarf_format format;
        uint8_t min_instruction_length, max_operations;
        bool is_statement; /* rows are, until the program says otherwise */
        int8_t line_base;
        uint8_t line_range, opcode_base;
        const uint8_t *opcode_lengths; /* of opcodes 1 to opcode_base - 1 */
        struct dwarf_cursor program;
};

/** Read the header, its files and directories; h->program is what follows. */
enum status dwarf_line_header_read(struct dwarf_line_header *h, struct dwarf_lines *l, const struct dwarf_context *x,
                                   uint64_t offset) MUST_CHECK;

/** One file in the form of versions before 5, as headers and programs have it; ends the list when its name is empty. */
enum status dwarf_line_add_file(struct dwarf_lines *l, struct dwarf_cursor *c, bool *is_end) MUST_CHECK;

#endif
