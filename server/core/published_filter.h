/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_CORE_PUBLISHED_FILTER_H
#define CAIRN_SERVER_CORE_PUBLISHED_FILTER_H

/**
 * @file
 * The filter of the build-ids of a debuginfo space, which other services download: of stored objects, their aliases,
 * and objects of scanned trees. It is made when it is asked for and the last one is older than PUBLISHED_FILTER_S.
 *
 * Threads: any.
 */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define PUBLISHED_FILTER_S 10

struct debuginfo_space;

struct published_filter {
        pthread_mutex_t lock;
        uint8_t *file; /* owned; NULL: none was made */
        size_t size;
        int64_t made_ns; /* monotonic */
};

void published_filter_init(struct published_filter *p);
void published_filter_deinit(struct published_filter *p);

/**
 * @param ret owned, free().
 * @return ST_NOT_FOUND: the space has no complete list, since it asks upstreams, or its trees were not walked yet.
 * ST_TOO_BIG.
 */
enum status published_filter_get(struct debuginfo_space *s, uint8_t **ret, size_t *size_ret,
                                 struct error *err) MUST_CHECK;

#endif
