/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DWARF_LINE_H
#define CAIRN_DWARF_LINE_H

/**
 * @file
 * Line tables: rows of addresses with a file and a line, and the files.
 * Source: DWARF 5, 6.2; DWARF 4, 6.2 for versions 2 to 4.
 */
#include "common/memory/buf.h"
#include "common/source_position.h"
#include "dwarf/context.h"
#include "dwarf/regions.h"

struct dwarf_row { /* covers [start, end) */
        uint64_t start, end;
        uint32_t file; /* number in the table's files */
        uint32_t line; /* 0: compiler-generated code. With positions: number in them, 0 the unknown one */
};

struct dwarf_sequence { /* rows without a gap */
        uint64_t start, end;
        size_t first, count; /* of the rows */
        uint32_t file, line; /* of its first row, even when a later row at its address replaced it */
};

struct dwarf_line_file {
        const char *name; /* borrowed from a section; NULL unknown */
        uint64_t directory;
        const char *text; /* of the file, borrowed in the same way; NULL: not embedded */
};

/** One table; reused from unit to unit. */
struct dwarf_lines {
        struct dwarf_row *rows; /* owned; sorted, disjoint */
        size_t row_count, row_capacity;
        struct dwarf_row *spare; /* owned; buffer for sorting rows */
        size_t spare_capacity;
        struct dwarf_sequence *sequences; /* owned; in the order of the program until all are read, then by start */
        size_t sequence_count, sequence_capacity;
        struct dwarf_line_file *files; /* owned; by number, which begins with 1 before version 5 */
        size_t file_count, file_capacity;
        const char **directories; /* owned; [0] is the unit's own, NULL before version 5 */
        size_t directory_count, directory_capacity;
        const char *unit_directory;        /* borrowed; NULL unknown */
        bool is_relative;                  /* paths are not joined with the compilation directory */
        bool wants_positions;              /* set by the caller, and kept from unit to unit: rows have positions */
        struct source_position *positions; /* owned; [0] is the unknown one */
        size_t position_count, position_capacity;
        uint16_t version;
        bool is_folded; /* several sequences begin at one address */
};

/**
 * Replace the content with the table at an offset of .debug_line.
 *
 * Of several rows at one address the last is kept, since it covers the instruction. Sequences that do not start in code
 * are dropped. Of two overlapping sequences (identical code folding) the one with the lower start is kept whole, else
 * the first in the program.
 * @param x the unit that refers to the table; provides directory and strings.
 * @return ST_BAD_DATA, with the files and the rows of the sequences before the fault kept; ST_UNSUPPORTED for another
 *          version; ST_TOO_BIG for more than LIMIT_DWARF_LINE_ROWS rows, LIMIT_DWARF_LINE_FILES files or the object's
 *          budget; ST_NO_MEMORY.
 */
enum status dwarf_lines_read(struct dwarf_lines *l, const struct dwarf_context *x, uint64_t offset,
                             const struct dwarf_regions *code) MUST_CHECK;
/** As dwarf_lines_read(), but read only the files and directories of the header, no rows. */
enum status dwarf_lines_read_files(struct dwarf_lines *l, const struct dwarf_context *x, uint64_t offset) MUST_CHECK;
void dwarf_lines_clear(struct dwarf_lines *l);
void dwarf_lines_deinit(struct dwarf_lines *l);

/** Whether the table has no program, and thus no rows; false if that cannot be read. Its files are not looked at. */
bool dwarf_line_program_is_empty(const struct dwarf_context *x, uint64_t offset);

/**
 * The addresses that a line program sets, which begin its sequences, found by the bytes of the opcode without running
 * the program: bytes that look like one give an address too many.
 */
struct dwarf_line_starts {
        struct dwarf_cursor left;
        uint8_t opcode[3];
        uint8_t address_size;
};
/** @return false when the table's length cannot be read. */
bool dwarf_line_starts_begin(struct dwarf_line_starts *s, const struct dwarf_context *x, uint64_t offset);
bool dwarf_line_starts_next(struct dwarf_line_starts *s, uint64_t *ret);

/** The offset after the table at this offset, or UINT64_MAX at the end and at a broken length. */
uint64_t dwarf_lines_next(const struct dwarf_sections *s, uint64_t offset);

/**
 * Append the path of a file as the table has it, a relative one after its
 * directory and the unit's: "DIR/./nptl/nptl-stack.c" is not normalized. Paths
 * of Windows and URLs can be absolute too.
 * Appends nothing for a number that is not in the table.
 */
void dwarf_lines_path(const struct dwarf_lines *l, uint64_t file, struct buf *to);

struct dwarf_line_header {
        struct dwarf_format format;
        uint8_t min_instruction_length, max_operations;
        bool is_statement; /* initial value of the register is_stmt */
        int8_t line_base;
        uint8_t line_range, opcode_base;
        const uint8_t *opcode_lengths; /* of opcodes 1 to opcode_base - 1 */
        struct dwarf_cursor program;
};

/** Read the header with its files and directories; h->program is the line program after it. */
enum status dwarf_line_header_read(struct dwarf_line_header *h, struct dwarf_lines *l, const struct dwarf_context *x,
                                   uint64_t offset) MUST_CHECK;

/** One file in the form of versions before 5, as headers and programs have it; ends the list when its name is empty. */
enum status dwarf_line_add_file(struct dwarf_lines *l, struct dwarf_cursor *c, bool *is_end) MUST_CHECK;

#endif
