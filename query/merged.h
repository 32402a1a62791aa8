/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_MERGED_H
#define CAIRN_QUERY_MERGED_H

/** @file One selection, scanned, summed per stack and resolved; what every view is made of. Private to query/. */
#include "query/frames.h"
#include "query/request.h"

struct merged {
        struct work_meter *meter; /* of the frame table; NULL: unlimited */
        const struct selection *selection; /* borrowed */
        struct stack_sums sums;
        const struct scan_stacks *stacks; /* of the scan */
        struct location_frames locations;
        int64_t total;
        uint64_t samples;
};

/** @param type  full id, or NULL when there are no samples at all. */
enum status merged_make(struct store_scan *scan, const struct selection *s, const char *type,
                        struct frame_table *frames, struct merged *ret, struct error *err) MUST_CHECK;
void merged_deinit(struct merged *m);
#define _cleanup_merged_ _cleanup_(merged_deinit)

#endif
