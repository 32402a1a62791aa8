/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_RUNTIMES_PYTHON_CODE_H
#define CAIRN_SAMPLING_RUNTIMES_PYTHON_CODE_H

/**
 * @file
 * Reads code objects of a Python process: qualified name, file, and the line of an instruction.
 *
 * The process is a stranger that may change its memory meanwhile: lengths are limited, types are checked, texts become
 * valid UTF-8.
 *
 * Threads: no shared state.
 * Source: CPython Objects/locations.md (3.11), Objects/lnotab_notes.txt (before), Include/cpython/unicodeobject.h.
 */
#include "common/error.h"
#include "sampling/runtimes/python_layout.h"

#define PYTHON_HEADER_MAX 256 /* bytes of a code object before its instructions */

/** The fields of a code object that identify it; compared byte by byte. */
struct python_code_key {
        uint64_t file, name, lines; /* addresses */
        uint32_t first_line, first_traceable;
};

struct python_code {
        struct python_code_key key;
        char *name, *file; /* owned */
        uint8_t *lines;    /* owned; the line table */
        uint32_t line_bytes;
        uint16_t code_bytes; /* offset of the instructions */
};

void python_code_deinit(struct python_code *c);

/** Read what identifies the code object. False when there is none at the address. */
bool python_code_read_key(const struct process_memory *m, const struct python_objects *o, uint64_t addr,
                          struct python_code_key *ret);

/**
 * @param ret  owned, python_code_deinit(); untouched on failure.
 * @param is_code_ret  whether a code object is at the address, also on failure.
 * @return ST_BAD_DATA: no readable code object, or no memory for it.
 */
enum status python_code_read(const struct process_memory *m, const struct python_objects *o, uint64_t addr,
                             struct python_code *ret, bool *is_code_ret) MUST_CHECK;

/**
 * The line of an instruction.
 * @param unit  number of the two-byte code unit.
 * @return 0 when it has none, or the table ends before it.
 */
uint32_t python_line_find(enum python_lines format, const uint8_t *table, size_t size, uint32_t first_line,
                          uint64_t unit);

#endif
