/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo-store/stored_source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "debuginfo-store/part_cache.h"
#include "source-bundle/bundle.h"

static ssize_t read_bundle_bytes(void *reader, void *to, size_t n, uint64_t offset, struct error *err)
{
        return object_reader_pread(reader, to, n, offset, err);
}

static enum status find_bundled_file(const struct source_bundle *bundle, const char *path, struct stored_source *ret,
                                     struct error *err)
{
        _cleanup_free_ char *normal = NULL;

        if (source_bundle_find(bundle, path, &ret->offset, &ret->size_bytes))
                return ST_OK;
        if (asprintf(&normal, "/%s", path) < 0) { /* a relative path is below the root, as in the bundle */
                normal = NULL;
                return error_no_memory(err);
        }
        path_normalize(normal);
        return source_bundle_find_normalized(bundle, normal, &ret->offset, &ret->size_bytes) ? ST_OK : ST_NOT_FOUND;
}

enum status stored_source_open(struct debuginfo_store *store, const struct build_id *id, const char *path,
                               struct stored_source *ret, struct error *err)
{
        struct stored_source s = { 0 };
        struct source_bundle bundle;
        struct stored_object stored;
        enum status st = object_reader_open(store, id, OBJECT_SOURCE, &s.reader, &stored, err);

        if (st)
                return st;
        object_reader_use_cache(s.reader);
        st = source_bundle_open(read_bundle_bytes, s.reader, stored.size_bytes, &bundle, err);
        if (!st) {
                st = find_bundled_file(&bundle, path, &s, err);
                source_bundle_close(&bundle);
        }
        if (st)
                object_reader_close(s.reader);
        else
                *ret = s;
        return st;
}

ssize_t stored_source_pread(const struct stored_source *s, void *to, size_t n, uint64_t offset, struct error *err)
{
        if (offset >= s->size_bytes)
                return 0;
        return object_reader_pread(s->reader, to, n < s->size_bytes - offset ? n : (size_t)(s->size_bytes - offset),
                                   s->offset + offset, err);
}

void stored_source_close(struct stored_source *s)
{
        object_reader_close(s->reader);
        s->reader = NULL;
}

enum status stored_source_append(struct debuginfo_store *store, const struct build_id *id, const char *path,
                                 struct buf *ret, struct error *err)
{
        struct stored_source source;
        ssize_t got;
        void *to;
        enum status st = stored_source_open(store, id, path, &source, err);

        if (st)
                return st;
        to = buf_reserve(ret, source.size_bytes);
        if (!to) {
                st = buf_status(ret, err, "source file");
        } else {
                got = stored_source_pread(&source, to, source.size_bytes, 0, err);
                if (got < 0 || (uint64_t)got != source.size_bytes)
                        st = error_set(err, ST_BAD_DATA, "cannot read '%.200s' from its source bundle", path);
                else
                        buf_commit(ret, source.size_bytes);
        }
        stored_source_close(&source);
        return st;
}

enum status source_part_put_name(const char *path, struct buf *ret, struct error *err)
{
        if (*path != '/' || is_path_outside_root(path + 1))
                return error_set(err, ST_NOT_FOUND, "'%.200s' is not an absolute path below its root", path);
        buf_append_str(ret, "source/");
        buf_append_url_encoded(ret, path + 1, "/");
        return buf_cstr(ret) ? ST_OK : error_set(err, ST_NOT_FOUND, "'%.200s' is longer than any path", path);
}

enum status source_file_append(int fd, const char *path, struct buf *ret, struct error *err)
{
        _cleanup_close_ int owned = fd;
        struct stat info;
        void *to;

        if (fstat(owned, &info) < 0)
                return error_os(err, errno, "cannot stat a source file");
        to = buf_reserve(ret, (size_t)info.st_size);
        if (!to)
                return buf_status(ret, err, "source file");
        if (pread(owned, to, (size_t)info.st_size, 0) != info.st_size)
                return error_set(err, ST_BUSY, "'%.200s' was changed while it was read", path);
        buf_commit(ret, (size_t)info.st_size);
        return ST_OK;
}

enum status cached_source_append(struct debuginfo_store *store, const struct build_id *id, const char *path,
                                 struct buf *ret, struct error *err)
{
        _cleanup_buf_ struct buf part;
        int fd;
        enum status st;

        buf_init(&part, 4 * LIMIT_PATH_BYTES);
        st = source_part_put_name(path, &part, err);
        if (!st)
                st = part_cache_open(store, id, (const char *)part.data, &fd, err);
        return st ? st : source_file_append(fd, path, ret, err);
}

enum status stored_source_explain_missing(struct debuginfo_store *store, const struct build_id *id, const char *rest,
                                          struct error *err)
{
        struct stored_object stored;
        bool has_bundle = store && debuginfo_store_find(store, id, OBJECT_SOURCE, &stored, NULL) == ST_OK;
        char hex[BUILD_ID_HEX_MAX];

        return error_set(err, ST_NOT_FOUND,
                         has_bundle ? "the stored sources of build-id %s do not have this file%s"
                                    : "no sources of build-id %s are stored%s",
                         build_id_hex(id, hex), rest);
}
