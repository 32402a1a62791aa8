/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_JFR_JFR_CONSTANTS_H
#define CAIRN_PROFILE_FORMATS_JFR_JFR_CONSTANTS_H

/**
 * @file
 * Constant pools of a chunk: stacks, methods, classes, symbols, states and types of frames, by their key.
 *
 * Only the offset of a constant is recorded; its value is read when an event or another constant refers to it. Keys
 * have no meaning in other chunks.
 *
 * Threads: no shared state.
 */
#include "profile-formats/jfr/jfr_chunk.h"
#include "profile-formats/number_map.h"

#define JFR_POOLS_EVENT 1               /* type of the events that hold constant pools */
#define JFR_MEMO_UNSET (UINT32_MAX - 1) /* UINT32_MAX is PROFILE_NONE, a result */

struct jfr_constant {
        uint32_t offset; /* of its value in the chunk */
        uint32_t class;
        uint32_t memo; /* for the caller: what it was converted to; JFR_MEMO_UNSET at first */
};

struct jfr_constants {
        struct number_map keys;     /* by kind and key */
        struct jfr_constant *items; /* by number; owned */
        size_t capacity;
};

void jfr_constants_deinit(struct jfr_constants *c);

/** Remove all constants, before the next chunk. */
void jfr_constants_clear(struct jfr_constants *c);

/** Record the constants of an event of type JFR_POOLS_EVENT. ST_BAD_DATA; ST_TOO_BIG: LIMIT_JFR_ENTRIES. */
enum status jfr_constants_read(struct jfr_constants *c, struct jfr_chunk *chunk, struct reader r,
                               struct error *err) MUST_CHECK;

/** @return borrowed until the next jfr_constants_read(), or NULL if there is none with this key. */
struct jfr_constant *jfr_constants_find(const struct jfr_constants *c, enum jfr_kind kind, uint64_t key);

/** Read the value of a constant. False if it is NULL or malformed. */
bool jfr_constant_read(struct jfr_chunk *chunk, const struct jfr_constant *constant, struct jfr_value *ret) MUST_CHECK;

#endif
