/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_LIFECYCLE_MAINTENANCE_H
#define CAIRN_PROFILE_STORE_LIFECYCLE_MAINTENANCE_H

/**
 * @file
 * The store's background maintenance, which bounds its size: removes samples past their retention, files removed from
 * the tables, orphans of interrupted writers, and old parts of the log.
 *
 * It runs every MAINTENANCE_INTERVAL_S on its own thread, and takes the writer lock for each step. A step that fails is
 * retried by the next run.
 *
 * Threads: any, except start and stop.
 */
#include "profile-store/core/profile_store_internal.h"

#define MAINTENANCE_INTERVAL_S 60
#define LISTING_INTERVAL_S 3600 /* between searches for orphans and old log files */

enum status maintenance_start(struct profile_store *s, struct error *err) MUST_CHECK;

/** Wait for the current run and end the thread, if there is one. s->stopping must be set. */
void maintenance_stop(struct profile_store *s);

/**
 * One run: retention, table properties, cleaning; a failure does not skip the later steps. Returns the first failure.
 */
enum status store_maintain(struct profile_store *s, struct error *err) MUST_CHECK;

#endif
