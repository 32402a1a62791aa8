/* SPDX-License-Identifier: Apache-2.0 */
/* Small makers for requests: escaped text, tokens. */
#include <ctype.h>
#include <string.h>

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
