/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server_internal.h"

static bool parse_digits(const char **p, uint64_t *ret)
{
        uint64_t v = 0;

        if (**p < '0' || **p > '9')
                return false;
        while (**p >= '0' && **p <= '9')
                if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, (uint64_t)(*(*p)++ - '0'), &v))
                        return false;
        *ret = v;
        return true;
}

/* A header that is no valid byte range is ignored, one that lies outside the body is refused (RFC 9110, 14.2). */
enum range_kind range_parse(const char *header, uint64_t size, struct byte_range *ret)
{
        uint64_t first, last;
        const char *p = header;

        if (!header || strncmp(p, "bytes=", 6) != 0)
                return RANGE_NONE;
        p += 6;
        if (*p == '-') { /* the last N bytes */
                p++;
                if (!parse_digits(&p, &last) || *p)
                        return RANGE_NONE;
                if (last == 0 || size == 0)
                        return RANGE_BAD;
                *ret = (struct byte_range){ last < size ? size - last : 0, size };
                return RANGE_ONE;
        }
        if (!parse_digits(&p, &first) || *p++ != '-')
                return RANGE_NONE;
        last = UINT64_MAX;
        if (*p && (!parse_digits(&p, &last) || *p || last < first))
                return RANGE_NONE;
        if (first >= size)
                return RANGE_BAD;
        *ret = (struct byte_range){ first, last < size ? last + 1 : size };
        return RANGE_ONE;
}

/* Weak and strong tags compare alike here (RFC 9110, 13.1.2). */
bool etag_listed(const char *header, const char *etag)
{
        size_t n = strlen(etag);

        if (!header)
                return false;
        if (strcmp(header, "*") == 0)
                return true;
        for (const char *p = header; (p = strchr(p, '"'));) {
                const char *close = strchr(++p, '"');

                if (!close)
                        return false;
                if ((size_t)(close - p) == n && memcmp(p, etag, n) == 0)
                        return true;
                p = close + 1;
        }
        return false;
}
