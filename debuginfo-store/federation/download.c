/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo-store/federation/download.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/threads/condition.h"

#define CANCEL_POLL_NS 100000000

struct download {
        int fd;
        pthread_mutex_t lock; /* protects the members below */
        pthread_cond_t changed;
        unsigned references;
        enum { RUNS, STORED, FAILED } state;
        struct fetch_response response;
};

enum status download_create(int fd, struct download **ret, struct error *err)
{
        struct download *d = calloc(1, sizeof *d);

        if (!d) {
                close(fd);
                return error_no_memory(err);
        }
        assert(fd >= 0);
        d->fd = fd;
        d->references = 1;
        pthread_mutex_init(&d->lock, NULL);
        pthread_cond_init(&d->changed, NULL);
        *ret = d;
        return ST_OK;
}

struct download *download_ref(struct download *d)
{
        pthread_mutex_lock(&d->lock);
        assert(d->references > 0);
        d->references++;
        pthread_mutex_unlock(&d->lock);
        return d;
}

void download_unref(struct download *d)
{
        bool last;

        if (!d)
                return;
        pthread_mutex_lock(&d->lock);
        assert(d->references > 0);
        last = --d->references == 0;
        pthread_mutex_unlock(&d->lock);
        if (!last)
                return;
        close(d->fd);
        pthread_cond_destroy(&d->changed);
        pthread_mutex_destroy(&d->lock);
        free(d);
}

int download_get_fd(const struct download *d)
{
        return d->fd;
}

void download_note_progress(struct download *d, const struct fetch_response *response)
{
        pthread_mutex_lock(&d->lock);
        assert(d->state == RUNS);
        d->response = *response;
        pthread_cond_broadcast(&d->changed);
        pthread_mutex_unlock(&d->lock);
}

void download_finish(struct download *d, bool stored)
{
        pthread_mutex_lock(&d->lock);
        assert(d->state == RUNS);
        d->state = stored ? STORED : FAILED;
        pthread_cond_broadcast(&d->changed);
        pthread_mutex_unlock(&d->lock);
}

void download_get_answer(struct download *d, struct fetch_response *ret)
{
        pthread_mutex_lock(&d->lock);
        *ret = d->response;
        pthread_mutex_unlock(&d->lock);
}

/* Wait for bytes after offset. @param ret their number; 0 only at the end of a stored file. */
static enum status wait_for_bytes(struct download *d, uint64_t offset, const atomic_bool *cancel, uint64_t *ret,
                                  struct error *err)
{
        enum status st = ST_OK;

        pthread_mutex_lock(&d->lock);
        while (d->state == RUNS && d->response.received_bytes <= offset && !atomic_load(cancel))
                condition_wait_until(&d->changed, &d->lock, monotonic_ns() + CANCEL_POLL_NS);
        *ret = d->response.received_bytes > offset ? d->response.received_bytes - offset : 0;
        if (!*ret && d->state != STORED)
                st = error_set(err, ST_BUSY, "the download from the upstream failed");
        pthread_mutex_unlock(&d->lock);
        return st;
}

ssize_t download_read(struct download *d, void *to, size_t n, uint64_t offset, const atomic_bool *cancel,
                      struct error *err)
{
        uint64_t there = 0;
        ssize_t got;

        if (wait_for_bytes(d, offset, cancel, &there, err))
                return -1;
        do {
                got = pread(d->fd, to, n < there ? n : (size_t)there, (off_t)offset);
        } while (got < 0 && errno == EINTR);
        if (got < 0 || (got == 0 && there)) {
                error_os(err, got < 0 ? errno : EIO, "cannot read a download from an upstream");
                return -1;
        }
        return got;
}
