/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_KNOWN_ROWS_H
#define CAIRN_PROFILE_STORE_KNOWN_ROWS_H

/**
 * @file
 * What the tables hold already, so that a location is written once and a stack
 * once a day. Read from the parts when first asked for, kept up by the flush.
 *
 * Memory: 25 to 50 bytes for each location of the table, and for each stack of
 * the last KNOWN_DAYS days in use.
 * Threads: one at a time (the store's writer lock).
 */
#include "profile-store/key_map.h"
#include "profile-store/tables.h"

#define KNOWN_DAYS 4

struct known_day {
        bool loaded;
        int64_t day;
        uint64_t last_use;
        struct key_map stacks;
};

struct known_rows {
        bool loaded;              /* locations are */
        struct key_map locations; /* by key_of_u64() of the id */
        struct known_day days[KNOWN_DAYS];
        uint64_t uses;
};

void known_rows_deinit(struct known_rows *k);

enum status known_locations(struct known_rows *k, const struct tables *t, struct key_map **ret,
                            struct error *err) MUST_CHECK;

/** Valid until another day is asked for. */
enum status known_stacks(struct known_rows *k, const struct tables *t, int64_t day, struct key_map **ret,
                         struct error *err) MUST_CHECK;

/** The stacks of a day if they are loaded, else NULL. */
struct key_map *known_stacks_loaded(struct known_rows *k, int64_t day);

#endif
