/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_RANDOM_TABLE_H
#define CAIRN_TESTS_SUPPORT_RANDOM_TABLE_H

/*
 * Symbol tables generated from a seed: ranges of 1 to about 40 bytes with occasional gaps, chains of 1 to 8 frames,
 * names and paths that depend on the version.
 */
#include "symbol-index/symbol_table.h"

struct random_table_spec {
        uint64_t seed;
        uint32_t range_count, function_count, file_count;
        uint64_t base;    /* first address */
        uint32_t version; /* part of every line number: distinguishes two tables of one seed */
        enum symbol_quality quality;
};

/** A 20-byte build-id derived from n. */
struct build_id random_build_id(uint64_t n);

/** Owned, symbol_table_deinit(); its build-id is random_build_id(seed). Exits the test on allocation failure. */
struct symbol_table random_table(const struct random_table_spec *spec);

/** Next value of a pseudo-random sequence. */
uint64_t random_next(uint64_t *state);

#endif
