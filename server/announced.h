/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_ANNOUNCED_H
#define CAIRN_SERVER_ANNOUNCED_H

/**
 * @file
 * What clients of the Connect protocol said of a file before they send it: the
 * upload itself carries the build-id only. The last ANNOUNCED_MAX are kept, in
 * memory: without them a file has no name, and is taken all the same.
 *
 * Threads: any.
 */
#include <pthread.h>

#include "common/build_id.h"

#define ANNOUNCED_MAX 256

struct announced_file {
        struct build_id build_id;
        struct build_id htlhash; /* size 0 unknown */
        char name[128];
};

struct announced {
        pthread_mutex_t lock; /* PTHREAD_MUTEX_INITIALIZER; the others zero */
        struct announced_file files[ANNOUNCED_MAX];
        size_t next; /* to be overwritten */
};

void announced_put(struct announced *a, const struct announced_file *file);
/** Just the build-id when nothing is known of it. */
void announced_get(struct announced *a, const struct build_id *id, struct announced_file *ret);

#endif
