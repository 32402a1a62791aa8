/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_TABLES_KNOWN_ROWS_H
#define CAIRN_PROFILE_STORE_TABLES_KNOWN_ROWS_H

/**
 * @file
 * Cache of the ids that the tables hold, so that a flush writes each location once, and each stack once per day. Loaded
 * from the parts on first use, extended by each flush.
 *
 * When other nodes write the tables too, the ids of files that a set has not seen are added before it is used; after a
 * removal of rows it is loaded again.
 *
 * Memory: 29 to 57 bytes per location of the table, and per stack of the KNOWN_DAYS most recently used days, from the
 * budget of MEMORY_CACHES. A set that does not fit is not cached: each flush then reads the id column of the parts.
 * Threads: one at a time, under the store's writer lock.
 */
#include "profile-store/rows/key_map.h"
#include "profile-store/tables/tables.h"

#define KNOWN_DAYS 4
#define KNOWN_ROW UINT64_MAX

struct known_set {
        bool loaded;
        struct key_map keys;
        struct tables *seen; /* has the ids of all files of these, and of later ones of this node; one reference */
};

struct known_day {
        int64_t day;
        uint64_t last_use; /* 0: unused */
        struct known_set stacks;
};

struct known_rows {
        struct known_set locations; /* keys of make_u64_key() */
        struct known_day days[KNOWN_DAYS];
        uint64_t uses;
        const char *node; /* NULL: no other process writes the tables. Else the one whose flushes are recorded */
};

/** Forget all ids. */
void known_rows_deinit(struct known_rows *k);

/** Set the value of each key of ids that the table of locations has to KNOWN_ROW. */
enum status known_rows_mark_locations(struct known_rows *k, struct tables *t, struct key_map *ids,
                                      struct error *err) MUST_CHECK;

/** The same for the stacks of one day. */
enum status known_rows_mark_stacks(struct known_rows *k, struct tables *t, int64_t day, struct key_map *ids,
                                   struct error *err) MUST_CHECK;

/** Forget locations that a commit is about to remove; call before the commit. */
void known_rows_forget_locations(struct known_rows *k);

/** Record that the table has all these ids; call after their commit. */
void known_rows_add_locations(struct known_rows *k, const struct key_map *ids);
void known_rows_add_stacks(struct known_rows *k, int64_t day, const struct key_map *ids);

#endif
