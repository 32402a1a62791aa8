/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/queue/batch_ids.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "common/memory/buf.h"
#include "common/program/log.h"
#include "common/reader.h"
#include "profile-store/rows/key_map.h"

/* 16 bytes of id, 8 of time, 8 of checksum over both. */
#define ENTRY_BYTES 32
#define GENERATION_IDS (LIMIT_BATCH_IDS / 16)
#define GENERATION_AGE_S (LIMIT_BATCH_ID_AGE_S / 8)

struct generation {
        uint64_t number;
        struct key_map ids;
        int64_t oldest_unix_s, newest_unix_s;
        uint64_t bytes;
};

struct batch_ids {
        char *dir;
        pthread_mutex_t lock;           /* protects the members below; not held during the I/O of an addition */
        struct generation *generations; /* by number; ids are added to the last one */
        size_t count, capacity;
        size_t id_count;
        struct buf unwritten; /* entries of kept ids, which precede the next addition */
};

static char *make_generation_path(const struct batch_ids *ids, uint64_t number)
{
        char *ret;

        return asprintf(&ret, "%s/%08" PRIu64 ".ids", ids->dir, number) < 0 ? NULL : ret;
}

static enum status add_generation(struct batch_ids *ids, uint64_t number, struct error *err)
{
        if (!array_reserve(&ids->generations, &ids->capacity, ids->count))
                return error_no_memory(err);
        ids->generations[ids->count++] = (struct generation){ .number = number };
        return ST_OK;
}

static enum status insert_batch_id(struct batch_ids *ids, struct generation *g, const struct hash128 *id,
                                   int64_t unix_s, struct error *err)
{
        bool added;
        enum status st = key_map_put(&g->ids, id, 0, &added, NULL, err);

        if (st)
                return st;
        if (g->ids.count == 1)
                g->oldest_unix_s = g->newest_unix_s = unix_s;
        g->newest_unix_s = unix_s > g->newest_unix_s ? unix_s : g->newest_unix_s;
        ids->id_count += added;
        return ST_OK;
}

static enum status read_generation(struct batch_ids *ids, struct generation *g, struct error *err)
{
        _cleanup_free_ char *path = make_generation_path(ids, g->number);
        _cleanup_buf_ struct buf bytes;
        struct reader r;
        const uint8_t *entry;
        enum status st;

        buf_init(&bytes, (size_t)LIMIT_BATCH_IDS * ENTRY_BYTES);
        if (!path)
                return error_no_memory(err);
        st = file_read(path, &bytes, err);
        if (st)
                return st;
        reader_init(&r, bytes.data, bytes.size);
        while (!st && reader_bytes(&r, ENTRY_BYTES, &entry)) {
                struct hash128 id;
                struct reader fields;
                uint64_t unix_s, checksum;

                reader_init(&fields, entry, ENTRY_BYTES);
                if (!reader_skip(&fields, sizeof id.bytes) || !reader_u64(&fields, &unix_s) ||
                    !reader_u64(&fields, &checksum) || checksum != hash_bytes64(entry, 24))
                        break;
                memcpy(id.bytes, entry, sizeof id.bytes);
                st = insert_batch_id(ids, g, &id, (int64_t)unix_s, err);
                g->bytes += ENTRY_BYTES;
        }
        return st;
}

static int compare_generation_numbers(const void *a, const void *b)
{
        const struct generation *x = a, *y = b;

        return (x->number > y->number) - (x->number < y->number);
}

enum status batch_ids_open(const char *dir, struct batch_ids **ret, struct error *err)
{
        struct batch_ids *ids = calloc(1, sizeof *ids);
        _cleanup_closedir_ DIR *d = NULL;
        struct dirent *e;
        enum status st = ST_OK;

        if (!ids)
                return error_no_memory(err);
        pthread_mutex_init(&ids->lock, NULL);
        buf_init(&ids->unwritten, (size_t)LIMIT_BATCH_IDS * ENTRY_BYTES);
        ids->dir = strdup(dir);
        if (!ids->dir)
                st = error_no_memory(err);
        if (!st)
                st = file_make_dirs(dir, err);
        if (!st && !(d = opendir(dir)))
                st = error_os(err, errno, "cannot list '%s'", dir);
        while (!st && (e = readdir(d))) {
                uint64_t number;
                int end = 0;

                if (sscanf(e->d_name, "%8" SCNu64 ".ids%n", &number, &end) == 1 && end && !e->d_name[end])
                        st = add_generation(ids, number, err);
        }
        if (!st && ids->count)
                qsort(ids->generations, ids->count, sizeof *ids->generations, compare_generation_numbers);
        for (size_t i = 0; !st && i < ids->count; i++)
                st = read_generation(ids, &ids->generations[i], err);
        if (st) {
                batch_ids_close(ids);
                return st;
        }
        *ret = ids;
        return ST_OK;
}

void batch_ids_close(struct batch_ids *ids)
{
        if (!ids)
                return;
        for (size_t i = 0; i < ids->count; i++)
                key_map_deinit(&ids->generations[i].ids);
        buf_deinit(&ids->unwritten);
        pthread_mutex_destroy(&ids->lock);
        free(ids->generations);
        free(ids->dir);
        free(ids);
}

bool batch_ids_contain(struct batch_ids *ids, const struct hash128 *id)
{
        bool found = false;

        pthread_mutex_lock(&ids->lock);
        for (size_t i = ids->count; !found && i-- > 0;)
                found = key_map_find(&ids->generations[i].ids, id);
        pthread_mutex_unlock(&ids->lock);
        return found;
}

static enum status drop_old_generations(struct batch_ids *ids, int64_t now_unix_s, struct error *err)
{
        while (ids->count > 1 && (ids->generations[0].newest_unix_s < now_unix_s - LIMIT_BATCH_ID_AGE_S ||
                                  ids->id_count > LIMIT_BATCH_IDS)) {
                struct generation *g = &ids->generations[0];
                _cleanup_free_ char *path = make_generation_path(ids, g->number);

                if (!path)
                        return error_no_memory(err);
                if (unlink(path) < 0 && errno != ENOENT)
                        return error_os(err, errno, "cannot unlink '%s'", path);
                ids->id_count -= g->ids.count;
                key_map_deinit(&g->ids);
                memmove(g, g + 1, (--ids->count) * sizeof *g);
        }
        return ST_OK;
}

static enum status select_generation(struct batch_ids *ids, int64_t now_unix_s, struct generation **ret,
                                     struct error *err)
{
        struct generation *last = ids->count ? &ids->generations[ids->count - 1] : NULL;

        if (!last || last->ids.count >= GENERATION_IDS ||
            (last->ids.count && last->oldest_unix_s < now_unix_s - GENERATION_AGE_S)) {
                enum status st = add_generation(ids, last ? last->number + 1 : 1, err);

                if (st)
                        return st;
        }
        *ret = &ids->generations[ids->count - 1];
        return ST_OK;
}

/* Append after the last intact entry; a torn tail is truncated. */
static enum status append_entries_to_file(struct batch_ids *ids, struct generation *g, const struct buf *entries,
                                          struct error *err)
{
        _cleanup_free_ char *path = make_generation_path(ids, g->number);
        _cleanup_close_ int fd = -1;
        enum status st;

        if (!path)
                return error_no_memory(err);
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        if (fd < 0 || ftruncate(fd, (off_t)g->bytes) < 0 || lseek(fd, 0, SEEK_END) < 0)
                return error_os(err, errno, "cannot open '%s'", path);
        st = file_write_all(fd, entries->data, entries->size, path, err);
        if (st)
                return st;
        if (file_sync_timed(fd, SYNC_QUEUE) < 0)
                return error_os(err, errno, "cannot sync '%s'", path);
        st = g->bytes ? ST_OK : file_sync_parent(path, err);
        if (!st)
                g->bytes += entries->size;
        return st;
}

static enum status append_new_entries(struct batch_ids *ids, const struct hash128 *items, size_t count,
                                      int64_t now_unix_s, struct buf *entries, struct error *err)
{
        for (size_t i = 0; i < count; i++) {
                uint8_t entry[24];

                if (batch_ids_contain(ids, &items[i]))
                        continue;
                memcpy(entry, items[i].bytes, 16);
                for (int k = 0; k < 8; k++)
                        entry[16 + k] = (uint8_t)((uint64_t)now_unix_s >> (8 * k));
                buf_append(entries, entry, sizeof entry);
                buf_append_u64(entries, hash_bytes64(entry, sizeof entry));
        }
        return buf_status(entries, err, "batch ids");
}

static enum status insert_entries(struct batch_ids *ids, struct generation *g, const struct buf *entries, size_t first,
                                  int64_t now_unix_s, struct error *err)
{
        enum status st = ST_OK;

        pthread_mutex_lock(&ids->lock);
        for (size_t at = first; !st && at < entries->size; at += ENTRY_BYTES) {
                struct hash128 id;

                memcpy(id.bytes, entries->data + at, sizeof id.bytes);
                st = insert_batch_id(ids, g, &id, now_unix_s, err);
        }
        pthread_mutex_unlock(&ids->lock);
        return st;
}

/* The generation of so many bytes of entries. Only the thread that adds changes generations, so it stays valid. */
static enum status prepare_generation(struct batch_ids *ids, size_t bytes, int64_t now_unix_s, struct generation **ret,
                                      struct error *err)
{
        enum status st;

        pthread_mutex_lock(&ids->lock);
        st = drop_old_generations(ids, now_unix_s, err);
        if (!st && bytes)
                st = select_generation(ids, now_unix_s, ret, err);
        pthread_mutex_unlock(&ids->lock);
        return st;
}

enum status batch_ids_add(struct batch_ids *ids, const struct hash128 *items, size_t count, int64_t now_unix_s,
                          struct error *err)
{
        size_t unwritten = ids->unwritten.size;
        _cleanup_buf_ struct buf entries;
        struct generation *g = NULL;
        enum status st;

        buf_init(&entries, (size_t)LIMIT_BATCH_IDS * 2 * ENTRY_BYTES);
        if (unwritten)
                buf_append(&entries, ids->unwritten.data, unwritten);
        st = append_new_entries(ids, items, count, now_unix_s, &entries, err);
        if (!st)
                st = prepare_generation(ids, entries.size, now_unix_s, &g, err);
        if (st || !entries.size)
                return st;
        st = append_entries_to_file(ids, g, &entries, err);
        if (st)
                return st;
        buf_clear(&ids->unwritten);
        return insert_entries(ids, g, &entries, unwritten, now_unix_s, err);
}

static enum status keep_entries(struct batch_ids *ids, const struct hash128 *items, size_t count, int64_t now_unix_s,
                                struct error *err)
{
        size_t first = ids->unwritten.size;
        struct generation *g = NULL;
        enum status st = append_new_entries(ids, items, count, now_unix_s, &ids->unwritten, err);

        if (!st)
                st = prepare_generation(ids, ids->unwritten.size, now_unix_s, &g, err);
        return st ? st : insert_entries(ids, g, &ids->unwritten, first, now_unix_s, err);
}

enum status batch_ids_add_or_keep(struct batch_ids *ids, const struct hash128 *items, size_t count, int64_t now_unix_s,
                                  struct error *err)
{
        struct error why;
        enum status st = batch_ids_add(ids, items, count, now_unix_s, &why);

        if (st == ST_OS && (why.os_errno == ENOSPC || why.os_errno == EDQUOT)) {
                if (!ids->unwritten.size)
                        log_warn("store", "%s; the ids of flushed batches are only in memory until then", why.text);
                return keep_entries(ids, items, count, now_unix_s, err);
        }
        if (st && err)
                *err = why;
        return st;
}

bool batch_ids_are_written(const struct batch_ids *ids)
{
        return !ids->unwritten.size;
}
