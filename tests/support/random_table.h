/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_RANDOM_TABLE_H
#define CAIRN_TESTS_SUPPORT_RANDOM_TABLE_H

/*
 * Symbol tables made of a seed: ranges of 1 to some 40 bytes with a gap now
 * and then, chains of 1 to 8 frames, names and paths that the version decides.
 */
#include "symbol-index/symbol_table.h"

struct random_table_spec {
        uint64_t seed;
        uint32_t range_count, function_count, file_count;
        uint64_t base;    /* first address */
        uint32_t version; /* appears in every line number: tells two tables of one seed apart */
        enum symbol_quality quality;
};

/** A build-id of 20 bytes made of n. */
struct build_id random_build_id(uint64_t n);

/** Owned, symbol_table_deinit(); its build-id is random_build_id(seed). Exits the test without memory. */
struct symbol_table random_table(const struct random_table_spec *spec);

/** Next of a pseudo-random sequence. */
uint64_t random_next(uint64_t *state);

#endif
