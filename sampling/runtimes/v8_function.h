/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_RUNTIMES_V8_FUNCTION_H
#define CAIRN_SAMPLING_RUNTIMES_V8_FUNCTION_H

/**
 * @file
 * JavaScript functions and scripts in the heap of a V8 process: name, file, lines.
 *
 * A function is a SharedFunctionInfo. Its name is a string, or is in its ScopeInfo together with the range of its
 * source; the parts of a ScopeInfo vary with flags and versions, so they are found by the types of their words. A
 * function without a name has the one that V8 inferred from an assignment.
 *
 * Threads: no shared state.
 * Source: V8 src/objects/shared-function-info.tq, scope-info.tq, script.tq, debug-objects.tq.
 */
#include "sampling/runtimes/v8_heap.h"

/** Words of a SharedFunctionInfo; compared to detect that another object is at its address. */
struct v8_function_key {
        uint64_t name, script, data;
};

struct v8_function {
        struct v8_function_key key;
        uint64_t script;    /* the Script; 0: none, as of a built-in function */
        uint64_t bytecode;  /* the BytecodeArray; 0: none */
        char *name;         /* owned; "": none */
        int32_t start;      /* of its source, in the script; -1: unknown */
        uint8_t *positions; /* owned; the source position table of its bytecode; NULL: none */
        size_t position_bytes;
};

void v8_function_deinit(struct v8_function *f);

/** Read what identifies the function. False when there is none at the address. */
bool v8_function_read_key(const struct v8_heap *h, uint64_t shared, struct v8_function_key *ret);

/** @param ret  owned, v8_function_deinit(); untouched on failure. False: there is no function, or no memory. */
bool v8_function_read(const struct v8_heap *h, uint64_t shared, struct v8_function *ret);

/** The BytecodeArray that is, or is referred to by, the data of a function or its code; 0: none. */
uint64_t v8_function_find_bytecode(const struct v8_heap *h, uint64_t data);

struct v8_script_key {
        uint64_t name, source;
};

struct v8_script {
        struct v8_script_key key;
        char *file;            /* owned; "": none */
        uint32_t *line_starts; /* owned; offsets of the lines after the first one */
        size_t line_count;
        int32_t line_offset; /* of its first line, in the file */
        bool has_lines;      /* its source was readable */
};

void v8_script_deinit(struct v8_script *s);
bool v8_script_read_key(const struct v8_heap *h, uint64_t script, struct v8_script_key *ret);
bool v8_script_read(const struct v8_heap *h, uint64_t script, struct v8_script *ret);

/** Whether a loop statement begins at the character. */
bool v8_script_has_loop_at(const struct v8_heap *h, const struct v8_script *s, int32_t offset);

/** The line of a character, from 1; 0: unknown. */
uint32_t v8_script_find_line(const struct v8_script *s, int32_t offset);

#endif
