/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOL_INDEX_SYMBOL_STATE_H
#define CAIRN_SYMBOL_INDEX_SYMBOL_STATE_H

/**
 * @file
 * States of an address: resolved, or the reason why it has no frames, with a description of each for users
 * (docs/reasons.md has the same texts; a test compares them). Also the fingerprints of the stored files from which an
 * object's symbols were extracted.
 */
#include <stdbool.h>
#include <stdint.h>

#include "elf-image/quality.h"

/** SYMBOL_RESOLVED, or why an address has no frames. The names are public (tables, metrics, JSON). */
enum symbol_state {
        SYMBOL_RESOLVED = 0,  /* "resolved" */
        SYMBOL_NO_BUILD_ID,   /* "no_build_id": the mapping was not identified */
        SYMBOL_NO_DEBUGINFO,  /* "no_debuginfo": neither uploaded nor (yet) found at an upstream */
        SYMBOL_PENDING,       /* "pending": stored, waiting for the indexer */
        SYMBOL_FAILED,        /* "failed": its debuginfo could not be read; the object's record has the error */
        SYMBOL_OUTSIDE,       /* "outside": no range covers the address; unknown whether it is in the object */
        SYMBOL_SENDER,        /* "sender": frames were sent with the sample */
        SYMBOL_NO_ADDRESS,    /* "no_address": the sender gave an object but no address */
        SYMBOL_STRIPPED,      /* "stripped": the object is indexed but has no ranges */
        SYMBOL_UNCOVERED,     /* "uncovered": in a loaded segment of the object, but no range covers it */
        SYMBOL_NOT_IN_OBJECT, /* "not_in_object": outside of the object's loaded segments */
        SYMBOL_TOO_LARGE,     /* "too_large": it has more frames than fit into the flush (LIMIT_FLUSH_FRAMES) */
        SYMBOL_STATE_COUNT,
};
const char *symbol_state_name(enum symbol_state s);

/** The state with that name; false for any other text. */
bool symbol_state_parse(const char *name, enum symbol_state *ret);

/** The meaning of the state, one sentence without a full stop. */
const char *symbol_state_meaning(enum symbol_state s);

/** Advice to the operator, one sentence without a full stop. */
const char *symbol_state_next_step(enum symbol_state s);

/** True for a reason to have no frames: every state but resolved and sender. */
bool symbol_state_is_reason(enum symbol_state s);

/** Whether better debuginfo of the object may yield frames. */
bool symbol_state_wants_debuginfo(enum symbol_state s);

/**
 * Whether an upstream is asked for the object's debuginfo: it has none, or its best symbols have neither lines nor
 * inlined frames. Frames that a sender named are left as they are.
 * @param quality  of the object's symbols at the time of the lookup.
 */
bool symbol_state_wants_upstream(enum symbol_state s, enum symbol_quality quality);

#define SYMBOL_INPUTS_MAX 5 /* debuginfo, supplementary, executable, symbols, package */

/**
 * Fingerprints of the stored files that were read for an object's symbols; a file without one is new. Modification
 * times do not suffice: they have a resolution of seconds, clocks are adjusted, and a file may be stored while an older
 * one is being read.
 */
struct symbol_inputs {
        uint8_t count;
        uint64_t items[SYMBOL_INPUTS_MAX]; /* first eight bytes of each file's SHA-256 */
};

/** @param inputs has fewer than SYMBOL_INPUTS_MAX. */
void symbol_inputs_add(struct symbol_inputs *inputs, const uint8_t sha256[32]);
bool symbol_inputs_contain(const struct symbol_inputs *inputs, const uint8_t sha256[32]);

#endif
