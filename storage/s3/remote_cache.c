/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of an earlier process are compared with their checksums when they are first required; a block that differs is
 * fetched again.
 *
 * Locks: `lock` of the cache protects the table, the uses of objects and the sum of bytes; it is never held during a
 * fetch. `fetching` of an object serializes fetches into it and protects its bits; it is taken before `lock`.
 */
#include "storage/s3/remote_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/hash.h"
#include "common/hash/hash_table.h"
#include "common/hash/lru_table.h"
#include "common/memory/array.h"
#include "common/metrics.h"
#include "common/threads/waiting_tasks.h"
#include "storage/s3/cache_files.h"

#define EXPECTED_OBJECTS 4096
#define BLOCK REMOTE_CACHE_BLOCK_BYTES

_Static_assert(BLOCK == CACHE_BLOCK_BYTES, "one size");

static struct metric kept = METRIC_COUNTER("cairn_object_store_cache_kept_total",
                                           "Objects of an object store of which a cache had parts at its start.", "");
static struct metric damaged = METRIC_COUNTER("cairn_object_store_cache_damaged_total",
                                              "Blocks of a cache that were fetched again, since they, or others of the "
                                              "same column, were damaged on the disk or on the way.",
                                              "");

struct remote_object {
        struct lru_entry lru; /* first */
        struct cached_blocks blocks;
        int fd;
        pthread_mutex_t fetching;
        uint8_t *unchecked; /* a bit for each present block of an earlier process; NULL: none is */
        uint64_t bytes;     /* of the present blocks */
        unsigned drops;     /* remote_cache_drop(); under `fetching` */
        unsigned users;
        bool is_known;   /* in the table */
        bool is_changed; /* since it was saved; under `lock` */
};

struct remote_cache {
        char *dir;
        int lock_fd; /* -1: another cache has the directory, so files have no names */
        uint64_t max_bytes, bytes;
        pthread_mutex_t lock;
        struct lru_table objects;
};

static enum status take_saved_object(void *context, struct cached_blocks *b, int fd, struct error *err);

enum status remote_cache_create(const char *dir, uint64_t max_bytes, struct remote_cache **ret, struct error *err)
{
        struct remote_cache *c = calloc(1, sizeof *c);
        enum status st;

        if (!c)
                return error_no_memory(err);
        metric_register(&kept);
        metric_register(&damaged);
        pthread_mutex_init(&c->lock, NULL);
        c->lock_fd = -1;
        c->max_bytes = max_bytes;
        c->dir = strdup(dir);
        st = c->dir ? file_make_dirs(dir, err) : error_no_memory(err);
        if (!st)
                st = lru_table_init(&c->objects, EXPECTED_OBJECTS, err);
        if (!st) {
                c->lock_fd = cache_files_lock(dir);
                if (c->lock_fd >= 0)
                        st = cache_files_load(dir, take_saved_object, c, err);
        }
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
        free(o->unchecked);
        cached_blocks_deinit(&o->blocks);
        free(o);
}

/* With the lock. Its file loses its name; users keep it. */
static void forget_object(struct remote_cache *c, struct remote_object *o)
{
        lru_table_remove(&c->objects, &o->lru);
        o->is_known = false;
        c->bytes -= o->bytes;
        cache_files_remove(c->dir, o->blocks.number);
        if (!o->users)
                free_object(o);
}

/* With the lock, and without users. The files stay. */
static void leave_object(struct remote_cache *c, struct remote_object *o)
{
        lru_table_remove(&c->objects, &o->lru);
        if (o->is_changed)
                cache_files_save(c->dir, &o->blocks);
        free_object(o);
}

void remote_cache_destroy(struct remote_cache *c)
{
        if (!c)
                return;
        while (c->objects.count)
                leave_object(c, (struct remote_object *)lru_table_oldest(&c->objects));
        lru_table_deinit(&c->objects);
        pthread_mutex_destroy(&c->lock);
        if (c->lock_fd >= 0)
                close(c->lock_fd);
        free(c->dir);
        free(c);
}

static bool has_key(const struct lru_entry *entry, const void *key)
{
        return strcmp(((const struct remote_object *)entry)->blocks.key, key) == 0;
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

/* Takes blocks and descriptor, also on failure. */
static enum status make_object(struct cached_blocks *b, int fd, struct remote_object **ret, struct error *err)
{
        struct remote_object *o = calloc(1, sizeof *o);

        if (!o) {
                cached_blocks_deinit(b);
                close(fd);
                return error_no_memory(err);
        }
        pthread_mutex_init(&o->fetching, NULL);
        o->blocks = *b;
        o->fd = fd;
        *ret = o;
        return ST_OK;
}

static enum status create_object(const struct remote_cache *c, const char *key, const struct storage_info *info,
                                 struct remote_object **ret, struct error *err)
{
        struct cached_blocks b;
        enum status st = cached_blocks_init(&b, key, info, err);
        int fd = -1;

        if (st)
                return st;
        st = cache_files_create(c->dir, c->lock_fd >= 0, &b, &fd, err);
        if (st) {
                cached_blocks_deinit(&b);
                return st;
        }
        st = make_object(&b, fd, ret, err);
        if (!st)
                (*ret)->users = 1;
        return st;
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

void remote_cache_forget(struct remote_cache *c, struct remote_object *o)
{
        pthread_mutex_lock(&c->lock);
        if (o->is_known)
                forget_object(c, o);
        pthread_mutex_unlock(&c->lock);
}

void remote_cache_release(struct remote_cache *c, struct remote_object *o)
{
        pthread_mutex_lock(&c->lock);
        o->users--;
        if (!o->users && !o->is_known) {
                free_object(o);
        } else if (!o->users && o->is_changed) {
                o->is_changed = false;
                cache_files_save(c->dir, &o->blocks);
        }
        pthread_mutex_unlock(&c->lock);
}

const struct storage_info *remote_object_info(const struct remote_object *o)
{
        return &o->blocks.info;
}

int remote_object_fd(const struct remote_object *o)
{
        return o->fd;
}

/* ---- blocks ---- */

static bool is_bit_set(const uint8_t *bits, uint64_t i)
{
        return bits[i / 8] >> i % 8 & 1;
}

static void clear_bit(uint8_t *bits, uint64_t i)
{
        bits[i / 8] &= (uint8_t) ~(1 << i % 8);
}

/* False: it cannot be read. */
static bool compute_block_checksum(const struct remote_object *o, uint64_t block, uint64_t *ret)
{
        uint64_t offset = block * BLOCK, size = o->blocks.info.size - offset;
        _cleanup_free_ void *bytes = malloc(BLOCK);

        size = size < BLOCK ? size : BLOCK;
        if (!bytes || pread(o->fd, bytes, size, (off_t)offset) != (ssize_t)size)
                return false;
        *ret = hash_bytes64(bytes, size);
        return true;
}

static void drop_damaged_block(struct remote_cache *c, struct remote_object *o, uint64_t block)
{
        metric_add(&damaged, 1);
        clear_bit(o->blocks.present, block);
        pthread_mutex_lock(&c->lock);
        o->bytes -= BLOCK;
        c->bytes -= o->is_known ? BLOCK : 0;
        o->is_changed = true;
        pthread_mutex_unlock(&c->lock);
}

bool remote_cache_drop(struct remote_cache *c, struct remote_object *o, const struct file_range *ranges, size_t count)
{
        bool may_drop;

        pthread_mutex_lock(&o->fetching);
        may_drop = o->drops < REMOTE_CACHE_DROPS_MAX;
        o->drops += may_drop;
        for (size_t i = 0; may_drop && i < count; i++) {
                uint64_t end = (ranges[i].offset + ranges[i].size + BLOCK - 1) / BLOCK;

                for (uint64_t b = ranges[i].offset / BLOCK; b < end && b < o->blocks.count; b++) {
                        if (is_bit_set(o->blocks.present, b))
                                drop_damaged_block(c, o, b);
                }
        }
        pthread_mutex_unlock(&o->fetching);
        return may_drop;
}

/* With `fetching`. */
static bool is_present(struct remote_cache *c, struct remote_object *o, uint64_t block)
{
        uint64_t sum;

        if (!is_bit_set(o->blocks.present, block))
                return false;
        if (!o->unchecked || !is_bit_set(o->unchecked, block))
                return true;
        clear_bit(o->unchecked, block);
        if (compute_block_checksum(o, block, &sum) && sum == o->blocks.checksums[block])
                return true;
        drop_damaged_block(c, o, block);
        return false;
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
                if (!is_bit_set(o->blocks.present, b) && compute_block_checksum(o, b, &o->blocks.checksums[b])) {
                        o->blocks.present[b / 8] |= (uint8_t)(1 << b % 8);
                        added += BLOCK;
                }
        }
        pthread_mutex_lock(&c->lock);
        o->bytes += added;
        o->is_changed |= added > 0;
        if (o->is_known) {
                c->bytes += added;
                shrink_cache(c);
        }
        pthread_mutex_unlock(&c->lock);
}

static enum status take_saved_object(void *context, struct cached_blocks *b, int fd, struct error *err)
{
        struct remote_cache *c = context;
        struct remote_object *o, *old;
        enum status st = make_object(b, fd, &o, err);

        if (st)
                return st;
        for (uint64_t i = 0; i < o->blocks.count; i++)
                o->bytes += is_bit_set(o->blocks.present, i) ? BLOCK : 0;
        o->unchecked = malloc(o->blocks.count / 8 + 1);
        if (!o->unchecked) {
                free_object(o);
                return error_no_memory(err);
        }
        memcpy(o->unchecked, o->blocks.present, o->blocks.count / 8 + 1);
        pthread_mutex_lock(&c->lock);
        old = find_object(c, o->blocks.key);
        if (old)
                forget_object(c, old);
        lru_table_insert(&c->objects, &o->lru, keyed_hash(o->blocks.key, strlen(o->blocks.key)));
        o->is_known = true;
        c->bytes += o->bytes;
        shrink_cache(c);
        pthread_mutex_unlock(&c->lock);
        metric_add(&kept, 1);
        return ST_OK;
}

void remote_cache_note_present(struct remote_cache *c, struct remote_object *o, const struct file_range *range)
{
        uint64_t end = range->offset + range->size;

        pthread_mutex_lock(&o->fetching);
        set_present(c, o, (range->offset + BLOCK - 1) / BLOCK,
                    end == o->blocks.info.size ? (end + BLOCK - 1) / BLOCK : end / BLOCK);
        pthread_mutex_unlock(&o->fetching);
}

/* Missing blocks to be fetched together, and what became of it. */
struct block_run {
        uint64_t first, end;
        enum status status;
        struct error error;
};

struct block_runs {
        struct block_run *items; /* owned */
        size_t count, capacity;
        const struct remote_object *object;
        remote_cache_fetch *fetch;
        void *context;
};

/* List the missing blocks of [first, end) as runs that may contain a few present blocks. With `fetching`. */
static enum status list_missing_blocks(struct remote_cache *c, struct remote_object *o, uint64_t first, uint64_t end,
                                       struct block_runs *runs, struct error *err)
{
        for (uint64_t b = first; b < end; b++) {
                uint64_t last = b; /* missing one of the run */

                if (is_present(c, o, b))
                        continue;
                for (uint64_t next = b + 1; next < end && next - last <= REMOTE_CACHE_GAP_BLOCKS; next++) {
                        if (!is_present(c, o, next))
                                last = next;
                }
                if (!array_reserve(&runs->items, &runs->capacity, runs->count))
                        return error_no_memory(err);
                runs->items[runs->count++] = (struct block_run){ .first = b, .end = last + 1 };
                b = last;
        }
        return ST_OK;
}

static void fetch_block_run(void *context, size_t index)
{
        const struct block_runs *runs = context;
        const struct remote_object *o = runs->object;
        struct block_run *run = &runs->items[index];
        struct file_range range = { run->first * BLOCK, (run->end - run->first) * BLOCK };

        if (range.size > o->blocks.info.size - range.offset)
                range.size = o->blocks.info.size - range.offset;
        run->status = runs->fetch(runs->context, o->blocks.key, &o->blocks.info, o->fd, &range, &run->error);
}

/* All runs at once. With `fetching`. */
static enum status fetch_block_runs(struct remote_cache *c, struct remote_object *o, struct block_runs *runs,
                                    struct error *err)
{
        enum status first = ST_OK;

        do_waiting_tasks(runs->count, fetch_block_run, runs);
        for (size_t i = 0; i < runs->count; i++) {
                const struct block_run *run = &runs->items[i];

                if (!run->status)
                        set_present(c, o, run->first, run->end);
                else if (!first && err)
                        *err = run->error;
                first = first ? first : run->status;
        }
        return first;
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
        struct block_runs runs = { .object = o, .fetch = fetch, .context = context };
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < count;) {
                uint64_t first = ranges[i].offset / BLOCK, end = first;

                for (; i < count && ranges[i].offset / BLOCK <= end + REMOTE_CACHE_GAP_BLOCKS; i++) {
                        uint64_t own_end = (ranges[i].offset + ranges[i].size + BLOCK - 1) / BLOCK;

                        end = own_end > end ? own_end : end;
                }
                st = list_missing_blocks(c, o, first, end, &runs, err);
        }
        if (!st && runs.count)
                st = fetch ? fetch_block_runs(c, o, &runs, err)
                           : error_os(err, EREMOTEIO, "the cache lacks a range of '%.120s'", o->blocks.key);
        free(runs.items);
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
                if (sorted[i].offset > o->blocks.info.size || sorted[i].size > o->blocks.info.size - sorted[i].offset)
                        return error_set(err, ST_BAD_DATA, "a range at %llu is not in '%.120s'",
                                         (unsigned long long)sorted[i].offset, o->blocks.key);
        }
        pthread_mutex_lock(&o->fetching);
        st = fetch_ranges(c, o, sorted, count, fetch, context, err);
        pthread_mutex_unlock(&o->fetching);
        return st;
}
