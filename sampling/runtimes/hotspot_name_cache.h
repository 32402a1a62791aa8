/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_RUNTIMES_HOTSPOT_NAME_CACHE_H
#define CAIRN_SAMPLING_RUNTIMES_HOTSPOT_NAME_CACHE_H

/**
 * @file
 * Names, files and lines of the Java methods of one process.
 *
 * Methods are cached by address; the first use in each interval reads what identifies them again. Places in compiled
 * code are cached by the words of the frame, which contain the number of the compilation, so they stay valid.
 *
 * Threads: one thread at a time.
 */
#include "common/hash/id_table.h"
#include "sampling/runtimes/hotspot_code.h"
#include "sampling/runtimes/hotspot_method.h"

struct named_method {
        struct hotspot_method method;
        uint64_t checked_in; /* interval */
        bool is_readable;
};

/** A frame that is not interpreted. */
struct named_place {
        enum hotspot_code_state state;
        uint64_t *methods;  /* owned; as in struct hotspot_place */
        int32_t *bytecodes; /* owned */
        char *stub;         /* owned; if there are no methods */
        uint32_t count;
        uint64_t checked_in; /* interval, unless it was found */
};

struct hotspot_name_cache {
        struct id_table methods_by_address, places_by_frame;
        struct named_method *methods; /* owned, as the following */
        struct named_place *places;
        size_t method_count, method_capacity, place_count, place_capacity;
        size_t bytes;       /* of names, lines and places */
        uint64_t work_left; /* bytes that may be read, set by the caller for each interval; each read costs 256 more */
};

void hotspot_name_cache_deinit(struct hotspot_name_cache *n);

struct hotspot_location {
        const char *name; /* NULL: the method is unreadable */
        const char *file; /* "": none */
        uint32_t line;    /* 0: unknown */
};

enum hotspot_frame_state {
        HOTSPOT_FRAME_FOUND,
        HOTSPOT_FRAME_FREED,      /* the code was replaced before names were read */
        HOTSPOT_FRAME_UNREADABLE, /* no method is there, or it cannot be read */
        HOTSPOT_FRAME_LIMIT,      /* too much was read in this interval */
        HOTSPOT_FRAME_GONE,       /* the process exited before names were read */
        HOTSPOT_FRAME_STATES,
};

/**
 * @param interval   number of the current one.
 * @param address, position  words of the frame: bpf/hotspot_walk.h.
 * @param ret        for HOTSPOT_FRAME_FOUND, LIMIT_HOTSPOT_INLINED entries: the methods inlined there and the frame's
 * own, innermost first; borrowed until the next call.
 * @param count_ret  of these, at least 1.
 */
enum hotspot_frame_state hotspot_name_cache_locate(struct hotspot_name_cache *n, const struct process_memory *m,
                                                   const struct hotspot_objects *o, uint64_t interval, uint64_t address,
                                                   uint64_t position, struct hotspot_location *ret,
                                                   uint32_t *count_ret);

#endif
