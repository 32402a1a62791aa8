/* SPDX-License-Identifier: Apache-2.0 */
/* Reading stored objects and their sections. */
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/hash/sha256.h"
#include "common/metrics.h"
#include "debuginfo-store/debuginfo_store_internal.h"
#include "debuginfo-store/seekable.h"

static struct metric unpacked_objects = METRIC_COUNTER("cairn_debuginfo_unpacked_total",
                                                       "Stored objects that were fully decompressed for a worker.", "");

struct object_reader {
        struct debuginfo_store *store;
        struct seekable_reader *seekable;
        struct stored_object object;
};

void object_reader_register_metrics(void)
{
        metric_register(&unpacked_objects);
}

/* Open the file of an object. Of one in an object store only the ranges that are read are fetched. */
static enum status open_object_file(struct debuginfo_store *store, const char *key, const char *name,
                                    struct seekable_reader **ret, struct error *err)
{
        struct storage_info info;
        struct storage_map map;
        enum status st;
        int fd;

        st = store->is_remote ? storage_map(store->storage, key, LIMIT_OBJECT_BYTES, &map, err)
                              : storage_open(store->storage, key, &fd, &info, err);
        if (st)
                return st;
        return store->is_remote ? seekable_open_map(&map, name, ret, err) : seekable_open(fd, name, ret, err);
}

enum status object_reader_open(struct debuginfo_store *store, const struct build_id *id, enum object_kind kind,
                               struct object_reader **ret, struct stored_object *object_ret, struct error *err)
{
        _cleanup_free_ struct object_reader *r = calloc(1, sizeof *r);
        enum status st;

        if (!r)
                return error_no_memory(err);
        /* A better upload may replace the object between find and open: retry with the new record. */
        for (unsigned tries = 0;; tries++) {
                _cleanup_free_ char *key = NULL, *name = NULL;

                st = debuginfo_store_find(store, id, kind, &r->object, err);
                if (st)
                        return st;
                key = object_format_key(&r->object);
                name = key ? storage_make_name(store->storage, key) : NULL;
                if (!name)
                        return error_no_memory(err);
                st = open_object_file(store, key, name, &r->seekable, err);
                if (st == ST_NOT_FOUND && tries < 3)
                        continue;
                if (st == ST_NOT_FOUND)
                        return error_os(err, ENOENT, "cannot open stored object '%s'", name);
                if (st)
                        return st;
                break;
        }
        if (seekable_get_size(r->seekable) != r->object.size_bytes) {
                seekable_close(r->seekable);
                return error_set(err, ST_BAD_DATA, "stored object '%s' does not have the recorded size",
                                 r->object.name);
        }
        r->store = store;
        if (object_ret)
                *object_ret = r->object;
        *ret = steal_ptr(r);
        return ST_OK;
}

ssize_t object_reader_pread(struct object_reader *r, void *to, size_t n, uint64_t offset, struct error *err)
{
        return seekable_pread(r->seekable, to, n, offset, err);
}

void object_reader_use_cache(struct object_reader *r)
{
        seekable_use_cache(r->seekable, r->store->frames, r->object.sha256);
}

void object_reader_close(struct object_reader *r)
{
        if (!r)
                return;
        seekable_close(r->seekable);
        free(r);
}

static void cleanup_object_reader(struct object_reader **r)
{
        object_reader_close(*r);
}

enum status debuginfo_store_unpack(struct debuginfo_store *store, const struct build_id *id, enum object_kind kind,
                                   int *fd_ret, struct error *err)
{
        _cleanup_(cleanup_object_reader) struct object_reader *r = NULL;
        _cleanup_close_ int fd = -1;
        _cleanup_free_ void *bytes = malloc(SEEKABLE_FRAME_BYTES);
        enum status st = object_reader_open(store, id, kind, &r, NULL, err);

        if (st)
                return st;
        fd = object_create_temporary(store, err);
        if (fd < 0)
                return ST_OS;
        if (!bytes)
                return error_no_memory(err);
        for (uint64_t at = 0; at < seekable_get_size(r->seekable);) {
                ssize_t n = object_reader_pread(r, bytes, SEEKABLE_FRAME_BYTES, at, err);

                if (n <= 0)
                        return n < 0 ? ST_BAD_DATA : error_set(err, ST_BAD_DATA, "a stored object is truncated");
                st = file_write_all(fd, bytes, (size_t)n, store->dir, err);
                if (st)
                        return st;
                at += (uint64_t)n;
        }
        metric_add(&unpacked_objects, 1);
        *fd_ret = steal_fd(&fd);
        return ST_OK;
}

/* ---- sections ---- */

enum status object_reader_find_section(const struct object_reader *r, const char *name, uint64_t *offset_ret,
                                       uint64_t *size_ret, struct error *err)
{
        return meta_find_section(r->store->meta, &r->object, name, offset_ret, size_ret, err);
}

/* A section that ends beyond the file is reported by the uncached path. */
static enum status copy_cached_section(struct debuginfo_store *store, const struct stored_object *object,
                                       uint64_t offset, uint64_t size, void **ret, struct error *err)
{
        _cleanup_free_ void *bytes = size <= OBJECT_CACHED_SECTION_MAX_BYTES ? malloc(size ? size : 1) : NULL;

        if (!bytes || frame_cache_read(store->frames, object->sha256, bytes, size, offset) != size)
                return error_set(err, ST_BUSY, "the section has to be decompressed");
        *ret = steal_ptr(bytes);
        return ST_OK;
}

enum status debuginfo_store_read_cached_section(struct debuginfo_store *store, const struct stored_object *object,
                                                const char *name, void **ret, size_t *size_ret, struct error *err)
{
        uint64_t offset, size;
        enum status st = meta_find_section(store->meta, object, name, &offset, &size, err);

        if (st == ST_UNSUPPORTED)
                return error_set(err, ST_BUSY, "its section list is not stored");
        if (!st)
                st = copy_cached_section(store, object, offset, size, ret, err);
        if (!st)
                *size_ret = (size_t)size;
        return st;
}

/* ---- checking a stored object ---- */

static enum status hash_stored_object(struct object_reader *r, const struct stored_object *object, struct error *err)
{
        _cleanup_free_ void *bytes = malloc(SEEKABLE_FRAME_BYTES);
        _cleanup_sha256_ struct sha256 sha = { 0 };
        uint8_t found[SHA256_BYTES];
        enum status st = bytes ? sha256_init(&sha, err) : error_no_memory(err);

        for (uint64_t at = 0; !st && at < object->size_bytes;) {
                ssize_t n = object_reader_pread(r, bytes, SEEKABLE_FRAME_BYTES, at, err);

                if (n <= 0)
                        return n < 0 ? ST_BAD_DATA : error_set(err, ST_BAD_DATA, "it is truncated");
                sha256_update(&sha, bytes, (size_t)n);
                at += (uint64_t)n;
        }
        if (st)
                return st;
        sha256_final(&sha, found);
        return memcmp(found, object->sha256, sizeof found) == 0
                       ? ST_OK
                       : error_set(err, ST_BAD_DATA, "its content does not have the recorded SHA-256");
}

enum status debuginfo_store_check_object(struct debuginfo_store *store, const struct object_name *name,
                                         struct error *err)
{
        struct object_reader *r;
        struct stored_object object;
        enum status st = object_reader_open(store, &name->build_id, name->kind, &r, &object, err);

        if (st)
                return st;
        st = hash_stored_object(r, &object, err);
        object_reader_close(r);
        return st;
}
