/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_SHARED_MISSING_ADVICE_H
#define CAIRN_CLI_SHARED_MISSING_ADVICE_H

/**
 * @file
 * What the samples of a service lack in symbols, and what to do: the next steps of /api/v1/debuginfo/missing, each
 * once, with the objects that it is for. So `cairn status` and `cairn doctor` advise the same as the list of missing
 * debuginfo.
 *
 * Threads: no shared state.
 */
#include "common/error.h"
#include "common/memory/buf.h"

#define MISSING_ADVICE_STEPS 4 /* those of the objects with the most samples; other objects are counted only */
#define MISSING_ADVICE_PATH "/api/v1/debuginfo/missing?from=now-1h&limit=1000"

struct missing_step {
        char text[400];        /* what to do */
        char object[256];      /* the object with the most samples */
        double percent;        /* of the samples, those that pass through this object */
        uint64_t more_objects; /* with the same step */
};

struct missing_advice {
        uint64_t object_count;
        struct missing_step steps[MISSING_ADVICE_STEPS]; /* by samples of their objects */
        size_t step_count;
};

/** Read the answer to MISSING_ADVICE_PATH. False: it is none. */
bool missing_advice_read(const struct buf *body, struct missing_advice *ret);

/** "PATH (20.0% of samples) and 3 more objects", printable. */
const char *missing_step_format(const struct missing_step *step, char *ret, size_t size);

#endif
