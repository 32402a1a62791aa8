/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/limits.h"
#include "common/reader.h"
#include "source-bundle/bundle.h"
#include "source-bundle/format.h"

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

/* False for an entry that leaves the names. */
static bool entry_at(const struct source_bundle *b, uint32_t i, struct entry *ret)
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

static int compare_names(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
        int c = memcmp(a, b, a_bytes < b_bytes ? a_bytes : b_bytes);

        return c ? c : (a_bytes > b_bytes) - (a_bytes < b_bytes);
}

static enum status read_exactly(source_bundle_read *read, void *context, void *to, size_t n, uint64_t offset, struct error *err)
{
        ssize_t got = n ? read(context, to, n, offset, err) : 0;

        if (got < 0)
                return ST_OS;
        return (size_t)got == n ? ST_OK : error_set(err, ST_BAD_DATA, "the source bundle is cut off");
}

static enum status read_header(struct source_bundle *b, const uint8_t bytes[static BUNDLE_HEADER_BYTES], struct error *err)
{
        const uint8_t *magic, *id;
        uint32_t version, id_bytes, names_bytes;
        struct reader r;

        reader_init(&r, bytes, BUNDLE_HEADER_BYTES);
        if (!reader_bytes(&r, BUNDLE_MAGIC_BYTES, &magic) || !reader_u32(&r, &version) || !reader_u32(&r, &id_bytes) ||
            !reader_bytes(&r, BUNDLE_ID_BYTES, &id) || !reader_u32(&r, &b->count) || !reader_u32(&r, &names_bytes))
                return reader_error(&r, err, "the header of a source bundle");
        if (!source_bundle_magic(magic, BUNDLE_MAGIC_BYTES))
                return error_set(err, ST_BAD_DATA, "it is no source bundle");
        if (version != BUNDLE_VERSION)
                return error_set(err, ST_UNSUPPORTED, "the source bundle has version %u, this program knows %d", version,
                                 BUNDLE_VERSION);
        if (id_bytes > BUNDLE_ID_BYTES || !build_id_from_bytes(&b->build_id, id, id_bytes))
                return error_set(err, ST_BAD_DATA, "the source bundle has no build-id");
        b->table_bytes = (size_t)b->count * BUNDLE_ENTRY_BYTES + names_bytes;
        if (b->table_bytes > LIMIT_SOURCE_TABLE_BYTES)
                return error_set(err, ST_TOO_BIG, "the table of the source bundle has more than %zu bytes",
                                 (size_t)LIMIT_SOURCE_TABLE_BYTES);
        return ST_OK;
}

/* Names are absolute paths in order, and contents follow each other to the end of the file. */
static enum status check_table(const struct source_bundle *b, uint64_t size, struct error *err)
{
        uint64_t at = BUNDLE_HEADER_BYTES + b->table_bytes;
        struct entry before = { .name = "" }, e;

        for (uint32_t i = 0; i < b->count; i++, before = e) {
                if (!entry_at(b, i, &e) || e.name_bytes == 0 || e.name_bytes > LIMIT_PATH_BYTES || e.name[0] != '/' ||
                    memchr(e.name, 0, e.name_bytes))
                        return error_set(err, ST_BAD_DATA, "a path of the source bundle is none");
                if (compare_names(before.name, before.name_bytes, e.name, e.name_bytes) >= 0)
                        return error_set(err, ST_BAD_DATA, "the paths of the source bundle are not in order");
                if (e.offset != at || e.size > size - at)
                        return error_set(err, ST_BAD_DATA, "the contents of the source bundle do not follow each other");
                at += e.size;
        }
        return at == size ? ST_OK : error_set(err, ST_BAD_DATA, "the source bundle has another size than its contents");
}

enum status source_bundle_open(source_bundle_read *read, void *context, uint64_t size, struct source_bundle *ret,
                               struct error *err)
{
        struct source_bundle b = { 0 };
        uint8_t header[BUNDLE_HEADER_BYTES];
        enum status st = size < BUNDLE_HEADER_BYTES ? error_set(err, ST_BAD_DATA, "the source bundle is cut off")
                                                    : read_exactly(read, context, header, sizeof header, 0, err);

        if (!st)
                st = read_header(&b, header, err);
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

bool source_bundle_find(const struct source_bundle *b, const char *path, uint64_t *offset_ret, uint64_t *size_ret)
{
        size_t n = strlen(path);
        uint32_t low = 0, high = b->count;

        while (low < high) {
                uint32_t middle = low + (high - low) / 2;
                struct entry e;
                int c;

                if (!entry_at(b, middle, &e))
                        return false;
                c = compare_names(path, n, e.name, e.name_bytes);
                if (c == 0) {
                        *offset_ret = e.offset;
                        *size_ret = e.size;
                        return true;
                }
                if (c < 0)
                        high = middle;
                else
                        low = middle + 1;
        }
        return false;
}
