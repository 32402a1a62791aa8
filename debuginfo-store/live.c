/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo-store/live.h"

#include <fcntl.h>
#include <string.h>

#include "common/clock.h"
#include "common/limits.h"

#define IDLE_NS (INT64_C(1000000000) * LIMIT_PARTIAL_IDLE_S)

void live_uploads_init(struct live_uploads *l)
{
        pthread_mutex_init(&l->lock, NULL);
        l->first = NULL;
}

void live_uploads_deinit(struct live_uploads *l)
{
        pthread_mutex_destroy(&l->lock);
}

void live_add(struct live_uploads *l, struct live_upload *u, const char *path, int fd)
{
        *u = (struct live_upload){ .path = path, .fd = fd, .moved_ns = monotonic_ns() };
        pthread_mutex_init(&u->busy, NULL);
        pthread_mutex_lock(&l->lock);
        u->next = l->first;
        l->first = u;
        pthread_mutex_unlock(&l->lock);
}

static void unlink_from(struct live_uploads *l, struct live_upload *u)
{
        struct live_upload **at = &l->first;

        while (*at && *at != u)
                at = &(*at)->next;
        if (*at)
                *at = u->next;
}

bool live_remove(struct live_uploads *l, struct live_upload *u)
{
        bool is_taken;

        pthread_mutex_lock(&l->lock);
        unlink_from(l, u);
        is_taken = u->is_taken;
        pthread_mutex_unlock(&l->lock);
        pthread_mutex_destroy(&u->busy);
        return !is_taken;
}

enum status live_enter(struct live_upload *u, struct error *err)
{
        pthread_mutex_lock(&u->busy);
        if (!u->is_taken)
                return ST_OK;
        pthread_mutex_unlock(&u->busy);
        return error_set(err, ST_BUSY, "another connection has taken this upload over");
}

void live_leave(struct live_upload *u)
{
        u->moved_ns = monotonic_ns();
        pthread_mutex_unlock(&u->busy);
}

static bool take(struct live_uploads *l, struct live_upload *u, int *fd_ret)
{
        int fd = -1;

        if (pthread_mutex_trylock(&u->busy)) /* it adds right now */
                return false;
        if (monotonic_ns() - u->moved_ns >= IDLE_NS)
                fd = fcntl(u->fd, F_DUPFD_CLOEXEC, 0);
        if (fd >= 0) {
                u->is_taken = true;
                unlink_from(l, u);
                *fd_ret = fd;
        }
        pthread_mutex_unlock(&u->busy);
        return fd >= 0;
}

bool live_take(struct live_uploads *l, const char *path, int *fd_ret)
{
        struct live_upload *u;
        bool ret;

        pthread_mutex_lock(&l->lock);
        for (u = l->first; u && strcmp(u->path, path) != 0;)
                u = u->next;
        ret = u && take(l, u, fd_ret);
        pthread_mutex_unlock(&l->lock);
        return ret;
}
