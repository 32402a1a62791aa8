/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing of header values: Accept-Encoding, Range, If-None-Match, Authorization. */
#include "http/http_server_internal.h"

#include <stdlib.h>

#include "common/text/base64.h"

/* ---- Accept-Encoding ---- */

/* The q parameter of one list element; 1 if absent. RFC 9110, 12.4.2. */
static double parse_quality(const char *p, const char *end)
{
        for (; p < end; p++)
                if (*p == ';') {
                        p += 1 + strspn(p + 1, " \t");
                        if ((*p | 0x20) == 'q' && p[1] == '=')
                                return strtod(p + 2, NULL);
                }
        return 1;
}

enum compression choose_compression(const char *header)
{
        double gzip = 0, zstd = 0;

        while (header && *header) {
                size_t n = strcspn(header, ",");
                const char *end = header + n, *name = header + strspn(header, " \t");
                size_t name_size = strcspn(name, " \t;,");

                if (name_size == 4 && strncasecmp(name, "gzip", 4) == 0)
                        gzip = parse_quality(name, end);
                else if (name_size == 4 && strncasecmp(name, "zstd", 4) == 0)
                        zstd = parse_quality(name, end);
                header = end + (*end == ',');
        }
        if (zstd > 0 && zstd >= gzip)
                return COMPRESSION_ZSTD;
        return gzip > 0 ? COMPRESSION_GZIP : COMPRESSION_NONE;
}

/* ---- Range, If-None-Match ---- */

static bool parse_range_number(const char **p, uint64_t *ret)
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

/* An invalid range is ignored, one outside the body is refused (RFC 9110, 14.2). */
enum range_kind parse_range(const char *header, uint64_t size, struct byte_range *ret)
{
        uint64_t first, last;
        const char *p = header;

        if (!header || strncmp(p, "bytes=", 6) != 0)
                return RANGE_NONE;
        p += 6;
        if (*p == '-') { /* the last N bytes */
                p++;
                if (!parse_range_number(&p, &last) || *p)
                        return RANGE_NONE;
                if (last == 0 || size == 0)
                        return RANGE_BAD;
                *ret = (struct byte_range){ last < size ? size - last : 0, size };
                return RANGE_ONE;
        }
        if (!parse_range_number(&p, &first) || *p++ != '-')
                return RANGE_NONE;
        last = UINT64_MAX;
        if (*p && (!parse_range_number(&p, &last) || *p || last < first))
                return RANGE_NONE;
        if (first >= size)
                return RANGE_BAD;
        *ret = (struct byte_range){ first, last < size ? last + 1 : size };
        return RANGE_ONE;
}

/* Weak comparison (RFC 9110, 13.1.2). */
bool is_etag_listed(const char *header, const char *etag)
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

/* ---- Authorization ---- */

/* The access key id of "Credential=ID/DATE/REGION/SERVICE/aws4_request", owned; NULL if malformed. */
static char *find_access_key_id(const char *value)
{
        const char *at = strstr(value, "Credential=");
        size_t n = at ? strcspn(at += strlen("Credential="), ", ") : 0;

        for (int parts = 0; parts < 4; parts++) {
                while (n && at[n - 1] != '/')
                        n--;
                if (!n--)
                        return NULL;
        }
        return n ? strndup(at, n) : NULL;
}

/*
 * Bearer token, or password of Basic authentication with any user name: clients that are configured by URL only
 * (debuginfod clients, services with this one as upstream) use https://x:TOKEN@HOST. RFC 6750, RFC 7617. S3 clients
 * send the token as their access key id; their signature, which would prove that they also know a secret, is not
 * verified.
 */
void find_request_token(struct http_request *req)
{
        const char *value = http_header(req, "Authorization");
        _cleanup_buf_ struct buf pair;
        const char *text, *colon;

        buf_init(&pair, KiB(64));
        if (value && strncasecmp(value, "Bearer ", 7) == 0) {
                req->token = strdup(value + 7 + strspn(value + 7, " "));
        } else if (value && strncasecmp(value, "Basic ", 6) == 0) {
                value += 6 + strspn(value + 6, " ");
                text = base64_decode_append(&pair, value, strcspn(value, " ")) ? buf_cstr(&pair) : NULL;
                colon = text ? strchr(text, ':') : NULL;
                req->token = colon ? strdup(colon + 1) : NULL;
        } else if (value && strncmp(value, "AWS4-HMAC-SHA256 ", 17) == 0) {
                req->token = find_access_key_id(value + 17);
        }
}
