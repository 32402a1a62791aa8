/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_RUNTIMES_PYTHON_LAYOUT_H
#define CAIRN_SAMPLING_RUNTIMES_PYTHON_LAYOUT_H

/**
 * @file
 * Layout of the structures of a running CPython interpreter, 3.8 to 3.15.
 *
 * Offsets come from a table in the source up to 3.12, and from the interpreter's own table (_Py_DebugOffsets) since
 * 3.13. They are not trusted: the size of code objects that the interpreter states must match, and a listed thread must
 * be one whose thread pointer refers to itself. An interpreter that fails is refused rather than guessed.
 *
 * The state of a thread is found by the pthread key under which the interpreter keeps it, where glibc's first block of
 * thread-specific data has that key; else, as with musl, with many keys, and in 3.15, by the interpreters' lists.
 *
 * The process is a stranger: reads are bounded, and wrong values lead to a refusal.
 *
 * Threads: no shared state.
 * Source: CPython Include/internal/pycore_debug_offsets.h, pycore_runtime.h, cpython/code.h of these versions; glibc
 * nptl/descr.h (specific_1stblock).
 */
#include <stdbool.h>

#include "bpf/python_walk.h"
#include "sampling/runtimes/python_symbols.h"
#include "sampling/runtimes/runtime_refusal.h"

/** Read n bytes at an address of a process; a short read is a failure. */
typedef bool process_memory_fn(void *ctx, uint64_t addr, void *to, size_t n);

struct process_memory {
        process_memory_fn *read;
        void *ctx;
};

enum python_lines {
        PYTHON_LINES_LOCATIONS, /* co_linetable, since 3.11 */
        PYTHON_LINES_RANGES,    /* co_linetable of 3.10 */
        PYTHON_LINES_LNOTAB,    /* co_lnotab */
};

/** Offsets to read names and lines. */
struct python_objects {
        uint64_t code_type, text_type; /* addresses */
        enum python_lines lines;
        uint16_t object_type;     /* of ob_type */
        uint8_t text_state_shift; /* bits before the kind in the state of a string */
        uint16_t code_first_line, code_first_traceable, code_file, code_qualified_name, code_lines, code_bytes;
        uint16_t bytes_size, bytes_data;
        uint16_t text_length, text_state;
        uint16_t text_ascii, text_compact; /* sizes of the headers of ASCII and of other strings */
};

struct python_layout {
        struct python_process process;
        struct python_objects objects;
};

enum python_attach {
        PYTHON_ATTACHED,
        PYTHON_STARTING, /* the interpreter has no thread yet: try again */
        PYTHON_REFUSED,
};

/**
 * Find the layout of a process.
 * @param s  addresses in the process.
 * @param refusal_ret  for PYTHON_REFUSED.
 */
enum python_attach python_layout_find(const struct process_memory *m, const struct python_symbols *s,
                                      struct python_layout *ret, struct runtime_refusal *refusal_ret);

#endif
