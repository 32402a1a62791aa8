/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_PROFILES_H
#define CAIRN_TESTS_SUPPORT_PROFILES_H

/*
 * Small profiles and symbol tables for tests of the store and of queries.
 */
#include <stdbool.h>

#include "profile-formats/profile.h"
#include "symbol-index/lookup.h"

/* A profile under construction: one type, and one mapping with one build-id. */
struct test_profile {
        struct profile p;
        uint32_t type, mapping;
};

#define TEST_PROFILE_PERIOD 52631578 /* of the type, in the unit of its values */

void test_profile_init(struct test_profile *t, const char *build_id_hex, const char *mapping);
void test_profile_deinit(struct test_profile *t);

uint32_t test_string(struct test_profile *t, const char *s);

/* An unresolved location of the mapping. */
uint32_t test_location(struct test_profile *t, uint64_t address);

/* A location resolved by the sender; build-id and address only with the mapping. */
uint32_t test_named_location(struct test_profile *t, bool in_mapping, uint64_t address, const char *function,
                             const char *file, int64_t line);

/* A sample with a stack of count locations, leaf first, and "key=value" labels ended by NULL. */
void test_sample(struct test_profile *t, int64_t time_ns, int64_t value, const uint32_t *locations, uint32_t count,
                 const char *const *labels);

/* Load symbols for [start, start + 0x100 * count): function "NAME_i" at FILE:10 * (i + 1) with an inlined
 * "NAME_i_inner". */
void test_load_symbols(struct symbol_index *index, const char *build_id_hex, enum symbol_quality quality,
                       uint64_t start, uint32_t count, const char *name, const char *file);

#endif
