/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PIPELINE_OBJECT_FOLLOW_H
#define CAIRN_PIPELINE_OBJECT_FOLLOW_H

/**
 * @file
 * A thread that keeps the records of objects equal to the table of objects, which other services write: of a replica
 * (debuginfo_store_open_replica()), and of one of several nodes.
 */
#include "debuginfo-store/debuginfo_store.h"

#define OBJECT_FOLLOW_S 5

struct object_follow;

/**
 * @param store  borrowed.
 * @param changed  called on the thread after others changed the table; may be NULL.
 */
enum status object_follow_start(struct debuginfo_store *store, void (*changed)(void *context), void *context,
                                struct object_follow **ret, struct error *err) MUST_CHECK;
/** NULL is allowed. */
void object_follow_stop(struct object_follow *r);

#endif
