/* SPDX-License-Identifier: Apache-2.0 */
#include "package-trees/extracted_cache.h"

#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/files/file.h"
#include "common/metrics.h"
#include "common/threads/condition.h"

#define CANCEL_POLL_NS 200000000 /* polling interval of cancel */
#define MAKERS_MAX 4             /* concurrent makers */
#define ENTRIES_MAX 4096         /* cached files; lookups are linear */

static struct metric files_made = METRIC_COUNTER("cairn_scan_unpacked_total",
                                                 "Files extracted from scanned archives, or generated from them.", "");
static struct metric cache_hits =
        METRIC_COUNTER("cairn_scan_cache_hits_total", "Requests served from the cache of these files.", "");
static struct metric cached_bytes = METRIC_GAUGE("cairn_scan_cache_bytes", "Size of the cached files.", "");

struct cache_entry {
        struct cache_entry *newer, *older;
        char key[EXTRACTED_CACHE_KEY_SIZE];
        uint64_t size;
        bool is_ready; /* false: being generated */
        bool is_gone;  /* not in the list: the last waiting thread frees it, and waiting threads retry unless it failed
                        */
        unsigned waiting;
        enum status st; /* of a failure, for waiting threads */
        struct error why;
};

struct extracted_cache {
        int dir_fd;
        uint64_t max_bytes, used_bytes;
        pthread_mutex_t lock;
        pthread_cond_t changed;
        struct cache_entry *newest, *oldest;
        size_t count; /* entries in the list */
        unsigned makers;
};

static _Thread_local bool is_making;

static void unlink_cache_entry(struct extracted_cache *c, struct cache_entry *e)
{
        *(e->newer ? &e->newer->older : &c->newest) = e->older;
        *(e->older ? &e->older->newer : &c->oldest) = e->newer;
        e->newer = e->older = NULL;
        assert(c->count > 0);
        c->count--;
}

static void link_newest_entry(struct extracted_cache *c, struct cache_entry *e)
{
        e->older = c->newest;
        *(c->newest ? &c->newest->newer : &c->oldest) = e;
        c->newest = e;
        c->count++;
}

/* Remove an entry from the list. */
static void forget_entry(struct extracted_cache *c, struct cache_entry *e)
{
        unlink_cache_entry(c, e);
        e->is_gone = true;
        if (!e->waiting)
                free(e);
}

static struct cache_entry *find_cache_entry(struct extracted_cache *c, const char *key)
{
        struct cache_entry *e = c->newest;

        while (e && strcmp(e->key, key) != 0)
                e = e->older;
        return e;
}

/* Evict entries beyond the limits, except those being generated. */
static void evict_entries(struct extracted_cache *c)
{
        for (struct cache_entry *e = c->oldest; e && (c->used_bytes > c->max_bytes || c->count > ENTRIES_MAX);) {
                struct cache_entry *next = e->newer;

                if (e->is_ready) {
                        unlinkat(c->dir_fd, e->key, 0);
                        c->used_bytes -= e->size;
                        forget_entry(c, e);
                }
                e = next;
        }
        metric_set(&cached_bytes, (int64_t)c->used_bytes);
}

enum status extracted_cache_open(const char *dir, uint64_t max_bytes, struct extracted_cache **ret, struct error *err)
{
        struct extracted_cache *c = calloc(1, sizeof *c);
        enum status st = c ? file_remove_tree(dir, err) : error_no_memory(err);

        if (!st)
                st = file_make_dirs(dir, err);
        if (!st) {
                c->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                if (c->dir_fd < 0)
                        st = error_os(err, errno, "cannot open '%s'", dir);
        }
        if (st) {
                free(c);
                return st;
        }
        c->max_bytes = max_bytes;
        pthread_mutex_init(&c->lock, NULL);
        pthread_cond_init(&c->changed, NULL);
        metric_register(&files_made);
        metric_register(&cache_hits);
        metric_set(&cached_bytes, 0);
        *ret = c;
        return ST_OK;
}

void extracted_cache_close(struct extracted_cache *c)
{
        if (!c)
                return;
        for (struct cache_entry *e = c->newest, *next; e; e = next) {
                next = e->older;
                free(e);
        }
        close(c->dir_fd);
        pthread_cond_destroy(&c->changed);
        pthread_mutex_destroy(&c->lock);
        free(c);
}

static void wait_for_cache_change(struct extracted_cache *c)
{
        condition_wait_until(&c->changed, &c->lock, monotonic_ns() + CANCEL_POLL_NS);
}

static bool is_cache_cancelled(const atomic_bool *cancel)
{
        return cancel && atomic_load(cancel);
}

static enum status set_stopped_error(struct error *err)
{
        return error_set(err, ST_BUSY, "the service is stopping");
}

/* Always create a new file: the old one may still be read or mapped. */
static int create_cache_file(struct extracted_cache *c, const struct cache_entry *e)
{
        (void)unlinkat(c->dir_fd, e->key, 0);
        return openat(c->dir_fd, e->key, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/* The caller does not hold the lock. */
static enum status make_cache_file(struct extracted_cache *c, struct cache_entry *e, extracted_cache_make *make,
                                   void *context, const atomic_bool *cancel, int *fd_ret, struct error *err)
{
        _cleanup_close_ int out = create_cache_file(c, e), in = -1;
        struct stat info = { 0 };
        enum status st = out < 0 ? error_os(err, errno, "cannot create a file in the scan's cache") : ST_OK;

        if (!st) {
                is_making = true;
                st = make(context, out, cancel, err);
                is_making = false;
        }
        if (!st) {
                in = openat(c->dir_fd, e->key,
                            O_RDONLY | O_NOFOLLOW | O_CLOEXEC); /* callers get a read-only descriptor */
                if (in < 0 || fstat(out, &info) < 0)
                        st = error_os(err, errno, "cannot open a file in the scan's cache");
        }
        if (st || (uint64_t)info.st_size > c->max_bytes)
                unlinkat(c->dir_fd, e->key, 0);
        if (st)
                return st;
        e->size = (uint64_t)info.st_size;
        *fd_ret = steal_fd(&in);
        return ST_OK;
}

/* Called by the first requester, which holds the lock. */
static enum status make_cache_entry(struct extracted_cache *c, struct cache_entry *e, extracted_cache_make *make,
                                    void *context, const atomic_bool *cancel, int *fd_ret, struct error *err)
{
        enum status st = ST_OK;

        while (c->makers >= MAKERS_MAX && !is_cache_cancelled(cancel))
                wait_for_cache_change(c);
        c->makers++;
        pthread_mutex_unlock(&c->lock);
        st = is_cache_cancelled(cancel) ? set_stopped_error(err)
                                        : make_cache_file(c, e, make, context, cancel, fd_ret, err);
        pthread_mutex_lock(&c->lock);
        c->makers--;
        pthread_cond_broadcast(&c->changed);
        if (!st) {
                metric_add(&files_made, 1);
                if (e->size > c->max_bytes) {
                        forget_entry(c, e);
                        return ST_OK;
                }
                e->is_ready = true;
                c->used_bytes += e->size;
                evict_entries(c);
                return ST_OK;
        }
        e->st = st;
        e->why = *err;
        forget_entry(c, e);
        return st;
}

/* Caller holds the lock. */
static enum status wait_for_entry(struct extracted_cache *c, struct cache_entry *e, const atomic_bool *cancel,
                                  bool *again_ret, struct error *err)
{
        enum status st = ST_OK;

        e->waiting++;
        while (!e->is_gone && !e->is_ready && !is_cache_cancelled(cancel))
                wait_for_cache_change(c);
        if (e->is_gone && e->st) {
                st = e->st;
                *err = e->why;
        } else if (e->is_gone || e->is_ready) {
                *again_ret = true;
        } else {
                st = set_stopped_error(err);
        }
        if (!--e->waiting && e->is_gone)
                free(e);
        return st;
}

/* ST_NOT_FOUND if the file was removed from the folder; then removes the entry. */
static enum status open_cache_entry(struct extracted_cache *c, struct cache_entry *e, int *fd_ret, struct error *err)
{
        int fd = openat(c->dir_fd, e->key, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

        if (fd < 0 && errno == ENOENT) {
                c->used_bytes -= e->size;
                forget_entry(c, e);
                return error_set(err, ST_NOT_FOUND, "a file in the scan's cache was removed");
        }
        if (fd < 0)
                return error_os(err, errno, "cannot open a file in the scan's cache");
        unlink_cache_entry(c, e);
        link_newest_entry(c, e);
        metric_add(&cache_hits, 1);
        *fd_ret = fd;
        return ST_OK;
}

enum status extracted_cache_open_ready(struct extracted_cache *c, const char *key, int *fd_ret)
{
        enum status st = ST_NOT_FOUND;
        struct cache_entry *e;

        pthread_mutex_lock(&c->lock);
        e = find_cache_entry(c, key);
        if (e && e->is_ready)
                st = open_cache_entry(c, e, fd_ret, NULL);
        pthread_mutex_unlock(&c->lock);
        return st;
}

enum status extracted_cache_get(struct extracted_cache *c, const char *key, extracted_cache_make *make, void *context,
                                const atomic_bool *cancel, int *fd_ret, struct error *err)
{
        enum status st = ST_OK;
        bool again = true;

        assert(!is_making);
        pthread_mutex_lock(&c->lock);
        while (again) {
                struct cache_entry *e = find_cache_entry(c, key);

                again = false;
                if (e && e->is_ready) {
                        st = open_cache_entry(c, e, fd_ret, err);
                        again = st == ST_NOT_FOUND;
                } else if (e) {
                        st = wait_for_entry(c, e, cancel, &again, err);
                } else if (!(e = calloc(1, sizeof *e))) {
                        st = error_no_memory(err);
                } else {
                        snprintf(e->key, sizeof e->key, "%s", key);
                        link_newest_entry(c, e);
                        st = make_cache_entry(c, e, make, context, cancel, fd_ret, err);
                }
        }
        pthread_mutex_unlock(&c->lock);
        return st;
}
