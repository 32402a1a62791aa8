/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reader reads the seek table once, and then decompresses the frames that a range touches: into a buffer of its own
 * that keeps the last frame, or into the shared frame cache. Packed bytes come from a file, or from a map whose ranges
 * are required first (read_packed()).
 *
 * Order: compression, the reader's seek table, frames, ranges.
 */
#include "debuginfo-store/seekable.h"

#include <assert.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <zstd.h>

#include "common/compress/zstd_contexts.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "common/memory/buf.h"
#include "common/reader.h"
#include "common/search.h"
#include "debuginfo-store/frame_cache.h"

#define SKIPPABLE_MAGIC 0x184D2A5Eu
#define SEEKABLE_MAGIC 0x8F92EAB1u
#define FOOTER_BYTES 9
#define LEVEL 3
#define CHECKSUM_BYTES 4 /* after the blocks of a frame, RFC 8878, 3.1.1 */
#define READ_AHEAD_BYTES MiB(4)
#define RELOADED_BYTES KiB(64) /* as many as are fetched with the size of an object */
#define MAX_FRAMES (LIMIT_OBJECT_BYTES / SEEKABLE_FRAME_BYTES + 1)

static void cleanup_cctx(ZSTD_CCtx **c)
{
        ZSTD_freeCCtx(*c);
}

static ssize_t pread_full(int fd, void *to, size_t n, uint64_t offset)
{
        size_t done = 0;

        while (done < n) {
                ssize_t got = pread(fd, (char *)to + done, n - done, (off_t)(offset + done));

                if (got < 0 && errno == EINTR)
                        continue;
                if (got < 0)
                        return -1;
                if (got == 0)
                        break;
                done += (size_t)got;
        }
        return (ssize_t)done;
}

enum status seekable_compress(int in_fd, uint64_t size, int out_fd, const char *name, uint64_t *stored_ret,
                              struct error *err)
{
        _cleanup_(cleanup_cctx) ZSTD_CCtx *ctx = ZSTD_createCCtx();
        size_t bound = ZSTD_compressBound(SEEKABLE_FRAME_BYTES) + CHECKSUM_BYTES;
        _cleanup_free_ void *in = malloc(SEEKABLE_FRAME_BYTES);
        _cleanup_free_ void *out = malloc(bound);
        _cleanup_buf_ struct buf table;
        uint32_t frames = 0;
        uint64_t stored = 0;
        enum status st;

        buf_init(&table, 8 * MAX_FRAMES + 64);
        if (!ctx || !in || !out || ZSTD_isError(ZSTD_CCtx_setParameter(ctx, ZSTD_c_compressionLevel, LEVEL)) ||
            ZSTD_isError(ZSTD_CCtx_setParameter(ctx, ZSTD_c_checksumFlag, 1)))
                return error_no_memory(err);
        for (uint64_t at = 0; at < size; at += SEEKABLE_FRAME_BYTES) {
                size_t want = size - at < SEEKABLE_FRAME_BYTES ? size - at : SEEKABLE_FRAME_BYTES;
                ssize_t got = pread_full(in_fd, in, want, at);
                size_t packed;

                if (got < 0)
                        return error_os(err, errno, "cannot read back '%s'", name);
                if ((size_t)got != want)
                        return error_set(err, ST_BAD_DATA, "'%s' was truncated while it was stored", name);
                packed = ZSTD_compress2(ctx, out, bound, in, want);
                if (ZSTD_isError(packed))
                        return error_set(err, ST_OS, "cannot compress '%s': %s", name, ZSTD_getErrorName(packed));
                st = file_write_all(out_fd, out, packed, name, err);
                if (st)
                        return st;
                buf_append_u32(&table, (uint32_t)packed);
                buf_append_u32(&table, (uint32_t)want);
                stored += packed;
                frames++;
        }
        if (buf_status(&table, err, name))
                return table.failed;
        {
                _cleanup_buf_ struct buf head;

                buf_init(&head, 16);
                buf_append_u32(&head, SKIPPABLE_MAGIC);
                buf_append_u32(&head, (uint32_t)(table.size + FOOTER_BYTES));
                st = file_write_all(out_fd, head.data, head.size, name, err);
                if (st)
                        return st;
        }
        buf_append_u32(&table, frames);
        buf_append_u8(&table, 0);
        buf_append_u32(&table, SEEKABLE_MAGIC);
        st = buf_status(&table, err, name);
        if (!st)
                st = file_write_all(out_fd, table.data, table.size, name, err);
        if (st)
                return st;
        *stored_ret = stored + 8 + table.size;
        return ST_OK;
}

struct seekable_reader {
        int fd; /* -1: the map is read */
        struct storage_map map;
        uint64_t read_to; /* of the map: end of the last read, to read ahead of sequential ones */
        char *name;
        uint32_t frame_count;
        uint64_t *packed_at;   /* frame_count + 1 entries */
        uint64_t *unpacked_at; /* frame_count + 1 entries */
        ZSTD_DCtx *ctx;        /* created for the first frame */
        uint8_t *unpacked;
        uint32_t cached;            /* index of the decompressed frame; UINT32_MAX: none */
        struct frame_cache *frames; /* NULL: no shared cache */
        const uint8_t *sha256;
};

void seekable_close(struct seekable_reader *r)
{
        if (!r)
                return;
        if (r->fd >= 0)
                close(r->fd);
        storage_unmap(&r->map);
        free(r->name);
        free(r->packed_at);
        free(r->unpacked_at);
        free(r->unpacked);
        give_zstd_context(r->ctx);
        free(r);
}

static void cleanup_seekable_reader(struct seekable_reader **r)
{
        seekable_close(*r);
}

/* A sequential reader of a remote object gets READ_AHEAD_BYTES with one request. */
static enum status read_map(struct seekable_reader *r, void *to, size_t n, uint64_t offset, struct error *err)
{
        struct file_range range = { offset, n };
        enum status st;

        if (n > r->map.file.size || offset > r->map.file.size - n)
                return error_set(err, ST_BAD_DATA, "'%s' is truncated", r->name);
        if (offset == r->read_to && n < READ_AHEAD_BYTES)
                range.size =
                        READ_AHEAD_BYTES < r->map.file.size - offset ? READ_AHEAD_BYTES : r->map.file.size - offset;
        st = storage_require(&r->map, &range, 1, err);
        if (st)
                return st;
        memcpy(to, (const char *)r->map.file.data + offset, n);
        r->read_to = offset + n;
        return ST_OK;
}

static enum status read_packed(struct seekable_reader *r, void *to, size_t n, uint64_t offset, struct error *err)
{
        if (r->fd < 0)
                return read_map(r, to, n, offset, err);
        return pread_full(r->fd, to, n, offset) == (ssize_t)n ? ST_OK
                                                              : error_os(err, errno, "cannot read '%s'", r->name);
}

/* Invariant: compressed frames are contiguous from offset 0 to the start of the table. */
static enum status read_seek_table(struct seekable_reader *r, uint64_t file_size, struct error *err)
{
        uint8_t footer[FOOTER_BYTES];
        _cleanup_free_ uint8_t *table = NULL;
        struct reader in;
        uint32_t frames, magic, skip_magic, skip_size;
        uint8_t descriptor;
        uint64_t table_bytes, table_at;
        enum status st;

        if (file_size < FOOTER_BYTES + 8)
                return error_set(err, ST_BAD_DATA, "'%s' is too short for a seek table", r->name);
        st = read_packed(r, footer, sizeof footer, file_size - FOOTER_BYTES, err);
        if (st)
                return st;
        reader_init(&in, footer, sizeof footer);
        if (!reader_u32(&in, &frames) || !reader_u8(&in, &descriptor) || !reader_u32(&in, &magic) ||
            magic != SEEKABLE_MAGIC || descriptor != 0)
                return error_set(err, ST_BAD_DATA, "'%s' has no seek table", r->name);
        if (frames > MAX_FRAMES)
                return error_set(err, ST_TOO_BIG, "'%s' has %u frames, more than %zu", r->name, frames,
                                 (size_t)MAX_FRAMES);
        table_bytes = 8 + 8 * (uint64_t)frames;
        if (table_bytes + FOOTER_BYTES > file_size)
                return error_set(err, ST_BAD_DATA, "'%s' is shorter than its seek table", r->name);
        table_at = file_size - FOOTER_BYTES - table_bytes;
        table = malloc(table_bytes);
        r->packed_at = calloc((size_t)frames + 1, sizeof *r->packed_at);
        r->unpacked_at = calloc((size_t)frames + 1, sizeof *r->unpacked_at);
        if (!table || !r->packed_at || !r->unpacked_at)
                return error_no_memory(err);
        st = read_packed(r, table, table_bytes, table_at, err);
        if (st)
                return st;
        reader_init(&in, table, table_bytes);
        if (!reader_u32(&in, &skip_magic) || !reader_u32(&in, &skip_size) || skip_magic != SKIPPABLE_MAGIC ||
            skip_size != table_bytes - 8 + FOOTER_BYTES)
                return error_set(err, ST_BAD_DATA, "'%s' has a damaged seek table", r->name);
        for (uint32_t i = 0; i < frames; i++) {
                uint32_t packed, unpacked;

                if (!reader_u32(&in, &packed) || !reader_u32(&in, &unpacked))
                        return reader_error(&in, err, "seek table");
                if (packed == 0 || packed > ZSTD_compressBound(SEEKABLE_FRAME_BYTES) + CHECKSUM_BYTES ||
                    unpacked == 0 || unpacked > SEEKABLE_FRAME_BYTES)
                        return error_set(err, ST_BAD_DATA, "'%s' has a damaged seek table entry %u", r->name, i);
                r->packed_at[i + 1] = r->packed_at[i] + packed;
                r->unpacked_at[i + 1] = r->unpacked_at[i] + unpacked;
        }
        if (r->unpacked_at[frames] > LIMIT_OBJECT_BYTES)
                return error_set(err, ST_TOO_BIG, "'%s' unpacks to more than %zu bytes", r->name, LIMIT_OBJECT_BYTES);
        if (r->packed_at[frames] != table_at)
                return error_set(err, ST_BAD_DATA, "'%s' has frames up to 0x%llx, but its seek table is at 0x%llx",
                                 r->name, (unsigned long long)r->packed_at[frames], (unsigned long long)table_at);
        r->frame_count = frames;
        return ST_OK;
}

enum status seekable_open(int fd, const char *name, struct seekable_reader **ret, struct error *err)
{
        _cleanup_(cleanup_seekable_reader) struct seekable_reader *r = calloc(1, sizeof *r);
        struct stat file;
        enum status st;

        if (!r) {
                close(fd);
                return error_no_memory(err);
        }
        r->fd = fd;
        r->cached = UINT32_MAX;
        r->name = strdup(name);
        if (!r->name)
                return error_no_memory(err);
        if (fstat(fd, &file) < 0)
                return error_os(err, errno, "cannot stat '%s'", name);
        st = read_seek_table(r, (uint64_t)file.st_size, err);
        if (st)
                return st;
        *ret = steal_ptr(r);
        return ST_OK;
}

/* What was fetched of a remote object may have been damaged. A larger table is loaded anew in part. */
static enum status reload_seek_table(struct seekable_reader *r, enum status failed, struct error *err)
{
        const uint64_t size = r->map.file.size, end = size < RELOADED_BYTES ? size : RELOADED_BYTES;
        enum status st = storage_reload(&r->map, &(struct file_range){ size - end, end }, 1, err);

        if (st)
                return st == ST_UNSUPPORTED ? failed : st;
        free(steal_ptr(r->packed_at));
        free(steal_ptr(r->unpacked_at));
        return read_seek_table(r, size, err);
}

enum status seekable_open_map(struct storage_map *map, const char *name, struct seekable_reader **ret,
                              struct error *err)
{
        _cleanup_(cleanup_seekable_reader) struct seekable_reader *r = calloc(1, sizeof *r);
        enum status st;

        if (!r) {
                storage_unmap(map);
                return error_no_memory(err);
        }
        r->fd = -1;
        r->map = *map;
        *map = (struct storage_map){ 0 };
        r->read_to = UINT64_MAX;
        r->cached = UINT32_MAX;
        r->name = strdup(name);
        st = r->name ? read_seek_table(r, r->map.file.size, err) : error_no_memory(err);
        if (st && st != ST_NO_MEMORY && st != ST_OS)
                st = reload_seek_table(r, st, err);
        if (st)
                return st;
        r->read_to = 0;
        *ret = steal_ptr(r);
        return ST_OK;
}

uint64_t seekable_get_size(const struct seekable_reader *r)
{
        return r->unpacked_at[r->frame_count];
}

static uint32_t find_frame_index(const struct seekable_reader *r, uint64_t offset)
{
        size_t next = find_lower_bound(i, 1, r->frame_count, r->unpacked_at[i] <= offset);

        assert(offset < seekable_get_size(r)); /* and unpacked_at[0] is 0 */
        return (uint32_t)next - 1;
}

static enum status try_to_decompress(struct seekable_reader *r, uint32_t frame, void *to, struct error *err)
{
        size_t packed_size = r->packed_at[frame + 1] - r->packed_at[frame];
        size_t unpacked_size = r->unpacked_at[frame + 1] - r->unpacked_at[frame];
        _cleanup_free_ void *packed = malloc(packed_size);
        enum status st;
        size_t got;

        r->ctx = r->ctx ? r->ctx : take_zstd_context();
        if (!r->ctx || !packed)
                return error_no_memory(err);
        st = read_packed(r, packed, packed_size, r->packed_at[frame], err);
        if (st)
                return error_prefix(err, st, "frame %u", frame);
        got = ZSTD_decompressDCtx(r->ctx, to, unpacked_size, packed, packed_size);
        if (ZSTD_isError(got) || got != unpacked_size)
                return error_set(err, ST_BAD_DATA, "frame %u of '%s' is damaged: %s", frame, r->name,
                                 ZSTD_isError(got) ? ZSTD_getErrorName(got) : "wrong size");
        return ST_OK;
}

static enum status decompress_frame(struct seekable_reader *r, uint32_t frame, void *to, struct error *err)
{
        const struct file_range packed = { r->packed_at[frame], r->packed_at[frame + 1] - r->packed_at[frame] };
        enum status st = try_to_decompress(r, frame, to, err);

        if (st != ST_BAD_DATA || r->fd >= 0)
                return st;
        st = storage_reload(&r->map, &packed, 1, err);
        return st == ST_UNSUPPORTED ? ST_BAD_DATA : st ? st : try_to_decompress(r, frame, to, err);
}

/* Copy bytes [offset, offset + n), which lie in the frame. */
static enum status copy_from_own_frame(struct seekable_reader *r, uint32_t frame, void *to, size_t n, uint64_t offset,
                                       struct error *err)
{
        enum status st = ST_OK;

        r->unpacked = r->unpacked ? r->unpacked : malloc(SEEKABLE_FRAME_BYTES);
        if (!r->unpacked)
                return error_no_memory(err);
        if (r->cached != frame) {
                r->cached = UINT32_MAX;
                st = decompress_frame(r, frame, r->unpacked, err);
        }
        if (st)
                return st;
        r->cached = frame;
        assert(offset >= r->unpacked_at[frame] && n <= r->unpacked_at[frame + 1] - offset);
        memcpy(to, r->unpacked + (offset - r->unpacked_at[frame]), n);
        return ST_OK;
}

static enum status copy_from_cached_frame(struct seekable_reader *r, uint32_t frame, void *to, size_t n,
                                          uint64_t offset, struct error *err)
{
        uint64_t at = r->unpacked_at[frame];
        size_t size = r->unpacked_at[frame + 1] - at;
        _cleanup_free_ uint8_t *bytes = NULL;
        enum status st;

        if (frame_cache_read(r->frames, r->sha256, to, n, offset) == n)
                return ST_OK;
        bytes = malloc(size);
        st = bytes ? decompress_frame(r, frame, bytes, err) : error_no_memory(err);
        if (st)
                return st;
        memcpy(to, bytes + (offset - at), n);
        frame_cache_insert(r->frames, r->sha256, at, steal_ptr(bytes), size);
        return ST_OK;
}

void seekable_use_cache(struct seekable_reader *r, struct frame_cache *frames, const uint8_t sha256[static 32])
{
        r->frames = frames;
        r->sha256 = sha256;
}

ssize_t seekable_pread(struct seekable_reader *r, void *to, size_t n, uint64_t offset, struct error *err)
{
        size_t done = 0;

        if (n > SSIZE_MAX)
                n = SSIZE_MAX;
        while (done < n && offset < seekable_get_size(r)) {
                uint32_t frame = find_frame_index(r, offset);
                size_t have = r->unpacked_at[frame + 1] - offset;
                size_t take = have < n - done ? have : n - done;
                char *here = (char *)to + done;

                if (r->frames ? copy_from_cached_frame(r, frame, here, take, offset, err)
                              : copy_from_own_frame(r, frame, here, take, offset, err))
                        return -1;
                done += take;
                offset += take;
        }
        return (ssize_t)done;
}
