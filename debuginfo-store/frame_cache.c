/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo-store/frame_cache.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "common/metrics.h"
#include "debuginfo-store/seekable.h"

#define BUCKETS 1024
#define SHA256_SIZE 32

static struct metric kept =
        METRIC_COUNTER("cairn_debuginfo_frames_total",
                       "Frames of stored objects that a section or source file was read from.", "from=\"memory\"");
static struct metric unpacked =
        METRIC_COUNTER("cairn_debuginfo_frames_total",
                       "Frames of stored objects that a section or source file was read from.", "from=\"disk\"");

/* Reference counted: a frame can be evicted while it is read. */
struct cached_frame {
        LIST_ENTRY(cached_frame) same_bucket;
        TAILQ_ENTRY(cached_frame) used; /* least recently used first */
        uint8_t sha256[SHA256_SIZE];
        uint64_t at;
        size_t size;
        void *bytes;    /* owned */
        unsigned users; /* references, including that of the cache */
};

struct frame_cache {
        pthread_mutex_t lock;
        LIST_HEAD(, cached_frame) buckets[BUCKETS];
        TAILQ_HEAD(cached_frame_list, cached_frame) used;
        size_t bytes, max_bytes;
};

static _Atomic size_t bytes_of_all; /* total of all caches */

enum status frame_cache_create(size_t max_bytes, struct frame_cache **ret, struct error *err)
{
        struct frame_cache *f = calloc(1, sizeof *f);

        if (!f)
                return error_no_memory(err);
        pthread_mutex_init(&f->lock, NULL);
        TAILQ_INIT(&f->used);
        f->max_bytes = max_bytes;
        *ret = f;
        return ST_OK;
}

static void release_frame(struct cached_frame *one)
{
        assert(one->users > 0);
        if (--one->users)
                return;
        free(one->bytes);
        free(one);
}

static size_t frame_cost(const struct cached_frame *one)
{
        return one->size + sizeof *one;
}

static void evict_frame(struct frame_cache *f, struct cached_frame *one)
{
        LIST_REMOVE(one, same_bucket);
        TAILQ_REMOVE(&f->used, one, used);
        assert(f->bytes >= frame_cost(one));
        f->bytes -= frame_cost(one);
        atomic_fetch_sub(&bytes_of_all, frame_cost(one));
        release_frame(one);
}

void frame_cache_destroy(struct frame_cache *f)
{
        if (!f)
                return;
        while (!TAILQ_EMPTY(&f->used))
                evict_frame(f, TAILQ_FIRST(&f->used));
        pthread_mutex_destroy(&f->lock);
        free(f);
}

static size_t frame_bucket(const uint8_t *sha256, uint64_t at)
{
        uint64_t head;

        memcpy(&head, sha256, sizeof head);
        return (head + at / SEEKABLE_FRAME_BYTES) % BUCKETS;
}

static struct cached_frame *find_frame(struct frame_cache *f, const uint8_t *sha256, uint64_t at)
{
        struct cached_frame *one;

        LIST_FOREACH(one, &f->buckets[frame_bucket(sha256, at)], same_bucket)
        if (one->at == at && memcmp(one->sha256, sha256, SHA256_SIZE) == 0)
                break;
        return one;
}

/* All frames of a file but the last have the same size, which was larger in older versions. */
static struct cached_frame *find_frame_around(struct frame_cache *f, const uint8_t *sha256, uint64_t offset)
{
        for (uint64_t size = SEEKABLE_FRAME_BYTES; size <= SEEKABLE_FRAME_MAX_BYTES; size *= 2) {
                struct cached_frame *one = find_frame(f, sha256, offset - offset % size);

                if (one && offset - one->at < one->size)
                        return one;
        }
        return NULL;
}

static struct cached_frame *acquire_frame(struct frame_cache *f, const uint8_t *sha256, uint64_t offset)
{
        struct cached_frame *one;

        pthread_mutex_lock(&f->lock);
        one = find_frame_around(f, sha256, offset);
        if (one) {
                one->users++;
                TAILQ_REMOVE(&f->used, one, used);
                TAILQ_INSERT_TAIL(&f->used, one, used);
        }
        pthread_mutex_unlock(&f->lock);
        return one;
}

size_t frame_cache_read(struct frame_cache *f, const uint8_t sha256[static SHA256_SIZE], void *to, size_t n,
                        uint64_t offset)
{
        size_t done = 0;
        struct cached_frame *one;

        while (done < n && (one = acquire_frame(f, sha256, offset + done))) {
                size_t skip = offset + done - one->at, have = one->size - skip,
                       piece = have < n - done ? have : n - done;

                memcpy((char *)to + done, (const char *)one->bytes + skip, piece);
                done += piece;
                metric_add(&kept, 1);
                pthread_mutex_lock(&f->lock);
                release_frame(one);
                pthread_mutex_unlock(&f->lock);
        }
        return done;
}

void frame_cache_insert(struct frame_cache *f, const uint8_t sha256[static SHA256_SIZE], uint64_t at, void *bytes,
                        size_t n)
{
        struct cached_frame *one = n ? calloc(1, sizeof *one) : NULL;

        metric_add(&unpacked, 1);
        if (!one) {
                free(bytes);
                return;
        }
        one->at = at;
        one->size = n;
        one->bytes = bytes;
        one->users = 1;
        memcpy(one->sha256, sha256, SHA256_SIZE);
        pthread_mutex_lock(&f->lock);
        if (frame_cost(one) > f->max_bytes || find_frame(f, sha256, at)) { /* too large, or inserted meanwhile */
                release_frame(one);
        } else {
                atomic_fetch_add(&bytes_of_all, frame_cost(one));
                while (!TAILQ_EMPTY(&f->used) &&
                       (f->bytes + frame_cost(one) > f->max_bytes || atomic_load(&bytes_of_all) > f->max_bytes))
                        evict_frame(f, TAILQ_FIRST(&f->used));
                LIST_INSERT_HEAD(&f->buckets[frame_bucket(sha256, at)], one, same_bucket);
                TAILQ_INSERT_TAIL(&f->used, one, used);
                f->bytes += frame_cost(one);
                assert(f->bytes <= f->max_bytes);
        }
        pthread_mutex_unlock(&f->lock);
}
