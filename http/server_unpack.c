/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server_internal.h"

#include <zlib.h>
#include <zstd.h>

/*
 * Unpacking stops at the route's limit plus one byte and at the server's
 * budget, so a bomb costs what an honest body may cost.
 */
#define STEP_BYTES KiB(64)

/* Room for the next step in out; NULL with st_ret when there is none. */
static void *next_room(struct http_request *req, struct buf *out, size_t *room_ret, enum status *st_ret, struct error *err)
{
        size_t room = out->max - out->size < STEP_BYTES ? out->max - out->size : STEP_BYTES;
        void *to;

        if (room == 0) {
                *st_ret = error_set(err, ST_TOO_BIG, "the body is larger than %zu bytes after unpacking", req->route->max_body);
                return NULL;
        }
        *st_ret = request_budget(req, room, err);
        if (*st_ret)
                return NULL;
        to = buf_reserve(out, room);
        if (!to)
                *st_ret = buf_status(out, err, "request body");
        *room_ret = room;
        return to;
}

static enum status gunzip(struct http_request *req, struct buf *out, struct error *err)
{
        z_stream z = { .next_in = req->body.data, .avail_in = (uInt)req->body.size };
        enum status st = ST_OK;
        int done = Z_OK;

        if (inflateInit2(&z, 15 + 32) != Z_OK) /* gzip or zlib, by its header */
                return error_no_memory(err);
        while (!st && done != Z_STREAM_END) {
                size_t room;
                void *to = next_room(req, out, &room, &st, err);

                if (!to)
                        break;
                z.next_out = to;
                z.avail_out = (uInt)room;
                done = inflate(&z, Z_NO_FLUSH);
                buf_commit(out, room - z.avail_out);
                if (done == Z_STREAM_END && z.avail_in && inflateReset(&z) == Z_OK)
                        done = Z_OK; /* another gzip member follows (RFC 1952, 2.2) */
                else if (done == Z_BUF_ERROR || (done == Z_OK && z.avail_in == 0 && z.avail_out))
                        st = error_at(err, ST_BAD_DATA, z.total_in, "the gzip body is cut off");
                else if (done != Z_OK && done != Z_STREAM_END)
                        st = error_at(err, ST_BAD_DATA, z.total_in, "the gzip body is damaged: %s", z.msg ? z.msg : "no detail");
        }
        inflateEnd(&z);
        return st;
}

static enum status unzstd(struct http_request *req, struct buf *out, struct error *err)
{
        ZSTD_DStream *z = ZSTD_createDStream();
        ZSTD_inBuffer in = { .src = req->body.data, .size = req->body.size };
        enum status st = ST_OK;
        size_t left = 1;

        if (!z)
                return error_no_memory(err);
        ZSTD_DCtx_setParameter(z, ZSTD_d_windowLogMax, 27);
        while (!st && (in.pos < in.size || left)) {
                size_t room;
                void *to = next_room(req, out, &room, &st, err);
                ZSTD_outBuffer o = { .dst = to, .size = room };

                if (!to)
                        break;
                left = ZSTD_decompressStream(z, &o, &in);
                buf_commit(out, o.pos);
                if (ZSTD_isError(left))
                        st = error_at(err, ST_BAD_DATA, in.pos, "the zstd body is damaged: %s", ZSTD_getErrorName(left));
                else if (left && in.pos == in.size && o.pos < o.size)
                        st = error_at(err, ST_BAD_DATA, in.pos, "the zstd body is cut off");
        }
        ZSTD_freeDStream(z);
        return st;
}

enum status request_unpack_body(struct http_request *req, struct error *err)
{
        const char *encoding = http_header(req, "Content-Encoding");
        _cleanup_buf_ struct buf out;
        enum status st;

        buf_init(&out, req->route->max_body + 1);
        if (!encoding || strcasecmp(encoding, "identity") == 0 || req->body.size == 0)
                return ST_OK;
        if (strcasecmp(encoding, "gzip") == 0 || strcasecmp(encoding, "deflate") == 0)
                st = gunzip(req, &out, err);
        else if (strcasecmp(encoding, "zstd") == 0)
                st = unzstd(req, &out, err);
        else
                st = error_set(err, ST_UNSUPPORTED, "Content-Encoding '%.40s' is not known; use gzip, zstd or none", encoding);
        if (!st && out.size > req->route->max_body)
                st = error_set(err, ST_TOO_BIG, "the body is larger than %zu bytes after unpacking", req->route->max_body);
        if (st)
                return st;
        buf_deinit(&req->body);
        req->body = out;
        buf_init(&out, 0);
        return ST_OK;
}
