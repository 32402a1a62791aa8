/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo-store/fetch_url.h"

#include <curl/curl.h>
#include <string.h>
#include <strings.h>

/* A part of a URL; NULL when there is none. Owned by libcurl. */
static char *url_part(CURLU *u, CURLUPart what)
{
        char *part = NULL;

        return curl_url_get(u, what, &part, CURLU_DEFAULT_PORT) ? NULL : part;
}

static bool same_part(CURLU *a, CURLU *b, CURLUPart what)
{
        char *x = url_part(a, what), *y = url_part(b, what);
        bool same = x && y && strcasecmp(x, y) == 0;

        curl_free(x);
        curl_free(y);
        return same;
}

bool fetch_url_same_origin(const char *from, const char *to)
{
        CURLU *a = curl_url(), *b = curl_url();
        bool same = a && b && !curl_url_set(a, CURLUPART_URL, from, 0) && !curl_url_set(b, CURLUPART_URL, to, 0) &&
                    same_part(a, b, CURLUPART_SCHEME) && same_part(a, b, CURLUPART_HOST) && same_part(a, b, CURLUPART_PORT);

        curl_url_cleanup(a);
        curl_url_cleanup(b);
        return same;
}

bool fetch_url_may_follow(const char *from, const char *to)
{
        CURLU *a = curl_url(), *b = curl_url();
        char *scheme = NULL;
        bool may = a && b && !curl_url_set(a, CURLUPART_URL, from, 0) && !curl_url_set(b, CURLUPART_URL, to, 0) &&
                   same_part(a, b, CURLUPART_HOST);

        if (may) {
                scheme = url_part(b, CURLUPART_SCHEME);
                may = scheme && (strcasecmp(scheme, "https") == 0 ||
                                 (same_part(a, b, CURLUPART_SCHEME) && same_part(a, b, CURLUPART_PORT)));
        }
        curl_free(scheme);
        curl_url_cleanup(a);
        curl_url_cleanup(b);
        return may;
}

bool fetch_url_is_loopback(const char *url)
{
        CURLU *u = curl_url();
        char *host = u && !curl_url_set(u, CURLUPART_URL, url, 0) ? url_part(u, CURLUPART_HOST) : NULL;
        bool is = host && (strncmp(host, "127.", 4) == 0 || strcmp(host, "[::1]") == 0 || strcasecmp(host, "localhost") == 0);

        curl_free(host);
        curl_url_cleanup(u);
        return is;
}
