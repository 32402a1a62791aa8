/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo-store/part_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/files/evict.h"
#include "common/files/file.h"
#include "common/hash/sha256.h"
#include "common/limits.h"
#include "debuginfo-store/debuginfo_store_internal.h"

#define EVICT_EACH_BYTES (LIMIT_PIECES_BYTES / 16)

/* DIR/pieces/ab/cdef...: the hash of build-id and part, so that client input is never used as a path. Owned; NULL: out
 * of memory. */
static char *format_part_path(const struct debuginfo_store *store, const struct build_id *id, const char *part)
{
        _cleanup_sha256_ struct sha256 sha = { 0 };
        uint8_t digest[SHA256_BYTES];
        char hex[SHA256_HEX_MAX], *path;

        if (sha256_init(&sha, NULL))
                return NULL;
        sha256_update(&sha, &id->size, sizeof id->size);
        sha256_update(&sha, id->bytes, id->size);
        sha256_update(&sha, part, strlen(part));
        sha256_final(&sha, digest);
        sha256_hex(digest, hex);
        return asprintf(&path, "%s/pieces/%.2s/%s", store->dir, hex, hex + 2) < 0 ? NULL : path;
}

enum status part_cache_open(struct debuginfo_store *store, const struct build_id *id, const char *part, int *fd_ret,
                            struct error *err)
{
        _cleanup_free_ char *path = format_part_path(store, id, part);
        int fd;

        if (!path)
                return error_no_memory(err);
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0 && errno == ENOENT)
                return error_set(err, ST_NOT_FOUND, "the part is not cached");
        if (fd < 0)
                return error_os(err, errno, "cannot open '%s'", path);
        if (!store->is_read_only)
                (void)!utimensat(AT_FDCWD, path, NULL, 0); /* update the time of last use */
        *fd_ret = fd;
        return ST_OK;
}

static enum status write_part_chunk(void *context, const void *data, size_t n, struct error *err)
{
        return file_write_all(*(const int *)context, data, n, "piece", err);
}

/* Also runs at the first insertion, for files of the previous process. */
static void evict_parts(const struct debuginfo_store *store, uint64_t added)
{
        static _Atomic uint64_t unseen = EVICT_EACH_BYTES;
        _cleanup_free_ char *dir = NULL;

        if (atomic_fetch_add(&unseen, added) + added < EVICT_EACH_BYTES)
                return;
        atomic_store(&unseen, 0);
        dir = path_join(store->dir, "pieces");
        if (dir)
                evict_oldest_files(dir, LIMIT_PIECES_BYTES);
}

enum status part_cache_insert(struct debuginfo_store *store, const struct build_id *id, const char *part, int fd,
                              struct error *err)
{
        _cleanup_free_ char *path = format_part_path(store, id, part), *tmp = NULL;
        _cleanup_free_ char *dir = path ? strndup(path, (size_t)(path_base(path) - path - 1)) : NULL;
        uint64_t size = 0;
        int out;
        enum status st = dir ? file_make_dirs(dir, err) : error_no_memory(err);

        if (!st)
                st = file_create_temporary(path, &tmp, &out, err);
        if (st)
                return st;
        st = file_read_chunks(fd, "the fetched file", write_part_chunk, &out, &size, err);
        if (st) {
                close(out);
                unlink(tmp);
                return st;
        }
        st = file_publish(out, tmp, path, err);
        if (!st)
                evict_parts(store, size);
        return st;
}
