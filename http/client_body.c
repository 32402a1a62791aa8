/* SPDX-License-Identifier: Apache-2.0 */
/* Small makers for requests: escaped text, gzip'd bodies, tokens. */
#include <ctype.h>
#include <string.h>
#include <zlib.h>

#include "common/file.h"
#include "common/limits.h"
#include "http/client.h"

enum status http_client_escape(struct buf *to, const char *text)
{
        for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
                if (*p < 0x80 && (isalnum(*p) || strchr("-._~", *p)))
                        buf_append_u8(to, *p);
                else
                        buf_printf(to, "%%%02X", *p);
        }
        return to->failed;
}

enum status http_client_gzip(const void *data, size_t n, struct buf *to, struct error *err)
{
        z_stream z = { .next_in = (Bytef *)data, .avail_in = (uInt)n };
        size_t bound;
        void *room;
        int rc;

        if (n > LIMIT_RESPONSE_BYTES)
                return error_set(err, ST_TOO_BIG, "%zu bytes are too many for one request", n);
        if (deflateInit2(&z, 4, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
                return error_no_memory(err);
        bound = deflateBound(&z, n);
        room = buf_reserve(to, bound);
        if (!room) {
                deflateEnd(&z);
                return buf_status(to, err, "request body");
        }
        z.next_out = room;
        z.avail_out = (uInt)bound;
        rc = deflate(&z, Z_FINISH);
        buf_commit(to, bound - z.avail_out);
        deflateEnd(&z);
        return rc == Z_STREAM_END ? ST_OK : error_no_memory(err);
}

enum status http_client_read_token(const char *path, char **ret, struct error *err)
{
        _cleanup_buf_ struct buf content;
        const char *text;
        size_t n;
        enum status st;

        buf_init(&content, KiB(4));
        st = file_read(path, &content, err);
        if (st)
                return st;
        text = buf_cstr(&content);
        if (!text)
                return error_no_memory(err);
        text += strspn(text, " \t\r\n");
        n = strcspn(text, " \t\r\n");
        if (!n)
                return error_set(err, ST_USAGE, "token file '%s' is empty", path);
        *ret = strndup(text, n);
        return *ret ? ST_OK : error_no_memory(err);
}
