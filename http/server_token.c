/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server_internal.h"

static int digit_of(char c)
{
        static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        const char *at = c ? strchr(digits, c) : NULL;

        return at ? (int)(at - digits) : -1;
}

/* RFC 4648, 4, up to what is none of its digits; as text, owned. */
static char *decode_base64(const char *from)
{
        char *ret = malloc(strlen(from) + 1);
        unsigned bits = 0, held = 0;
        size_t n = 0;

        for (; ret && digit_of(*from) >= 0; from++) {
                bits = bits << 6 | (unsigned)digit_of(*from);
                held += 6;
                if (held >= 8) {
                        held -= 8;
                        ret[n++] = (char)(bits >> held);
                }
        }
        if (ret)
                ret[n] = 0;
        return ret;
}

/*
 * As a bearer, or as the password of anybody: what has no place for a token but a URL (debuginfod clients, and services
 * that have this one as their upstream) says https://x:TOKEN@HOST. RFC 6750, RFC 7617.
 */
void request_find_token(struct http_request *req)
{
        const char *value = http_header(req, "Authorization");
        _cleanup_free_ char *pair = NULL;
        const char *colon;

        if (value && strncasecmp(value, "Bearer ", 7) == 0) {
                req->token = strdup(value + 7 + strspn(value + 7, " "));
        } else if (value && strncasecmp(value, "Basic ", 6) == 0) {
                pair = decode_base64(value + 6 + strspn(value + 6, " "));
                colon = pair ? strchr(pair, ':') : NULL;
                req->token = colon ? strdup(colon + 1) : NULL;
        }
}
