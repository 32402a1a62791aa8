/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_MERGED_PROFILE_H
#define CAIRN_QUERY_MERGED_PROFILE_H

/** @file A selection summed by stack and resolved: the input of every view. Private to query/. */
#include "query/frames.h"
#include "query/request.h"

struct merged_profile {
        struct work_meter *meter;                /* of the frame table; NULL: unlimited */
        const struct query_selection *selection; /* borrowed */
        struct stack_sums sums;
        const struct scan_stacks *stacks; /* of the scan */
        struct location_frames locations;
        int64_t total;
        uint64_t samples;
};

#endif
