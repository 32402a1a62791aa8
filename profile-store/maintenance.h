/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_MAINTENANCE_H
#define CAIRN_PROFILE_STORE_MAINTENANCE_H

/**
 * @file
 * The store's background job for what grows otherwise: samples past their retention, files that were removed from the
 * tables, orphans of interrupted writers, and the log itself.
 *
 * It runs every MAINTENANCE_INTERVAL_S on a thread of its own, and takes the writer lock for each step. A step that
 * fails is tried again by the next run.
 *
 * Threads: any, except start and stop.
 */
#include "profile-store/store_internal.h"

#define MAINTENANCE_INTERVAL_S 60
#define LISTING_INTERVAL_S 3600 /* between two searches for orphans and old log files */

enum status maintenance_start(struct profile_store *s, struct error *err) MUST_CHECK;

/** Wait for the run in progress and end the thread; nothing without one. s->stopping is set. */
void maintenance_stop(struct profile_store *s);

/** One run: retention, then table properties, then cleaning, whatever failed before. The first failure is returned. */
enum status store_maintain(struct profile_store *s, struct error *err) MUST_CHECK;

#endif
