/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks: `lock` of the cache protects the table, the uses of objects and the sum of bytes; it is never held during a
 * fetch. `fetching` of an object serializes fetches into it and protects its bits; it is taken before `lock`.
 */
#include "storage/s3/remote_cache.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/hash/hash_table.h"
#include "common/hash/lru_table.h"

#define EXPECTED_OBJECTS 4096
#define BLOCK REMOTE_CACHE_BLOCK_BYTES

struct remote_object {
        struct lru_entry lru; /* first */
        char *key;
        struct storage_info info;
        int fd;
        pthread_mutex_t fetching;
        uint8_t *present; /* a bit for each block */
        uint64_t bytes;   /* of the present blocks */
        unsigned users;
        bool is_known; /* in the table */
};

struct remote_cache {
        char *dir;
        uint64_t max_bytes, bytes;
        pthread_mutex_t lock;
        struct lru_table objects;
};

enum status remote_cache_create(const char *dir, uint64_t max_bytes, struct remote_cache **ret, struct error *err)
{
        struct remote_cache *c = calloc(1, sizeof *c);
        enum status st;

        if (!c)
                return error_no_memory(err);
        pthread_mutex_init(&c->lock, NULL);
        c->max_bytes = max_bytes;
        c->dir = strdup(dir);
        st = c->dir ? file_make_dirs(dir, err) : error_no_memory(err);
        if (!st)
                st = lru_table_init(&c->objects, EXPECTED_OBJECTS, err);
        if (st)
                remote_cache_destroy(c);
        else
                *ret = c;
        return st;
}

static void free_object(struct remote_object *o)
{
        close(o->fd);
        pthread_mutex_destroy(&o->fetching);
        free(o->present);
        free(o->key);
        free(o);
}

/* With the lock. */
static void forget_object(struct remote_cache *c, struct remote_object *o)
{
        lru_table_remove(&c->objects, &o->lru);
        o->is_known = false;
        c->bytes -= o->bytes;
        if (!o->users)
                free_object(o);
}

void remote_cache_destroy(struct remote_cache *c)
{
        if (!c)
                return;
        while (c->objects.count)
                forget_object(c, (struct remote_object *)lru_table_oldest(&c->objects));
        lru_table_deinit(&c->objects);
        pthread_mutex_destroy(&c->lock);
        free(c->dir);
        free(c);
}

static bool has_key(const struct lru_entry *entry, const void *key)
{
        return strcmp(((const struct remote_object *)entry)->key, key) == 0;
}

/* With the lock. */
static struct remote_object *find_object(const struct remote_cache *c, const char *key)
{
        return (struct remote_object *)lru_table_find(&c->objects, keyed_hash(key, strlen(key)), has_key, key);
}

struct remote_object *remote_cache_get(struct remote_cache *c, const char *key)
{
        struct remote_object *o;

        pthread_mutex_lock(&c->lock);
        o = find_object(c, key);
        if (o) {
                o->users++;
                lru_table_touch(&c->objects, &o->lru);
        }
        pthread_mutex_unlock(&c->lock);
        return o;
}

static enum status create_object(const struct remote_cache *c, const char *key, const struct storage_info *info,
                                 struct remote_object **ret, struct error *err)
{
        struct remote_object *o = calloc(1, sizeof *o);

        if (!o)
                return error_no_memory(err);
        pthread_mutex_init(&o->fetching, NULL);
        o->info = *info;
        o->users = 1;
        o->key = strdup(key);
        o->present = calloc(info->size / BLOCK / 8 + 1, 1);
        o->fd = open(c->dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        if (o->key && o->present && o->fd >= 0 && ftruncate(o->fd, (off_t)info->size) == 0) {
                *ret = o;
                return ST_OK;
        }
        error_os(err, errno, "cannot make a file in the cache '%s'", c->dir);
        free_object(o);
        return ST_OS;
}

enum status remote_cache_add(struct remote_cache *c, const char *key, const struct storage_info *info,
                             struct remote_object **ret, struct error *err)
{
        struct remote_object *o = NULL, *old;
        enum status st = create_object(c, key, info, &o, err);

        if (st)
                return st;
        pthread_mutex_lock(&c->lock);
        old = find_object(c, key);
        if (old)
                forget_object(c, old);
        lru_table_insert(&c->objects, &o->lru, keyed_hash(key, strlen(key)));
        o->is_known = true;
        pthread_mutex_unlock(&c->lock);
        *ret = o;
        return ST_OK;
}

void remote_cache_remove(struct remote_cache *c, const char *key)
{
        struct remote_object *o;

        pthread_mutex_lock(&c->lock);
        o = find_object(c, key);
        if (o)
                forget_object(c, o);
        pthread_mutex_unlock(&c->lock);
}

void remote_cache_release(struct remote_cache *c, struct remote_object *o)
{
        pthread_mutex_lock(&c->lock);
        o->users--;
        if (!o->users && !o->is_known)
                free_object(o);
        pthread_mutex_unlock(&c->lock);
}

const struct storage_info *remote_object_info(const struct remote_object *o)
{
        return &o->info;
}

int remote_object_fd(const struct remote_object *o)
{
        return o->fd;
}

/* ---- blocks ---- */

static bool is_present(const struct remote_object *o, uint64_t block)
{
        return o->present[block / 8] >> block % 8 & 1;
}

/* Drop the least recently used objects without users. With the lock. */
static void shrink_cache(struct remote_cache *c)
{
        struct lru_entry *entry, *next;

        for (entry = lru_table_oldest(&c->objects); entry && c->bytes > c->max_bytes; entry = next) {
                struct remote_object *o = (struct remote_object *)entry;

                next = TAILQ_NEXT(entry, by_use);
                if (!o->users)
                        forget_object(c, o);
        }
}

static void set_present(struct remote_cache *c, struct remote_object *o, uint64_t first, uint64_t end)
{
        uint64_t added = 0;

        for (uint64_t b = first; b < end; b++) {
                if (!is_present(o, b)) {
                        o->present[b / 8] |= (uint8_t)(1 << b % 8);
                        added += BLOCK;
                }
        }
        pthread_mutex_lock(&c->lock);
        o->bytes += added;
        if (o->is_known) {
                c->bytes += added;
                shrink_cache(c);
        }
        pthread_mutex_unlock(&c->lock);
}

void remote_cache_note_present(struct remote_cache *c, struct remote_object *o, const struct file_range *range)
{
        uint64_t end = range->offset + range->size;

        pthread_mutex_lock(&o->fetching);
        set_present(c, o, (range->offset + BLOCK - 1) / BLOCK,
                    end == o->info.size ? (end + BLOCK - 1) / BLOCK : end / BLOCK);
        pthread_mutex_unlock(&o->fetching);
}

/* Fetch the missing blocks of [first, end) in runs that may contain a few present blocks. With `fetching`. */
static enum status fetch_blocks(struct remote_cache *c, struct remote_object *o, uint64_t first, uint64_t end,
                                remote_cache_fetch *fetch, void *context, struct error *err)
{
        for (uint64_t b = first; b < end; b++) {
                uint64_t last = b; /* missing one of the run */
                struct file_range range;
                enum status st;

                if (is_present(o, b))
                        continue;
                for (uint64_t next = b + 1; next < end && next - last <= REMOTE_CACHE_GAP_BLOCKS; next++) {
                        if (!is_present(o, next))
                                last = next;
                }
                range = (struct file_range){ b * BLOCK, (last + 1 - b) * BLOCK };
                if (range.size > o->info.size - range.offset)
                        range.size = o->info.size - range.offset;
                st = fetch(context, o->key, &o->info, o->fd, &range, err);
                if (st)
                        return st;
                set_present(c, o, b, last + 1);
                b = last;
        }
        return ST_OK;
}

static int compare_ranges(const void *x, const void *y)
{
        const struct file_range *a = x, *b = y;

        return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* Ranges with small gaps between them become one span of blocks. */
static enum status fetch_ranges(struct remote_cache *c, struct remote_object *o, const struct file_range *ranges,
                                size_t count, remote_cache_fetch *fetch, void *context, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < count;) {
                uint64_t first = ranges[i].offset / BLOCK, end = first;

                for (; i < count && ranges[i].offset / BLOCK <= end + REMOTE_CACHE_GAP_BLOCKS; i++) {
                        uint64_t own_end = (ranges[i].offset + ranges[i].size + BLOCK - 1) / BLOCK;

                        end = own_end > end ? own_end : end;
                }
                st = fetch_blocks(c, o, first, end, fetch, context, err);
        }
        return st;
}

enum status remote_cache_require(struct remote_cache *c, struct remote_object *o, const struct file_range *ranges,
                                 size_t count, remote_cache_fetch *fetch, void *context, struct error *err)
{
        _cleanup_free_ struct file_range *sorted = malloc((count + 1) * sizeof *sorted);
        enum status st;

        if (!sorted)
                return error_no_memory(err);
        if (count)
                memcpy(sorted, ranges, count * sizeof *sorted);
        qsort(sorted, count, sizeof *sorted, compare_ranges);
        for (size_t i = 0; i < count; i++) {
                if (sorted[i].offset > o->info.size || sorted[i].size > o->info.size - sorted[i].offset)
                        return error_set(err, ST_BAD_DATA, "a range at %llu is not in '%.120s'",
                                         (unsigned long long)sorted[i].offset, o->key);
        }
        pthread_mutex_lock(&o->fetching);
        st = fetch_ranges(c, o, sorted, count, fetch, context, err);
        pthread_mutex_unlock(&o->fetching);
        return st;
}
