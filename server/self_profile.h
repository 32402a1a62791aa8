/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_SELF_PROFILE_H
#define CAIRN_SERVER_SELF_PROFILE_H

/**
 * @file
 * Profiles of the service itself, in its own tables: CPU time of all threads, as service.name "cairn" of the default
 * tenant. Workers are processes of their own and are not in it.
 *
 * A thread samples by agent/recorder.h with signals, and appends a batch every few seconds. What cannot be stored, as
 * when the queue is full, is dropped and counted like any sender's.
 */
#include "server/tenants.h"

#define SELF_PROFILE_SERVICE "cairn"

struct self_profile;

/** Start the thread. @param ret  self_profile_stop() it. */
enum status self_profile_start(struct tenants *tenants, struct self_profile **ret, struct error *err) MUST_CHECK;

/** Store what is left, and free. Takes NULL. */
void self_profile_stop(struct self_profile *p);

#endif
