/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SANDBOX_WORKER_HEALTH_H
#define CAIRN_SANDBOX_WORKER_HEALTH_H

/**
 * @file
 * Whether the workers of one purpose can be started. A failure to start is not a property of the file that the worker
 * would have read: it is logged once, when it begins, and again when it ends.
 *
 * Threads: one at a time.
 */
#include <stdbool.h>

#include "common/error.h"

struct worker_health {
        const char *missing; /* what does not happen meanwhile, such as "no symbols are uploaded" */
        bool failing;
};

/** Note the result of a worker. @return whether it could not be started. */
bool worker_health_note(struct worker_health *h, enum status st, const struct error *err);

#endif
