/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_RAW_QUEUE_INTERNAL_H
#define CAIRN_PROFILE_STORE_RAW_QUEUE_INTERNAL_H

#include <pthread.h>

#include "profile-store/raw_queue.h"

struct raw_queue_segment {
        uint64_t first, last; /* positions; last < first while it is empty */
        uint64_t bytes;
};

/* Positions that were written, not acknowledged, and given up by a recovery. */
struct raw_queue_gap {
        uint64_t first, last;
};

struct raw_queue {
        char *dir;
        pthread_mutex_t lock;
        pthread_cond_t changed;
        struct raw_queue_segment *segments; /* by position; the last one is written to while fd >= 0 */
        size_t segment_count;
        int fd;
        uint64_t written, synced; /* positions */
        bool syncing;             /* somebody is in fdatasync() without the lock; fd stays open */
        struct error failure;     /* code is not ST_OK: refuse everything */
        struct raw_queue_gap *gaps; /* one for each recovery that gave positions up */
        size_t gap_count, gap_capacity;
};

/* DIR/NNNN.queueSUFFIX, owned. */
char *raw_queue_segment_path(const char *dir, uint64_t first, const char *suffix);
enum status raw_queue_add_segment(struct raw_queue *q, struct raw_queue_segment segment,
                                  struct error *err) MUST_CHECK;

#endif
