/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_LIVE_H
#define CAIRN_DEBUGINFO_STORE_LIVE_H

/**
 * @file
 * Resumable uploads that a connection adds to. A connection whose client has
 * gone without a word looks alive until its time is over; the client that comes
 * back meanwhile takes the upload over when nothing was added for
 * LIMIT_PARTIAL_IDLE_S.
 *
 * The lock of the file moves along: it belongs to the open file, which both
 * descriptors name.
 *
 * Threads: any; one upload belongs to one connection.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct live_upload {
        struct live_upload *next;
        const char *path;     /* borrowed */
        int fd;
        pthread_mutex_t busy; /* held while something is added */
        int64_t moved_ns;     /* when something was, last */
        bool is_taken;
};

/** All of one store. */
struct live_uploads {
        pthread_mutex_t lock;
        struct live_upload *first;
};

void live_uploads_init(struct live_uploads *l);
void live_uploads_deinit(struct live_uploads *l);

void live_add(struct live_uploads *l, struct live_upload *u, const char *path, int fd);
/** Nobody takes it over from now on. False when somebody has. */
bool live_remove(struct live_uploads *l, struct live_upload *u);

/** Around adding. ST_BUSY when it was taken over: then live_leave() is not called. */
enum status live_enter(struct live_upload *u, struct error *err) MUST_CHECK;
void live_leave(struct live_upload *u);

/** Take over who adds nothing to the file at path. @param fd_ret owned. False: nobody, or somebody who adds. */
bool live_take(struct live_uploads *l, const char *path, int *fd_ret);

#endif
