/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_ACTIVE_UPLOADS_H
#define CAIRN_DEBUGINFO_STORE_ACTIVE_UPLOADS_H

/**
 * @file
 * Active resumable uploads. A connection whose client vanished looks alive until its timeout; a client that reconnects
 * takes over the upload once it has been idle for LIMIT_PARTIAL_IDLE_S.
 *
 * The file lock is transferred, too: it belongs to the open file description, which both descriptors share.
 *
 * Threads: any; one upload belongs to one connection.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct active_upload {
        struct active_upload *next;
        const char *path; /* borrowed */
        int fd;
        pthread_mutex_t busy; /* held while bytes are appended */
        int64_t progress_ns;  /* when bytes were last appended */
        bool is_taken_over;
};

/** The active uploads of one store. */
struct active_uploads {
        pthread_mutex_t lock;
        struct active_upload *first;
};

void active_uploads_init(struct active_uploads *a);
void active_uploads_deinit(struct active_uploads *a);

void active_upload_register(struct active_uploads *a, struct active_upload *u, const char *path, int fd);
/** End the registration: the upload cannot be taken over afterwards. False if it already was. */
bool active_upload_unregister(struct active_uploads *a, struct active_upload *u);

/** Lock around appending. ST_BUSY if it was taken over: do not call active_upload_unlock() then. */
enum status active_upload_lock(struct active_upload *u, struct error *err) MUST_CHECK;
void active_upload_unlock(struct active_upload *u);

/** Take over the idle upload of the file at path. @param fd_ret owned. False if there is none or it is not idle. */
bool active_upload_take_over(struct active_uploads *a, const char *path, int *fd_ret);

#endif
