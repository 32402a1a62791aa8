/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo-store/frame_cache.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash/hash_table.h"
#include "common/hash/lru_table.h"
#include "common/metrics.h"
#include "debuginfo-store/seekable.h"

#define FRAMES_EXPECTED 1024
#define SHA256_SIZE 32

static struct metric kept =
        METRIC_COUNTER("cairn_debuginfo_frames_total",
                       "Frames of stored objects that a section or source file was read from.", "from=\"memory\"");
static struct metric unpacked =
        METRIC_COUNTER("cairn_debuginfo_frames_total",
                       "Frames of stored objects that a section or source file was read from.", "from=\"disk\"");

/* Reference counted: a frame can be evicted while it is read. */
struct frame_key {
        uint8_t sha256[SHA256_SIZE];
        uint64_t at;
};

struct cached_frame {
        struct lru_entry lru;
        struct frame_key key;
        size_t size;
        void *bytes;    /* owned */
        unsigned users; /* references, including that of the cache */
};

struct frame_cache {
        pthread_mutex_t lock;
        struct lru_table table;
        size_t bytes, max_bytes;
};

static _Atomic size_t bytes_of_all; /* total of all caches */

enum status frame_cache_create(size_t max_bytes, struct frame_cache **ret, struct error *err)
{
        struct frame_cache *f = calloc(1, sizeof *f);

        if (!f)
                return error_no_memory(err);
        if (lru_table_init(&f->table, FRAMES_EXPECTED, err)) {
                free(f);
                return ST_NO_MEMORY;
        }
        pthread_mutex_init(&f->lock, NULL);
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

static void evict_oldest_frame(struct frame_cache *f)
{
        struct cached_frame *one = (struct cached_frame *)lru_table_oldest(&f->table);

        lru_table_remove(&f->table, &one->lru);
        assert(f->bytes >= frame_cost(one));
        f->bytes -= frame_cost(one);
        atomic_fetch_sub(&bytes_of_all, frame_cost(one));
        release_frame(one);
}

void frame_cache_destroy(struct frame_cache *f)
{
        if (!f)
                return;
        while (f->table.count)
                evict_oldest_frame(f);
        lru_table_deinit(&f->table);
        pthread_mutex_destroy(&f->lock);
        free(f);
}

static bool is_frame_at(const struct lru_entry *entry, const void *key)
{
        return memcmp(&((const struct cached_frame *)entry)->key, key, sizeof(struct frame_key)) == 0;
}

static struct cached_frame *find_frame(struct frame_cache *f, const struct frame_key *key)
{
        return (struct cached_frame *)lru_table_find(&f->table, keyed_hash(key, sizeof *key), is_frame_at, key);
}

/* All frames of a file but the last have the same size. */
static struct cached_frame *find_frame_around(struct frame_cache *f, const uint8_t *sha256, uint64_t offset)
{
        struct frame_key key = { .at = offset - offset % SEEKABLE_FRAME_BYTES };
        struct cached_frame *one;

        memcpy(key.sha256, sha256, SHA256_SIZE);
        one = find_frame(f, &key);
        return one && offset - key.at < one->size ? one : NULL;
}

static struct cached_frame *acquire_frame(struct frame_cache *f, const uint8_t *sha256, uint64_t offset)
{
        struct cached_frame *one;

        pthread_mutex_lock(&f->lock);
        one = find_frame_around(f, sha256, offset);
        if (one) {
                one->users++;
                lru_table_touch(&f->table, &one->lru);
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
                size_t skip = offset + done - one->key.at, have = one->size - skip,
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
        one->key.at = at;
        one->size = n;
        one->bytes = bytes;
        one->users = 1;
        memcpy(one->key.sha256, sha256, SHA256_SIZE);
        pthread_mutex_lock(&f->lock);
        if (frame_cost(one) > f->max_bytes || find_frame(f, &one->key)) { /* too large, or inserted meanwhile */
                release_frame(one);
        } else {
                atomic_fetch_add(&bytes_of_all, frame_cost(one));
                while (f->table.count &&
                       (f->bytes + frame_cost(one) > f->max_bytes || atomic_load(&bytes_of_all) > f->max_bytes))
                        evict_oldest_frame(f);
                lru_table_insert(&f->table, &one->lru, keyed_hash(&one->key, sizeof one->key));
                f->bytes += frame_cost(one);
                assert(f->bytes <= f->max_bytes);
        }
        pthread_mutex_unlock(&f->lock);
}
