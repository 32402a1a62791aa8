/* SPDX-License-Identifier: Apache-2.0 */
#include "source-bundle/bundle.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "common/memory/buf.h"
#include "common/reader.h"
#include "common/search.h"

/* Layout: docs/formats/source-bundle.md. */
#define BUNDLE_MAGIC "CAIRNSRC"
#define BUNDLE_MAGIC_BYTES 8
#define BUNDLE_VERSION 1
#define BUNDLE_ID_BYTES 64
#define BUNDLE_HEADER_BYTES (BUNDLE_MAGIC_BYTES + 4 + 4 + BUNDLE_ID_BYTES + 4 + 4)
#define BUNDLE_ENTRY_BYTES 24

struct entry {
        const char *name;
        uint32_t name_bytes;
        uint64_t offset, size;
};

bool source_bundle_magic(const void *head, size_t n)
{
        return n >= BUNDLE_MAGIC_BYTES && memcmp(head, BUNDLE_MAGIC, BUNDLE_MAGIC_BYTES) == 0;
}

void source_bundle_close(struct source_bundle *b)
{
        free(b->table);
        *b = (struct source_bundle){ 0 };
}

/* False when the entry's name is not inside the names. */
static bool get_entry(const struct source_bundle *b, uint32_t i, struct entry *ret)
{
        const char *names = (const char *)b->table + (size_t)b->count * BUNDLE_ENTRY_BYTES;
        size_t names_bytes = b->table_bytes - (size_t)b->count * BUNDLE_ENTRY_BYTES;
        struct reader r;
        uint32_t name_at;

        reader_init(&r, b->table + (size_t)i * BUNDLE_ENTRY_BYTES, BUNDLE_ENTRY_BYTES);
        if (!reader_u32(&r, &name_at) || !reader_u32(&r, &ret->name_bytes) || !reader_u64(&r, &ret->offset) ||
            !reader_u64(&r, &ret->size) || name_at > names_bytes || ret->name_bytes > names_bytes - name_at)
                return false;
        ret->name = names + name_at;
        return true;
}

static int compare_entry_names(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
        int c = memcmp(a, b, a_bytes < b_bytes ? a_bytes : b_bytes);

        return c ? c : (a_bytes > b_bytes) - (a_bytes < b_bytes);
}

static enum status read_exactly(source_bundle_read *read, void *context, void *to, size_t n, uint64_t offset,
                                struct error *err)
{
        ssize_t got = n ? read(context, to, n, offset, err) : 0;

        if (got < 0)
                return ST_OS;
        return (size_t)got == n ? ST_OK : error_set(err, ST_BAD_DATA, "the source bundle is cut off");
}

static enum status read_bundle_header(struct source_bundle *b, const uint8_t bytes[static BUNDLE_HEADER_BYTES],
                                      struct error *err)
{
        const uint8_t *magic, *id;
        uint32_t version, id_bytes, names_bytes;
        struct reader r;

        reader_init(&r, bytes, BUNDLE_HEADER_BYTES);
        if (!reader_bytes(&r, BUNDLE_MAGIC_BYTES, &magic) || !reader_u32(&r, &version) || !reader_u32(&r, &id_bytes) ||
            !reader_bytes(&r, BUNDLE_ID_BYTES, &id) || !reader_u32(&r, &b->count) || !reader_u32(&r, &names_bytes))
                return reader_error(&r, err, "the header of a source bundle");
        if (!source_bundle_magic(magic, BUNDLE_MAGIC_BYTES))
                return error_set(err, ST_BAD_DATA, "not a source bundle");
        if (version != BUNDLE_VERSION)
                return error_set(err, ST_UNSUPPORTED, "the source bundle has version %u, this program supports %d",
                                 version, BUNDLE_VERSION);
        if (id_bytes > BUNDLE_ID_BYTES || !build_id_from_bytes(&b->build_id, id, id_bytes))
                return error_set(err, ST_BAD_DATA, "the source bundle has no build-id");
        b->table_bytes = (size_t)b->count * BUNDLE_ENTRY_BYTES + names_bytes;
        if (b->table_bytes > LIMIT_SOURCE_TABLE_BYTES)
                return error_set(err, ST_TOO_BIG, "the table of the source bundle has more than %zu bytes",
                                 (size_t)LIMIT_SOURCE_TABLE_BYTES);
        return ST_OK;
}

static bool is_bundle_name(const char *name, size_t n)
{
        return n && n <= LIMIT_PATH_BYTES && name[0] == '/' && !memchr(name, 0, n);
}

/* Names are absolute paths in order, and contents follow each other to the end of the file. */
static enum status check_table(const struct source_bundle *b, uint64_t size, struct error *err)
{
        uint64_t at = BUNDLE_HEADER_BYTES + b->table_bytes;
        struct entry before = { .name = "" }, e;

        for (uint32_t i = 0; i < b->count; i++, before = e) {
                if (!get_entry(b, i, &e) || !is_bundle_name(e.name, e.name_bytes))
                        return error_set(err, ST_BAD_DATA, "the source bundle has an invalid path");
                if (compare_entry_names(before.name, before.name_bytes, e.name, e.name_bytes) >= 0)
                        return error_set(err, ST_BAD_DATA, "the paths of the source bundle are not in order");
                if (e.offset != at || e.size > size - at)
                        return error_set(err, ST_BAD_DATA,
                                         "the contents of the source bundle do not follow each other");
                at += e.size;
        }
        return at == size
                       ? ST_OK
                       : error_set(err, ST_BAD_DATA, "the size of the source bundle differs from that of its contents");
}

enum status source_bundle_open(source_bundle_read *read, void *context, uint64_t size, struct source_bundle *ret,
                               struct error *err)
{
        struct source_bundle b = { 0 };
        uint8_t header[BUNDLE_HEADER_BYTES];
        enum status st = size < BUNDLE_HEADER_BYTES ? error_set(err, ST_BAD_DATA, "the source bundle is cut off")
                                                    : read_exactly(read, context, header, sizeof header, 0, err);

        if (!st)
                st = read_bundle_header(&b, header, err);
        if (!st && b.table_bytes > size - BUNDLE_HEADER_BYTES)
                st = error_set(err, ST_BAD_DATA, "the table of the source bundle is cut off");
        if (st)
                return st;
        b.table = malloc(b.table_bytes + 1);
        if (!b.table)
                return error_no_memory(err);
        st = read_exactly(read, context, b.table, b.table_bytes, BUNDLE_HEADER_BYTES, err);
        if (!st)
                st = check_table(&b, size, err);
        if (st)
                source_bundle_close(&b);
        else
                *ret = b;
        return st;
}

/* The order of an entry's name and a path. source_bundle_open() checked that all entries are valid. */
static int compare_entry_to_path(const struct source_bundle *b, size_t i, const char *path, struct entry *ret)
{
        bool is_valid = get_entry(b, (uint32_t)i, ret);

        assert(is_valid);
        return is_valid ? compare_entry_names(ret->name, ret->name_bytes, path, strlen(path)) : 1;
}

bool source_bundle_find(const struct source_bundle *b, const char *path, uint64_t *offset_ret, uint64_t *size_ret)
{
        struct entry e;
        size_t at = find_lower_bound(i, 0, b->count, compare_entry_to_path(b, i, path, &e) < 0);

        if (at == b->count || compare_entry_to_path(b, at, path, &e) != 0)
                return false;
        *offset_ret = e.offset;
        *size_ret = e.size;
        return true;
}

bool source_bundle_find_normalized(const struct source_bundle *b, const char *normal, uint64_t *offset_ret,
                                   uint64_t *size_ret)
{
        for (uint32_t i = 0; i < b->count; i++) {
                char name[LIMIT_PATH_BYTES + 1];
                struct entry e;

                if (!get_entry(b, i, &e) || e.name_bytes > LIMIT_PATH_BYTES)
                        continue;
                memcpy(name, e.name, e.name_bytes);
                name[e.name_bytes] = 0;
                path_normalize(name);
                if (strcmp(name, normal) != 0)
                        continue;
                *offset_ret = e.offset;
                *size_ret = e.size;
                return true;
        }
        return false;
}

/* ---- writing ---- */

#define SLICE_BYTES KiB(256)

static enum status write_table(const struct build_id *id, const struct source_file *files, size_t count, struct buf *to,
                               struct error *err)
{
        static const uint8_t zeros[BUNDLE_ID_BYTES];
        uint64_t names = 0, at, size;
        uint32_t name_at = 0;

        for (size_t i = 0; i < count; i++) {
                size_t n = strlen(files[i].name);

                if (!is_bundle_name(files[i].name, n))
                        return error_set(err, ST_USAGE,
                                         "'%.100s' is not an absolute path of at most %d bytes, as a bundle requires",
                                         files[i].name, LIMIT_PATH_BYTES);
                names += n;
        }
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
                return error_set(err, ST_TOO_BIG, "the source files have more than %zu bytes together",
                                 (size_t)LIMIT_OBJECT_BYTES);
        return buf_status(to, err, "table of a source bundle");
}

static enum status copy_source(int out, const struct source_file *f, void *slice, struct error *err)
{
        _cleanup_close_ int fd = f->text ? -1 : open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
        uint64_t left = f->size_bytes;

        if (f->text)
                return file_write_all(out, f->text, (size_t)f->size_bytes, "source bundle", err);
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
                        return error_set(err, ST_NOT_FOUND, "'%s' changed while it was bundled; upload it again",
                                         f->path);
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

        assert(fd >= 0 && (files || !count));
        buf_init(&table, BUNDLE_HEADER_BYTES + LIMIT_SOURCE_TABLE_BYTES);
        st = slice ? write_table(id, files, count, &table, err) : error_no_memory(err);
        *size_ret = table.size;
        if (!st)
                st = file_write_all(fd, table.data, table.size, "source bundle", err);
        for (size_t i = 0; i < count && !st; i++) {
                st = copy_source(fd, &files[i], slice, err);
                *size_ret += files[i].size_bytes;
        }
        return st;
}
