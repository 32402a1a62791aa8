/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_TABLES_PART_FETCH_H
#define CAIRN_PROFILE_STORE_TABLES_PART_FETCH_H

/**
 * @file
 * Fetches what a query needs of files in an object store into the local cache, before it reads them one by one: the
 * files of a group at the same time, each with two round trips, one for its end with the footer and one for all
 * columns. Files of which the cache has the end are left out, so a query whose files are cached costs nothing.
 *
 * A column is fetched although the query may not need it in the end: up to PART_FETCH_CHUNK_BYTES this takes less time
 * than the round trip that it saves. Larger ones are fetched when they are read.
 */
#include "common/threads/work_meter.h"
#include "profile-store/tables/part_read.h"

#define PART_FETCH_GROUP 32 /* files */
#define PART_FETCH_CHUNK_BYTES MiB(4)
#define PART_FETCH_MAX_BYTES MiB(256) /* of columns in one call, and at most half of the cache */

struct part_fetch {
        const char *const *columns; /* those that a file lacks are ignored */
        size_t column_count;
        bool (*wants_group)(void *context, const struct part_file *f, uint32_t group); /* any thread; NULL: all */
        void *context;
};

/**
 * @param meter  checked for each group of files; NULL: unlimited.
 * @return ST_OK, also when a file cannot be read, which its reader reports; ST_OS when the object store does not
 * answer; failures of the meter.
 */
enum status part_files_fetch(struct table_part *const *parts, size_t count, const struct part_fetch *what,
                             struct work_meter *meter, struct error *err) MUST_CHECK;

/** Whether the file is local, or the cache has its end. */
bool is_part_at_hand(const struct table_part *part);

#endif
