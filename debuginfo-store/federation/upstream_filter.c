/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo-store/federation/upstream_filter.h"

#include <pthread.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "debuginfo-store/build_id_filter.h"

#define FRESH_S 60   /* then it is requested again */
#define USABLE_S 300 /* without an answer */
#define NONE_S 3600  /* pause after the answer that there is none */

struct upstream_filter {
        pthread_mutex_t lock;
        unsigned misses; /* since the last request */
        bool is_fetching;
        int64_t ask_again_ns, made_ns; /* monotonic */
        struct file_map file;          /* data NULL: no filter */
        struct build_id_filter filter; /* of file */
};

enum status upstream_filter_create(struct upstream_filter **ret, struct error *err)
{
        struct upstream_filter *f = calloc(1, sizeof *f);

        if (!f)
                return error_no_memory(err);
        pthread_mutex_init(&f->lock, NULL);
        *ret = f;
        return ST_OK;
}

void upstream_filter_destroy(struct upstream_filter *f)
{
        if (!f)
                return;
        pthread_mutex_destroy(&f->lock);
        file_map_close(&f->file);
        free(f);
}

void upstream_filter_note_missing(struct upstream_filter *f)
{
        pthread_mutex_lock(&f->lock);
        f->misses += f->misses < UPSTREAM_FILTER_MISSES;
        pthread_mutex_unlock(&f->lock);
}

bool upstream_filter_begin_fetch(struct upstream_filter *f)
{
        bool is_due;

        pthread_mutex_lock(&f->lock);
        is_due = !f->is_fetching && (f->file.data || f->misses >= UPSTREAM_FILTER_MISSES) &&
                 monotonic_ns() >= f->ask_again_ns;
        f->is_fetching |= is_due;
        pthread_mutex_unlock(&f->lock);
        return is_due;
}

/* False: the file is damaged. */
static bool map_filter(int fd, struct file_map *file, struct build_id_filter *ret)
{
        struct error err;

        if (file_map_fd(fd, LIMIT_FILTER_BYTES, "the filter of an upstream", file, &err))
                return false;
        if (!build_id_filter_open(file->data, file->size, ret, &err))
                return true;
        file_map_close(file);
        return false;
}

void upstream_filter_set(struct upstream_filter *f, enum status st, int fd)
{
        struct file_map file = { 0 }, old = { 0 };
        struct build_id_filter filter;
        bool has_answer = !st && map_filter(fd, &file, &filter);
        int64_t now_ns = monotonic_ns();

        pthread_mutex_lock(&f->lock);
        if (has_answer || st == ST_NOT_FOUND) {
                old = f->file;
                f->file = file;
        }
        if (has_answer) {
                f->filter = filter;
                f->made_ns = now_ns;
        }
        f->misses = 0;
        f->is_fetching = false;
        f->ask_again_ns = now_ns + (int64_t)(st == ST_NOT_FOUND ? NONE_S : FRESH_S) * 1000000000;
        pthread_mutex_unlock(&f->lock);
        file_map_close(&old);
}

bool upstream_filter_excludes(struct upstream_filter *f, const struct build_id *id)
{
        bool is_absent;

        pthread_mutex_lock(&f->lock);
        is_absent = f->file.data && monotonic_ns() - f->made_ns < (int64_t)USABLE_S * 1000000000 &&
                    !build_id_filter_may_contain(&f->filter, id);
        pthread_mutex_unlock(&f->lock);
        return is_absent;
}
