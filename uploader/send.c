/* SPDX-License-Identifier: Apache-2.0 */
#include "uploader/send.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>
#include <zstd.h>

#include "common/files/file.h"
#include "common/hash/sha256.h"
#include "common/json/json_value.h"
#include "common/limits.h"

#define SLICE_BYTES KiB(256)
#define COMPRESSION_LEVEL 3
#define ROUNDS_MAX 100         /* requests, each continuing where the previous one broke off */
#define RESUMABLE_BYTES MiB(4) /* a smaller file is sent again completely */

/* Reads and compresses a file for a request body. */
struct packer {
        int fd;
        uint64_t size, start, offset; /* the service has the bytes before start */
        ZSTD_CCtx *zstd;
        uint8_t *slice;
        ZSTD_inBuffer in;
        bool done;
        bool failed; /* reading failed or the file was truncated */
        uint64_t packed;
        _Atomic uint64_t *moved;
};

static ssize_t read_file_slice(int fd, void *to, size_t n, uint64_t offset)
{
        ssize_t got;

        do {
                got = pread(fd, to, n, (off_t)offset);
        } while (got < 0 && errno == EINTR);
        return got;
}

static bool packer_refill(struct packer *p)
{
        uint64_t left = p->size - p->offset;
        size_t want = left < SLICE_BYTES ? (size_t)left : SLICE_BYTES;
        ssize_t got = read_file_slice(p->fd, p->slice, want, p->offset);

        if (got <= 0)
                return false;
        p->offset += (uint64_t)got;
        p->in = (ZSTD_inBuffer){ .src = p->slice, .size = (size_t)got };
        if (p->moved)
                atomic_fetch_add(p->moved, (uint64_t)got);
        return true;
}

static ssize_t packer_read(void *context, void *to, size_t n)
{
        struct packer *p = context;
        ZSTD_outBuffer out = { .dst = to, .size = n };

        while (!p->done && out.pos == 0) {
                bool last;
                size_t left;

                if (p->in.pos == p->in.size && p->offset < p->size && !packer_refill(p)) {
                        p->failed = true;
                        return -1;
                }
                last = p->offset == p->size;
                left = ZSTD_compressStream2(p->zstd, &out, &p->in, last ? ZSTD_e_end : ZSTD_e_continue);
                if (ZSTD_isError(left)) {
                        p->failed = true;
                        return -1;
                }
                p->done = last && left == 0;
        }
        p->packed += out.pos;
        return (ssize_t)out.pos;
}

static bool packer_rewind(void *context)
{
        struct packer *p = context;

        if (p->moved)
                atomic_fetch_sub(p->moved, p->offset - p->start);
        p->offset = p->start;
        p->packed = 0;
        p->in = (ZSTD_inBuffer){ 0 };
        p->done = p->failed = false;
        return !ZSTD_isError(ZSTD_CCtx_reset(p->zstd, ZSTD_reset_session_only)) &&
               !ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(p->zstd, p->size - p->start));
}

/* Continue at an offset; the service has the bytes before it. */
static bool packer_start_at(struct packer *p, uint64_t start)
{
        if (p->moved) {
                atomic_fetch_sub(p->moved, p->offset);
                atomic_fetch_add(p->moved, start);
        }
        assert(start <= p->size);
        p->start = p->offset = start;
        return packer_rewind(p);
}

static void packer_deinit(struct packer *p)
{
        ZSTD_freeCCtx(p->zstd);
        free(p->slice);
}

static enum status packer_init(struct packer *p, int fd, uint64_t size, _Atomic uint64_t *moved, struct error *err)
{
        *p = (struct packer){
                .fd = fd, .size = size, .moved = moved, .zstd = ZSTD_createCCtx(), .slice = malloc(SLICE_BYTES)
        };
        if (p->zstd && p->slice &&
            !ZSTD_isError(ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_compressionLevel, COMPRESSION_LEVEL)) &&
            !ZSTD_isError(ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_checksumFlag, 1)) &&
            !ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(p->zstd, size)))
                return ST_OK;
        packer_deinit(p);
        return error_no_memory(err);
}

static enum status hash_upload_file(int fd, uint64_t size, const char *path, const atomic_bool *stop,
                                    uint8_t ret[static SHA256_BYTES], struct error *err)
{
        _cleanup_sha256_ struct sha256 hash = { 0 };
        _cleanup_free_ uint8_t *slice = malloc(SLICE_BYTES);
        enum status st = slice ? sha256_init(&hash, err) : error_no_memory(err);

        for (uint64_t offset = 0; !st && offset < size;) {
                uint64_t left = size - offset;
                ssize_t got = read_file_slice(fd, slice, left < SLICE_BYTES ? (size_t)left : SLICE_BYTES, offset);

                if (got < 0)
                        return error_os(err, errno, "cannot read '%s'", path);
                if (got == 0)
                        return error_set(err, ST_NOT_FOUND, "'%s' was truncated while it was read; upload it again",
                                         path);
                if (stop && atomic_load(stop))
                        return error_set(err, ST_BUSY, "stopped before '%s' was sent", path);
                sha256_update(&hash, slice, (size_t)got);
                offset += (uint64_t)got;
        }
        if (!st)
                sha256_final(&hash, ret);
        return st;
}

static enum status format_upload_path(const struct upload_item *item, const struct send_options *o, struct buf *to,
                                      struct error *err)
{
        char hex[BUILD_ID_HEX_MAX];

        buf_printf(to, "/api/v1/debuginfo/%s/%s?quality=%s&name=", build_id_hex(&item->build_id, hex),
                   upload_kind_name(item->kind), symbol_quality_name(item->quality));
        http_client_escape(to, path_base(item->path));
        if (item->htlhash.size)
                buf_printf(to, "&htlhash=%s", build_id_hex(&item->htlhash, hex));
        if (o->force)
                buf_append_str(to, "&force=1");
        if (o->tag) {
                buf_append_str(to, "&tag=");
                http_client_escape(to, o->tag);
        }
        return buf_cstr(to) ? ST_OK : buf_status(to, err, "file name");
}

/* Query the number of bytes that the service has of an earlier upload; 0 if it does not support the route. */
static enum status request_offset(struct http_client *client, const struct upload_item *item, const char *hash,
                                  uint64_t size, uint64_t *ret, struct error *err)
{
        _cleanup_http_client_response_ struct http_client_response response = { 0 };
        char path[160 + BUILD_ID_HEX_MAX], hex[BUILD_ID_HEX_MAX];
        const struct http_client_request q = { .method = "GET", .path = path };
        struct json_value answer;
        uint64_t offset;
        enum status st;

        snprintf(path, sizeof path, "/api/v1/debuginfo/%s/%s/partial?sha256=%s", build_id_hex(&item->build_id, hex),
                 upload_kind_name(item->kind), hash);
        *ret = 0;
        st = http_client_send(client, &q, &response, err);
        if (response.code == 404 || response.code == 405)
                return ST_OK;
        if (st)
                return st;
        if (json_value_parse(response.body.data, response.body.size, &answer, NULL))
                return ST_OK;
        offset = json_value_uint(&answer, "offset", 0);
        if (offset <= size)
                *ret = offset;
        return ST_OK;
}

struct put_result {
        unsigned code;
        char reason[64]; /* why the request was refused; "": it was not refused */
};

/* Send one request. @param ret set also on failure. */
static enum status send_put_request(struct http_client *client, struct upload_item *item, const char *path,
                                    const char *hash, struct packer *p, struct put_result *ret, struct error *err)
{
        _cleanup_http_client_response_ struct http_client_response response = { 0 };
        char size_header[48], hash_header[96], offset_header[48];
        const char *const headers[] = { "Content-Type: application/octet-stream",
                                        "Content-Encoding: zstd",
                                        size_header,
                                        hash_header,
                                        p->size < RESUMABLE_BYTES ? NULL : offset_header,
                                        NULL };
        struct http_client_request q = { .method = "PUT",
                                         .path = path,
                                         .headers = headers,
                                         .read = packer_read,
                                         .rewind = packer_rewind,
                                         .context = p };
        enum status st;

        snprintf(size_header, sizeof size_header, "X-Cairn-Size: %" PRIu64, p->size);
        snprintf(hash_header, sizeof hash_header, "X-Cairn-SHA256: %s", hash);
        snprintf(offset_header, sizeof offset_header, "X-Cairn-Offset: %" PRIu64, p->start);
        st = http_client_send(client, &q, &response, err);
        item->sent_bytes += p->packed;
        http_client_get_error_member(&response, "reason", ret->reason, sizeof ret->reason);
        ret->code = response.code;
        return st;
}

/*
 * Upload with resumption: after a lost connection the client repeats its request, the service responds with the number
 * of bytes received, and the next request continues there.
 */
static enum status send_resumable(struct http_client *client, struct upload_item *item, const struct send_options *o,
                                  struct packer *p, const uint8_t digest[static SHA256_BYTES], struct error *err)
{
        _cleanup_buf_ struct buf path;
        char hash[SHA256_HEX_MAX];
        struct put_result result = { 0 };
        uint64_t offset = 0;
        bool again = true;
        enum status st;

        buf_init(&path, KiB(8));
        st = format_upload_path(item, o, &path, err);
        sha256_hex(digest, hash);
        item->sent_bytes = 0;
        for (unsigned round = 0; !st && again && round < ROUNDS_MAX; round++) {
                if (p->size >= RESUMABLE_BYTES)
                        st = request_offset(client, item, hash, p->size, &offset, err);
                if (st)
                        return st;
                if (!packer_start_at(p, offset))
                        return error_no_memory(err);
                st = send_put_request(client, item, buf_cstr(&path), hash, p, &result, err);
                again = (result.code == 409 && strcmp(result.reason, "offset") == 0) ||
                        (result.code == 400 && strcmp(result.reason, "hash_mismatch") == 0 &&
                         offset > 0); /* the received part was damaged */
                if (again && round + 1 < ROUNDS_MAX)
                        st = ST_OK;
        }
        if (st && result.code == 409 && strcmp(result.reason, "not_better") == 0) {
                item->state = UPLOAD_THERE;
                return ST_OK;
        }
        if (p->failed)
                return error_set(err, ST_NOT_FOUND, "'%s' changed while it was sent; upload it again", item->path);
        if (!st)
                item->state = result.code == 200 ? UPLOAD_THERE : UPLOAD_SENT;
        return st;
}

enum status send_content(struct http_client *client, struct upload_item *item, const struct upload_content *content,
                         const struct send_options *o, struct error *err)
{
        uint8_t digest[SHA256_BYTES];
        struct packer packer;
        enum status st = hash_upload_file(content->fd, content->size_bytes, item->path, content->stop, digest, err);

        if (!st)
                st = packer_init(&packer, content->fd, content->size_bytes, content->moved, err);
        if (!st) {
                item->size_bytes = content->size_bytes;
                st = send_resumable(client, item, o, &packer, digest, err);
                packer_deinit(&packer);
        }
        return st;
}
