/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_HEALER_H
#define CAIRN_SERVER_HEALER_H

/**
 * @file
 * Rewrites the locations of objects whose symbols changed. Objects that change
 * while a round runs, or within a moment before it, share the next round.
 *
 * A round that fails is repeated with each half of its objects, down to those
 * that fail alone. These wait apart, longer after each failure, so that one
 * object never keeps the others from their symbols.
 *
 * A build-id is written to the heal queue file before its symbols change and
 * leaves it after its round, so a crash in between heals at the next start.
 *
 * Threads: any, except start and stop.
 */
#include "common/build_id.h"
#include "profile-store/store.h"

struct healer;

/** Starts with what the file at queue_path holds. */
enum status healer_start(struct profile_store *profiles, const char *queue_path, struct healer **ret,
                         struct error *err) MUST_CHECK;
/** What was not healed stays in the file. NULL is allowed. */
void healer_stop(struct healer *h);

/** The symbols of this object are about to change. Durable when it returns. */
enum status healer_expect(struct healer *h, const struct build_id *id, struct error *err) MUST_CHECK;
/** They have changed: heal soon. Or they have not: forget, unless others expect it. Once for each healer_expect(). */
void healer_changed(struct healer *h, const struct build_id *id, bool changed);

#endif
