/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo-store/active_uploads.h"

#include <assert.h>
#include <fcntl.h>
#include <string.h>

#include "common/clock.h"
#include "common/limits.h"

#define IDLE_NS (INT64_C(1000000000) * LIMIT_PARTIAL_IDLE_S)

void active_uploads_init(struct active_uploads *a)
{
        pthread_mutex_init(&a->lock, NULL);
        a->first = NULL;
}

void active_uploads_deinit(struct active_uploads *a)
{
        pthread_mutex_destroy(&a->lock);
}

void active_upload_register(struct active_uploads *a, struct active_upload *u, const char *path, int fd)
{
        assert(path && fd >= 0);
        *u = (struct active_upload){ .path = path, .fd = fd, .progress_ns = monotonic_ns() };
        pthread_mutex_init(&u->busy, NULL);
        pthread_mutex_lock(&a->lock);
        u->next = a->first;
        a->first = u;
        pthread_mutex_unlock(&a->lock);
}

static void unlink_upload(struct active_uploads *a, struct active_upload *u)
{
        struct active_upload **at = &a->first;

        while (*at && *at != u)
                at = &(*at)->next;
        if (*at)
                *at = u->next;
}

bool active_upload_unregister(struct active_uploads *a, struct active_upload *u)
{
        bool is_taken_over;

        pthread_mutex_lock(&a->lock);
        unlink_upload(a, u);
        is_taken_over = u->is_taken_over;
        pthread_mutex_unlock(&a->lock);
        pthread_mutex_destroy(&u->busy);
        return !is_taken_over;
}

enum status active_upload_lock(struct active_upload *u, struct error *err)
{
        pthread_mutex_lock(&u->busy);
        if (!u->is_taken_over)
                return ST_OK;
        pthread_mutex_unlock(&u->busy);
        return error_set(err, ST_BUSY, "another connection took over this upload");
}

void active_upload_unlock(struct active_upload *u)
{
        assert(!u->is_taken_over);
        u->progress_ns = monotonic_ns();
        pthread_mutex_unlock(&u->busy);
}

static bool take_over_idle_upload(struct active_uploads *a, struct active_upload *u, int *fd_ret)
{
        int fd = -1;

        if (pthread_mutex_trylock(&u->busy)) /* bytes are being appended */
                return false;
        if (monotonic_ns() - u->progress_ns >= IDLE_NS)
                fd = fcntl(u->fd, F_DUPFD_CLOEXEC, 0);
        if (fd >= 0) {
                u->is_taken_over = true;
                unlink_upload(a, u);
                *fd_ret = fd;
        }
        pthread_mutex_unlock(&u->busy);
        return fd >= 0;
}

bool active_upload_take_over(struct active_uploads *a, const char *path, int *fd_ret)
{
        struct active_upload *u;
        bool ret;

        pthread_mutex_lock(&a->lock);
        for (u = a->first; u && strcmp(u->path, path) != 0;)
                u = u->next;
        ret = u && take_over_idle_upload(a, u, fd_ret);
        pthread_mutex_unlock(&a->lock);
        return ret;
}
