/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_CORE_SELF_PROFILE_H
#define CAIRN_SERVER_CORE_SELF_PROFILE_H

/**
 * @file
 * Self-profiling: CPU time of all threads of the service, stored in its own tables as service.name "cairn" of the
 * default tenant. Workers are separate processes and are not included.
 *
 * A thread samples with sampling/recorder.h by signals, and appends a batch every few seconds. A batch that cannot be
 * stored, for example because the queue is full, is dropped and counted like a refused batch of any sender.
 */
#include "server/core/tenants.h"

#define SELF_PROFILE_SERVICE "cairn"

struct self_profile;

/** Start the thread. @param ret  self_profile_stop() it. */
enum status self_profile_start(struct tenants *tenants, struct self_profile **ret, struct error *err) MUST_CHECK;

/** Store the remaining samples, and free. Takes NULL. */
void self_profile_stop(struct self_profile *p);

#endif
