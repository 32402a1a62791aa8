/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_RUNTIMES_PYTHON_NAME_CACHE_H
#define CAIRN_SAMPLING_RUNTIMES_PYTHON_NAME_CACHE_H

/**
 * @file
 * Names of the Python code of one process, cached by address of the code
 * object.
 *
 * Code objects are freed, and others take their place. In each interval the
 * first use of a cached one reads its identifying fields again (one read of
 * about 200 bytes) and reads the rest when they changed.
 *
 * A process may have invented its code objects, each with the longest names and
 * line table, and another one in each frame. So the bytes that are read and
 * decoded for it are limited per interval; past the limit, code that is not
 * cached has no name, and cached code no line. The line of the last instruction
 * of each code object is kept: most frames are callers, at the same call in
 * many stacks.
 *
 * Threads: one thread at a time.
 */
#include "common/hash/id_table.h"
#include "sampling/runtimes/python_code.h"

enum python_frame_state {
        PYTHON_FRAME_FOUND,
        PYTHON_FRAME_INCOMPLETE, /* being set up: Python shows none either */
        PYTHON_FRAME_FREED,      /* no code object is there any more */
        PYTHON_FRAME_UNREADABLE, /* its memory or its name cannot be read */
        PYTHON_FRAME_LIMIT,      /* the process has no work left */
        PYTHON_FRAME_GONE,       /* the process exited before names were read */
        PYTHON_FRAME_STATES
};

struct named_code {
        struct python_code code;
        uint64_t checked_in; /* interval */
        uint64_t line_unit;  /* of line; UINT64_MAX: none */
        uint32_t line;
        enum python_frame_state state;
};

struct python_name_cache {
        struct id_table by_address;
        struct named_code *items; /* owned */
        size_t count, capacity;
        size_t bytes;       /* of names and line tables */
        uint64_t work_left; /* bytes that may be read and decoded; set by the caller, and decremented */
};

void python_name_cache_deinit(struct python_name_cache *n);

struct python_location {
        const char *name, *file;
        uint32_t line; /* 0: none */
};

/**
 * @param interval  number of the current one.
 * @param code      address of the code object.
 * @param detail    of the frame: bpf/python_walk.h.
 * @param ret       for PYTHON_FRAME_FOUND; borrowed until the next call.
 */
enum python_frame_state python_name_cache_locate(struct python_name_cache *n, const struct process_memory *m,
                                                 const struct python_objects *o, uint64_t interval, uint64_t code,
                                                 uint64_t detail, struct python_location *ret);

#endif
