/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_DELTA_DELTA_STATE_H
#define CAIRN_PROFILE_STORE_DELTA_DELTA_STATE_H

/**
 * @file
 * The state of a table at one version: live files by path, removed files that are remembered, metaData, and the
 * transaction version of each application.
 *
 * Threads: a state belongs to one thread at a time; a snapshot is immutable.
 */
#include "common/hash/hash_table.h"
#include "profile-store/delta/delta_actions.h"
#include "storage/storage.h"

/* Files, looked up by path. */
struct delta_file_set {
        struct delta_counted_file **items; /* owned references, unordered */
        size_t count, capacity;
        struct hash_table by_path; /* entries are indexes into items */
};

/* A batch whose rows a commit added. */
struct delta_batch_id {
        struct hash128 id;
        int64_t version;
};

/* A path is in live, in removed, or in neither. */
struct delta_state {
        int64_t version;                 /* -1: nothing applied yet */
        struct storage_info last_commit; /* the file of this version's commit; its etag is "" when it was not read */
        int64_t checkpoint_version;      /* newest one read or written; 0 without one */
        uint64_t recent_actions;         /* files added and removed since the checkpoint */
        struct delta_file_set live, removed;
        struct json_object *metadata; /* owned */
        bool has_protocol;
        struct delta_txn *txns;
        size_t txn_count, txn_capacity;
        struct delta_batch_id *batch_ids; /* of the commits after the checkpoint, oldest first */
        size_t batch_id_count, batch_id_capacity;
        size_t taken_batch_ids;          /* of them, delta_table_take_batch_ids() returned */
        struct delta_snapshot *snapshot; /* of this version if it was requested before; one reference */
};

void delta_state_init(struct delta_state *s);
void delta_state_deinit(struct delta_state *s);

/** Find a live file; NULL without one. */
struct delta_counted_file *delta_state_find(const struct delta_state *s, const char *path);

/**
 * Reserve memory for a, so that delta_state_apply() cannot fail. With strict, also
 * check that its removes are live (else ST_NOT_FOUND) and its adds are not (else
 * ST_USAGE).
 */
enum status delta_state_prepare(struct delta_state *s, struct delta_actions *a, bool strict,
                                struct error *err) MUST_CHECK;

/** Advance the state to version; takes the contents of a and empties it. Call delta_state_prepare() first. */
void delta_state_apply(struct delta_state *s, struct delta_actions *a, int64_t version);

/** Forget the ids of batches of commits up to a version: an object has them. */
void delta_state_forget_batch_ids(struct delta_state *s, int64_t version);

/** Drop a removed file, unless its path was added or removed again. */
void delta_state_forget(struct delta_state *s, const struct delta_file *f);

/**
 * Whether a, read from the log, is the same table as b: schema, properties, transactions and live files are equal, and
 * a has all removed files of b.
 */
bool delta_state_matches(const struct delta_state *a, const struct delta_state *b);

/** A reference to a snapshot of the live files. */
enum status delta_state_get_snapshot(struct delta_state *s, struct delta_snapshot **ret, struct error *err) MUST_CHECK;

/** A reference to a list of the removed files; release it as a snapshot. */
enum status delta_state_get_removed(const struct delta_state *s, struct delta_snapshot **ret,
                                    struct error *err) MUST_CHECK;

#endif
