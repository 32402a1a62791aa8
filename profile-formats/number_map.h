/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_NUMBER_MAP_H
#define CAIRN_PROFILE_FORMATS_NUMBER_MAP_H

/**
 * @file
 * Interning of fixed-size keys: distinct keys are numbered 0, 1, 2, ... in the order of their first use, as
 * dictionaries of encoders need it. Keys are up to 192 bits wide; unused parts are 0.
 */
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/hash/hash_table.h"

struct number_key {
        uint32_t parts[6];
};

struct number_map {
        struct number_key *keys; /* by number; owned */
        size_t capacity;
        uint32_t count;
        struct hash_table numbers; /* by key */
};

#define NUMBER_MAP_KEY_BYTES (sizeof(struct number_key) + 8) /* of a key, with its slot */

void number_map_deinit(struct number_map *m);
#define _cleanup_number_map_ _cleanup_(number_map_deinit)

/** Find or assign the number of a key; *fresh_ret (may be NULL) is set when it was assigned. */
enum status number_map_get(struct number_map *m, const struct number_key *key, uint32_t *ret, bool *fresh_ret,
                           struct error *err) MUST_CHECK;

/** False when the key has no number. */
bool number_map_find(const struct number_map *m, const struct number_key *key, uint32_t *ret) MUST_CHECK;

#endif
