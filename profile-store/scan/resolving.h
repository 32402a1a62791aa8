/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_SCAN_RESOLVING_H
#define CAIRN_PROFILE_STORE_SCAN_RESOLVING_H

/*
 * State of store_scan_resolve(): scan_resolve.c finds the stacks and numbers their locations, scan_locations.c finds
 * the rows of the locations.
 *
 * Files that the local cache lacks are fetched when those that it has do not suffice. A file that cannot be read, as
 * while the object store is away, fails the scan only if a stack or a location is in no other file. Unless the file
 * does not exist, each thread asks once at most, and reads others as far as the cache has them.
 */
#include <pthread.h>

#include "profile-store/scan/scan_internal.h"

struct stack_ids {
        const uint64_t *ids; /* NULL: not found yet */
        uint32_t count;
};

struct resolving {
        struct store_scan *scan;
        struct key_map stack_numbers; /* id to index in the sum; read by several threads */
        pthread_mutex_t lock;         /* protects the members below, and the scan's arena while parts are read */
        struct stack_ids *stacks;
        size_t stack_count, missing;
        size_t parts_first, parts_left; /* of a group of parts of stacks: left to read; newest first */
        enum status failed;             /* of a file that could not be read, with failure; ST_OK: none */
        struct error failure;
        bool is_away; /* a failure other than that a file does not exist: nothing is asked for any more */
        struct key_map location_numbers; /* location id to number, in order of first use by the stacks */
        uint32_t *places;                /* by number: index in locations, or a value below; in the scan's arena */
        struct scan_location *locations; /* in the scan's arena; room for all ids of the map */
        size_t location_count;           /* so far */
};

/* Values of `places` of locations without an index. */
#define NOT_FOUND UINT32_MAX
#define FOUND_IN_PART (UINT32_MAX - 1)

/* Whether this is the failure of a file, which is noted: others may have all that is wanted. Takes the lock. */
bool note_unread_file(struct resolving *r, enum status st, const struct error *err);

/* While the store is away nothing is fetched: it would be waited for again. Takes the lock. */
enum status open_resolved_part(struct resolving *r, const struct table_part *part, struct part_file *ret,
                               struct error *err) MUST_CHECK;

/*
 * Find the rows of the numbered locations in parts, then in the head, and set `locations` and `places`. Locations of
 * parts have the order of the tables, independent of threads. Those without a row stay NOT_FOUND.
 */
enum status find_location_rows(struct resolving *r, struct error *err) MUST_CHECK;

#endif
