/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo-store/frames.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "common/metrics.h"
#include "debuginfo-store/seekable.h"

#define BUCKETS 1024
#define SHA256_SIZE 32

static struct metric kept = METRIC_COUNTER("cairn_debuginfo_frames_total",
                                           "Frames of stored objects that a section or source file was read from.", "from=\"memory\"");
static struct metric unpacked = METRIC_COUNTER("cairn_debuginfo_frames_total",
                                               "Frames of stored objects that a section or source file was read from.", "from=\"disk\"");

/* Who copies from a frame holds it, so that it can be dropped meanwhile. */
struct frame {
        LIST_ENTRY(frame) same_bucket;
        TAILQ_ENTRY(frame) used; /* the one used longest ago first */
        uint8_t sha256[SHA256_SIZE];
        uint64_t at;
        size_t size;
        void *bytes;    /* owned */
        unsigned users; /* the cache is one as long as it is kept */
};

struct frames {
        pthread_mutex_t lock;
        LIST_HEAD(, frame) buckets[BUCKETS];
        TAILQ_HEAD(frame_list, frame) used;
        size_t bytes, max_bytes;
};

enum status frames_create(size_t max_bytes, struct frames **ret, struct error *err)
{
        struct frames *f = calloc(1, sizeof *f);

        if (!f)
                return error_no_memory(err);
        pthread_mutex_init(&f->lock, NULL);
        TAILQ_INIT(&f->used);
        f->max_bytes = max_bytes;
        *ret = f;
        return ST_OK;
}

static void release(struct frame *one)
{
        if (--one->users)
                return;
        free(one->bytes);
        free(one);
}

static size_t cost(const struct frame *one)
{
        return one->size + sizeof *one;
}

static void drop(struct frames *f, struct frame *one)
{
        LIST_REMOVE(one, same_bucket);
        TAILQ_REMOVE(&f->used, one, used);
        f->bytes -= cost(one);
        release(one);
}

void frames_destroy(struct frames *f)
{
        if (!f)
                return;
        while (!TAILQ_EMPTY(&f->used))
                drop(f, TAILQ_FIRST(&f->used));
        pthread_mutex_destroy(&f->lock);
        free(f);
}

static size_t bucket_of(const uint8_t *sha256, uint64_t at)
{
        uint64_t head;

        memcpy(&head, sha256, sizeof head);
        return (head + at / SEEKABLE_FRAME_BYTES) % BUCKETS;
}

static struct frame *find(struct frames *f, const uint8_t *sha256, uint64_t at)
{
        struct frame *one;

        LIST_FOREACH(one, &f->buckets[bucket_of(sha256, at)], same_bucket)
                if (one->at == at && memcmp(one->sha256, sha256, SHA256_SIZE) == 0)
                        break;
        return one;
}

/* Frames of one file have one size, but for the last, and it was another one in older versions. */
static struct frame *find_around(struct frames *f, const uint8_t *sha256, uint64_t offset)
{
        for (uint64_t size = SEEKABLE_FRAME_BYTES; size <= SEEKABLE_FRAME_MAX_BYTES; size *= 2) {
                struct frame *one = find(f, sha256, offset - offset % size);

                if (one && offset - one->at < one->size)
                        return one;
        }
        return NULL;
}

static struct frame *take(struct frames *f, const uint8_t *sha256, uint64_t offset)
{
        struct frame *one;

        pthread_mutex_lock(&f->lock);
        one = find_around(f, sha256, offset);
        if (one) {
                one->users++;
                TAILQ_REMOVE(&f->used, one, used);
                TAILQ_INSERT_TAIL(&f->used, one, used);
        }
        pthread_mutex_unlock(&f->lock);
        return one;
}

size_t frames_copy(struct frames *f, const uint8_t sha256[static SHA256_SIZE], void *to, size_t n, uint64_t offset)
{
        size_t done = 0;
        struct frame *one;

        while (done < n && (one = take(f, sha256, offset + done))) {
                size_t skip = offset + done - one->at, have = one->size - skip, piece = have < n - done ? have : n - done;

                memcpy((char *)to + done, (const char *)one->bytes + skip, piece);
                done += piece;
                metric_add(&kept, 1);
                pthread_mutex_lock(&f->lock);
                release(one);
                pthread_mutex_unlock(&f->lock);
        }
        return done;
}

void frames_put(struct frames *f, const uint8_t sha256[static SHA256_SIZE], uint64_t at, void *bytes, size_t n)
{
        struct frame *one = n ? calloc(1, sizeof *one) : NULL;

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
        if (cost(one) > f->max_bytes || find(f, sha256, at)) { /* another thread unpacked it too */
                release(one);
        } else {
                while (f->bytes + cost(one) > f->max_bytes)
                        drop(f, TAILQ_FIRST(&f->used));
                LIST_INSERT_HEAD(&f->buckets[bucket_of(sha256, at)], one, same_bucket);
                TAILQ_INSERT_TAIL(&f->used, one, used);
                f->bytes += cost(one);
        }
        pthread_mutex_unlock(&f->lock);
}
