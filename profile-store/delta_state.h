/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_DELTA_STATE_H
#define CAIRN_PROFILE_STORE_DELTA_STATE_H

/**
 * @file
 * The state of a table after some commits: its live files by path, its
 * metadata, the progress of applications.
 *
 * Threads: a state belongs to one thread at a time; a snapshot is immutable.
 */
#include "profile-store/delta_actions.h"

struct delta_state {
        int64_t version;               /* -1: nothing applied yet */
        struct delta_live_file **slots; /* open addressing by path; owned references */
        size_t slot_count;             /* a power of two, or 0 */
        size_t file_count;
        struct json_object *metadata;  /* owned */
        bool has_protocol;
        struct delta_txn *txns;
        size_t txn_count;
        struct delta_snapshot *snapshot; /* of this version when taken before, one reference held */
};

void delta_state_init(struct delta_state *s);
void delta_state_deinit(struct delta_state *s);

struct delta_live_file *delta_state_find(const struct delta_state *s, const char *path);

/**
 * Make room for a, so that delta_state_apply() cannot fail, and check that a
 * makes sense: with strict, that its removes are live (else ST_NOT_FOUND) and
 * its adds are not (else ST_USAGE).
 */
enum status delta_state_prepare(struct delta_state *s, struct delta_actions *a, bool strict,
                                struct error *err) MUST_CHECK;

/** The state at version; takes what is in a and empties it. Only after delta_state_prepare(). */
void delta_state_apply(struct delta_state *s, struct delta_actions *a, int64_t version);

/** A counted snapshot of the state. */
enum status delta_state_snapshot(struct delta_state *s, struct delta_snapshot **ret, struct error *err) MUST_CHECK;

#endif
