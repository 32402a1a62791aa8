/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_RUNTIMES_V8_CODE_H
#define CAIRN_SAMPLING_RUNTIMES_V8_CODE_H

/**
 * @file
 * Code that V8 generated: the position of an address. Code of the optimizing compilers (TurboFan, Maglev) has positions
 * in the source, through the functions that were inlined there; they are exact for calls, and an address between
 * belongs to the preceding one. Code of the baseline compiler (Sparkplug) has a table of the bytecode that it was made
 * of, one entry per instruction.
 *
 * Maglev compiles the first iteration of a loop separately, and gives all code of the others the position of the loop
 * itself: v8_code_place has a mark for its code.
 *
 * The object that an address belongs to is searched backwards from it: it is aligned, and its first word is the Map of
 * such objects. Functions refer only to their newest code, and code that a loop was entered with is in other places.
 *
 * Threads: no shared state.
 * Source: V8 src/objects/code.h, deoptimization-data.h, src/codegen/source-position.h.
 */
#include "common/limits.h"
#include "sampling/runtimes/v8_heap.h"
#include "sampling/runtimes/v8_positions.h"

/** An object with generated code. */
struct v8_code {
        uint64_t object;     /* its address, in code memory, of the first word */
        uint64_t start, end; /* of its instructions */
        uint64_t code;       /* the Code, which may be the object */
};

/**
 * Find the object with the code at pc.
 * @param map  in and out: the first word of such objects, 0: unknown.
 */
bool v8_code_find(const struct v8_heap *h, uint64_t pc, uint64_t *map, struct v8_code *ret);

/** Whether the same object is still there. */
bool v8_code_is_current(const struct v8_heap *h, const struct v8_code *c);

/** Functions at an address, innermost first. The last one is the function that was compiled. */
struct v8_code_place {
        uint32_t count;
        bool is_maglev;
        struct {
                uint64_t shared; /* a SharedFunctionInfo; 0: unknown, or a built-in function */
                int32_t offset;  /* position in its script; -1: unknown */
        } items[LIMIT_V8_INLINED];
        uint64_t bytecode;       /* of baseline code, the BytecodeArray; 0: unknown */
        int32_t bytecode_offset; /* of the instruction; -1: unknown, or other code */
};

/**
 * Where an address is in the source.
 * @param pc        of an instruction: for a caller, one less than the return address.
 * @param bytecode  of the function whose frame it is, for code that does not refer to its own.
 * @param ret       at least one item.
 */
void v8_code_locate(const struct v8_heap *h, const struct v8_code *c, uint64_t pc, uint64_t bytecode,
                    struct v8_code_place *ret);

#endif
