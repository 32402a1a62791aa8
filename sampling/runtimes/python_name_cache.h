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
 * Threads: one thread at a time.
 */
#include "common/hash/id_table.h"
#include "sampling/runtimes/python_code.h"

struct named_code {
        struct python_code code;
        uint64_t checked_in; /* interval */
        bool is_readable;
};

struct python_name_cache {
        struct id_table by_address;
        struct named_code *items; /* owned */
        size_t count, capacity;
        size_t bytes; /* of names and line tables */
};

void python_name_cache_deinit(struct python_name_cache *n);

struct python_location {
        const char *name, *file;
        uint32_t line; /* 0: none */
};

enum python_frame_state {
        PYTHON_FRAME_FOUND,
        PYTHON_FRAME_INCOMPLETE, /* being set up: Python shows none either */
        PYTHON_FRAME_UNREADABLE, /* no code object is there any more, or it cannot be read */
        PYTHON_FRAME_GONE,       /* the process exited before names were read */
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
