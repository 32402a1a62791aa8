/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_RATCHET_RATCHET_H
#define CAIRN_TESTS_RATCHET_RATCHET_H

/*
 * Paths whose instructions are counted (tests/ratchet/run). All inputs are generated here: no file of the machine is
 * read, so that the counts are the same on every machine.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct ratchet_path {
        const char *name;
        void (*prepare)(void); /* not counted */
        void (*run)(void);     /* counted; uses one thread */
};

extern const struct ratchet_path symbol_paths[], extract_paths[], unwind_paths[], profile_paths[],
        store_paths[]; /* each ends with a NULL name */

/* Exit unless st is ST_OK. */
void require_ok(enum status st, const struct error *err);

/* Exit unless the condition, which the message names, is true. */
void require_true(bool condition, const char *what);

/* A new directory, removed when the program ends; owned by the program. */
const char *ratchet_directory(void);

/* Next value below `below` of the one pseudo-random sequence. */
uint32_t draw_below(uint32_t below);

#endif
