/* SPDX-License-Identifier: Apache-2.0 */
#include "server/protocol/multipart.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#define MAX_BOUNDARY 70 /* RFC 2046, 5.1.1 */

/* "\r\n--" and the boundary. */
static bool read_boundary(const char *content_type, char delimiter[static MAX_BOUNDARY + 5])
{
        const char *b = content_type ? strcasestr(content_type, "boundary=") : NULL;
        size_t n;

        if (!b)
                return false;
        b += 9;
        n = *b == '"' ? strcspn(++b, "\"") : strcspn(b, "; \t");
        if (n == 0 || n > MAX_BOUNDARY)
                return false;
        memcpy(delimiter, "\r\n--", 4);
        memcpy(delimiter + 4, b, n);
        delimiter[4 + n] = 0;
        return true;
}

/* Whether the part's headers contain this name: Content-Disposition: form-data; name="profile"; filename=... */
static bool headers_name(const char *headers, size_t n, const char *name)
{
        size_t name_size = strlen(name);

        for (const char *p = headers, *end = headers + n; p < end;) {
                const char *eol = memmem(p, (size_t)(end - p), "\r\n", 2);
                size_t line = eol ? (size_t)(eol - p) : (size_t)(end - p);

                if (line > 20 && strncasecmp(p, "Content-Disposition:", 20) == 0) {
                        for (const char *q = p; (q = memmem(q, (size_t)(p + line - q), "name=", 5)); q++) {
                                size_t left = (size_t)(p + line - q) - 5;
                                bool quoted = left && q[5] == '"';
                                const char *v = q + 5 + quoted;

                                if ((q[-1] == ' ' || q[-1] == ';') && left - quoted >= name_size &&
                                    memcmp(v, name, name_size) == 0 &&
                                    (left - quoted == name_size || strchr("\"; ", v[name_size])))
                                        return true;
                        }
                }
                p += line + 2;
        }
        return false;
}

enum status multipart_find(const char *content_type, const uint8_t *body, size_t n, const char *name,
                           const uint8_t **ret, size_t *size_ret, struct error *err)
{
        char delimiter[MAX_BOUNDARY + 5];
        const char *p = (const char *)body, *end = p + n;
        size_t size;

        if (!read_boundary(content_type, delimiter))
                return error_set(err, ST_BAD_DATA, "the Content-Type names no boundary of at most %d characters",
                                 MAX_BOUNDARY);
        size = strlen(delimiter);
        if (n < size - 2 || memcmp(p, delimiter + 2, size - 2) != 0) { /* skip a preamble */
                p = n ? memmem(p, n, delimiter, size) : NULL;
                if (!p)
                        return error_set(err, ST_BAD_DATA, "the multipart body does not hold its boundary");
                p += 2;
        }
        p += size - 2;
        for (;;) { /* p is just after a delimiter */
                const char *head, *data, *next;

                if (end - p >= 2 && memcmp(p, "--", 2) == 0)
                        return error_set(err, ST_NOT_FOUND, "the multipart body has no part '%s'", name);
                next = p < end ? memmem(p, (size_t)(end - p), delimiter, size) : NULL;
                if (!next)
                        return error_set(err, ST_BAD_DATA, "the multipart body is cut off");
                head = p;
                data = memmem(head, (size_t)(next - head), "\r\n\r\n", 4);
                if (!data)
                        return error_set(err, ST_BAD_DATA, "a part of the multipart body has no end of headers");
                if (headers_name(head, (size_t)(data - head), name)) {
                        *ret = (const uint8_t *)data + 4;
                        *size_ret = (size_t)(next - data) - 4;
                        return ST_OK;
                }
                p = next + size;
        }
}
