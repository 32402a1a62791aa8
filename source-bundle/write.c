/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/limits.h"
#include "source-bundle/bundle.h"
#include "source-bundle/format.h"

#define SLICE_BYTES KiB(256)

static enum status write_table(const struct build_id *id, const struct source_file *files, size_t count, struct buf *to,
                               struct error *err)
{
        static const uint8_t zeros[BUNDLE_ID_BYTES];
        uint64_t names = 0, at, size;
        uint32_t name_at = 0;

        for (size_t i = 0; i < count; i++)
                names += strlen(files[i].name);
        size = count * BUNDLE_ENTRY_BYTES + names;
        if (count > UINT32_MAX / BUNDLE_ENTRY_BYTES || size > LIMIT_SOURCE_TABLE_BYTES)
                return error_set(err, ST_TOO_BIG, "%zu source files are too many for one bundle", count);
        buf_append(to, BUNDLE_MAGIC, BUNDLE_MAGIC_BYTES);
        buf_append_u32(to, BUNDLE_VERSION);
        buf_append_u32(to, id->size);
        buf_append(to, id->bytes, id->size);
        buf_append(to, zeros, BUNDLE_ID_BYTES - id->size);
        buf_append_u32(to, (uint32_t)count);
        buf_append_u32(to, (uint32_t)names);
        at = BUNDLE_HEADER_BYTES + size;
        for (size_t i = 0; i < count; i++) {
                uint32_t n = (uint32_t)strlen(files[i].name);

                buf_append_u32(to, name_at);
                buf_append_u32(to, n);
                buf_append_u64(to, at);
                buf_append_u64(to, files[i].size_bytes);
                name_at += n;
                at += files[i].size_bytes;
        }
        for (size_t i = 0; i < count; i++)
                buf_append_str(to, files[i].name);
        if (at > LIMIT_OBJECT_BYTES)
                return error_set(err, ST_TOO_BIG, "the source files have more than %zu bytes together", (size_t)LIMIT_OBJECT_BYTES);
        return buf_status(to, err, "table of a source bundle");
}

static enum status copy(int out, const struct source_file *f, void *slice, struct error *err)
{
        _cleanup_close_ int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
        uint64_t left = f->size_bytes;

        if (fd < 0)
                return error_os(err, errno, "cannot open '%s'", f->path);
        for (;;) {
                ssize_t n = read(fd, slice, SLICE_BYTES);
                enum status st;

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return error_os(err, errno, "cannot read '%s'", f->path);
                if ((uint64_t)n > left || (n == 0 && left))
                        return error_set(err, ST_NOT_FOUND, "'%s' changed while it was bundled; upload it again", f->path);
                if (n == 0)
                        return ST_OK;
                left -= (uint64_t)n;
                st = file_write_all(out, slice, (size_t)n, "source bundle", err);
                if (st)
                        return st;
        }
}

enum status source_bundle_write(int fd, const struct build_id *id, const struct source_file *files, size_t count,
                                uint64_t *size_ret, struct error *err)
{
        _cleanup_buf_ struct buf table;
        _cleanup_free_ void *slice = malloc(SLICE_BYTES);
        enum status st;

        buf_init(&table, BUNDLE_HEADER_BYTES + LIMIT_SOURCE_TABLE_BYTES);
        st = slice ? write_table(id, files, count, &table, err) : error_no_memory(err);
        *size_ret = table.size;
        if (!st)
                st = file_write_all(fd, table.data, table.size, "source bundle", err);
        for (size_t i = 0; i < count && !st; i++) {
                st = copy(fd, &files[i], slice, err);
                *size_ret += files[i].size_bytes;
        }
        return st;
}
