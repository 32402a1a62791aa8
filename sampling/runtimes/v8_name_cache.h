/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_RUNTIMES_V8_NAME_CACHE_H
#define CAIRN_SAMPLING_RUNTIMES_V8_NAME_CACHE_H

/**
 * @file
 * Names, files and lines of the JavaScript functions of one process.
 *
 * Functions and scripts are cached by address. The garbage collector moves and frees objects, so the first use in each
 * interval reads the words that identify the object again, and all of it when they changed. Between the sample and
 * that read, an object may have moved: then none of its type is at the address, or another one, which is unnoticed.
 * Functions move only when V8 compacts their page.
 *
 * Code that was interrupted before it linked its frame, or after it unlinked it, has the frame of its caller. The
 * optimizing compilers note the function in the code, so it is added in that case, and its caller has no line.
 *
 * Threads: one thread at a time.
 */
#include "common/hash/id_table.h"
#include "sampling/runtimes/v8_code.h"
#include "sampling/runtimes/v8_function.h"

struct named_function {
        struct v8_function function;
        uint64_t checked_in; /* interval */
        bool is_readable;
};

struct named_script {
        struct v8_script script;
        uint64_t checked_in;
        bool is_readable;
};

struct located_code {
        struct v8_code code;
        struct v8_code_place place;
        uint64_t checked_in;
        bool is_found;
};

struct v8_name_cache {
        struct id_table functions_by_address, scripts_by_address, codes_by_address;
        struct named_function *functions; /* owned, as the following */
        struct named_script *scripts;
        struct located_code *codes;
        size_t function_count, function_capacity, script_count, script_capacity, code_count, code_capacity;
        size_t bytes;      /* of names, lines and places */
        uint64_t code_map; /* of objects with code; 0: unknown */
};

void v8_name_cache_deinit(struct v8_name_cache *n);

struct v8_location {
        const char *name, *file;   /* "": none */
        uint32_t line, start_line; /* 0: unknown */
};

enum v8_frame_state {
        V8_FRAME_FOUND,
        V8_FRAME_UNREADABLE, /* no function is there any more, or it cannot be read */
        V8_FRAME_GONE,       /* the process exited before names were read */
        V8_FRAME_STATES,
};

/**
 * @param interval   number of the current one.
 * @param shared     address of the SharedFunctionInfo.
 * @param position   of the frame: bpf/v8_walk.h.
 * @param ret        for V8_FRAME_FOUND, LIMIT_V8_INLINED entries: the functions inlined there and the frame's own,
 *                   innermost first; borrowed until the next call.
 * @param count_ret  of these, at least 1.
 */
enum v8_frame_state v8_name_cache_locate(struct v8_name_cache *n, const struct v8_heap *h, uint64_t interval,
                                         uint64_t shared, uint64_t position, struct v8_location *ret,
                                         uint32_t *count_ret);

#endif
