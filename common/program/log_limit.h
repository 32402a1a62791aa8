/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_PROGRAM_LOG_LIMIT_H
#define CAIRN_COMMON_PROGRAM_LOG_LIMIT_H

/**
 * @file
 * Token-bucket rate limit of log messages, one bucket per kind: level, subsystem and format. Messages that an outsider
 * can trigger repeatedly (a request, an upload, a broken file) cannot fill the disk with the log.
 *
 * Threads: any, without locks, also after fork().
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/limits.h"

struct log_limit {
        struct log_bucket {
                _Atomic uint64_t key;    /* 0: free */
                _Atomic int64_t full_ns; /* time at which the bucket is full again; monotonic clock */
                _Atomic uint64_t suppressed;
        } buckets[LIMIT_LOG_KINDS];
};

/**
 * Whether another message of this kind may be written.
 *
 * @param key             key of the kind, never 0
 * @param suppressed_ret  messages of this kind refused since the last admitted one
 */
bool log_limit_admit(struct log_limit *l, uint64_t key, int64_t now_ns, uint64_t *suppressed_ret);

#endif
