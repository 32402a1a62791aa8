/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PIPELINE_RESYMBOLIZER_H
#define CAIRN_PIPELINE_RESYMBOLIZER_H

/**
 * @file
 * Resymbolizer: rewrites the locations of objects whose symbols changed. Objects that change during a round, or shortly
 * before it, share the next round.
 *
 * A failed round is bisected, down to the objects that fail alone. These are retried separately with exponential
 * backoff, so that one object never delays the others.
 *
 * A build-id is written to the resymbolize-queue file before its symbols change and removed after its round, so it is
 * re-symbolized at the next start after a crash in between.
 *
 * Threads: any, except start and stop.
 */
#include "common/build_id.h"
#include "pipeline/unresolved_counts.h"
#include "profile-store/profile_store.h"

struct resymbolizer;

/**
 * Load the queue from the file at queue_path and start.
 * @param stores  whose locations are rewritten; borrowed.
 * @param counts  notified after each round; borrowed; NULL is allowed.
 */
enum status resymbolizer_start(struct profile_store *const *stores, size_t store_count,
                               struct unresolved_counts *counts, const char *queue_path, struct resymbolizer **ret,
                               struct error *err) MUST_CHECK;
/** Unfinished objects stay in the file. NULL is allowed. */
void resymbolizer_stop(struct resymbolizer *r);

/**
 * A file of this object was uploaded: the time until its locations have the new names is counted
 * (cairn_resymbolize_delays_total). The last 256 uploads are remembered.
 */
void resymbolizer_note_upload(struct resymbolizer *r, const struct build_id *id);

/** The symbols of this object are about to change. Durable when it returns. */
enum status resymbolizer_expect_change(struct resymbolizer *r, const struct build_id *id, struct error *err) MUST_CHECK;
/**
 * The change ended. If changed: re-symbolize soon; otherwise drop the entry, unless other jobs expect a change. Call
 * once per resymbolizer_expect_change().
 */
void resymbolizer_end_change(struct resymbolizer *r, const struct build_id *id, bool changed);

#endif
