/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server_internal.h"

#include "common/compress.h"

/* A bomb costs what an honest body may cost: unpacking stops at the route's limit. */
enum status request_unpack_body(struct http_request *req, struct error *err)
{
        const char *encoding = http_header(req, "Content-Encoding");
        _cleanup_buf_ struct buf out;
        enum status st;

        buf_init_budget(&out, req->route->max_body, request_memory_use(req));
        if (!encoding || strcasecmp(encoding, "identity") == 0 || req->body.size == 0)
                return ST_OK;
        if (strcasecmp(encoding, "gzip") == 0 || strcasecmp(encoding, "deflate") == 0)
                st = gzip_unpack(req->body.data, req->body.size, &out, err);
        else if (strcasecmp(encoding, "zstd") == 0)
                st = zstd_unpack(req->body.data, req->body.size, &out, err);
        else
                st = error_set(err, ST_UNSUPPORTED, "Content-Encoding '%.40s' is not known; use gzip, zstd or none", encoding);
        if (out.failed == ST_BUSY)
                return buf_status(&out, err, "a request body");
        if (st == ST_TOO_BIG)
                error_set(err, st, "the body is larger than %zu bytes after unpacking", req->route->max_body);
        if (st)
                return error_prefix(err, st, "cannot unpack the body");
        http_add_unpacked(req, out.size);
        buf_deinit(&req->body);
        req->body = out;
        buf_init(&out, 0);
        return ST_OK;
}
