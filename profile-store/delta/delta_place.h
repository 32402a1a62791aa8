/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_DELTA_DELTA_PLACE_H
#define CAIRN_PROFILE_STORE_DELTA_DELTA_PLACE_H

/**
 * @file
 * Where the log of a table is, and how its files are named.
 * Source: delta-io PROTOCOL.md, "Delta Log Entries" and "Checkpoints".
 */
#include "storage/storage.h"

#define DELTA_COMMIT_SUFFIX ".json"
#define DELTA_CHECKPOINT_SUFFIX ".checkpoint.parquet"
#define DELTA_LAST_CHECKPOINT "_last_checkpoint"
#define DELTA_VERSION_DIGITS 20

struct delta_place {
        struct storage *storage; /* borrowed */
        char *name;              /* of the log's folder, for messages; owned */
        const char *key;         /* of the same, without a slash at its end; within name */
};
#define _cleanup_delta_place_ _cleanup_(delta_place_deinit)

/** The log of a table, as in delta_table_open(). */
enum status delta_place_init(struct delta_place *p, struct storage *s, const char *folder,
                             struct error *err) MUST_CHECK;
void delta_place_deinit(struct delta_place *p);

/** The key of a file of the log; owned, NULL without memory. */
char *delta_make_log_key(const struct delta_place *p, const char *name);

/** The key of the file of a version; owned, NULL without memory. */
char *delta_make_version_key(const struct delta_place *p, int64_t version, const char *suffix);

/** The version at the start of a log file's name, and the text after it; -1 for other names. */
int64_t delta_parse_version(const char *name, const char **suffix_ret);

/** storage_list() of the log; visit() gets the name of each file instead of its key. */
enum status delta_list_log(const struct delta_place *p, storage_visit *visit, void *context,
                           struct error *err) MUST_CHECK;

#endif
