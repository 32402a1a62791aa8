/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_UNWINDING_UNWINDER_INTERNAL_H
#define CAIRN_SAMPLING_UNWINDING_UNWINDER_INTERNAL_H

/* The tables of an unwinder, shared by unwinder.c and unwind_eviction.c. */
#include "common/hash/sha256.h"
#include "sampling/unwinding/unwinder.h"

enum table_state { TABLE_UNKNOWN, TABLE_WAITING, TABLE_READY, TABLE_SAME, TABLE_NONE, TABLE_FREE };

struct unwinder_table {
        enum table_state state;
        uint32_t owner;   /* for the quota */
        uint32_t users;   /* processes */
        uint64_t used_at; /* logical time */
        int64_t retry_ns; /* TABLE_NONE for lack of a worker: when to request it again; 0: never */
        struct unwind_loaded_table placed;
        uint32_t same_as;               /* number of the table with this content, TABLE_SAME */
        uint8_t content[SHA256_BYTES];  /* set when it is built */
        struct python_symbols python;   /* link-time addresses; set when it is built */
        struct hotspot_symbols hotspot; /* link-time addresses, likewise */
        struct context_symbols context; /* link-time addresses, likewise */
        struct go_symbols go;           /* link-time addresses, likewise */
        uint32_t v8;                    /* number of its V8, likewise; 0: none, V8_UNSUPPORTED: not read */
};

#endif
