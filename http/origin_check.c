/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of the headers Host and Origin, which protect a service from web pages in a browser that can reach it.
 *
 * Host: a page whose host name resolves to 127.0.0.1 (DNS rebinding) has, for the browser, the same origin as a service
 * without tokens there. Its requests carry the attacker's host name in Host. An address cannot be rebound, and browsers
 * resolve localhost themselves.
 *
 * Origin: a browser sends forms, images and "simple" requests from any page to any service, with a remembered Basic
 * password if there is one. It marks them with Sec-Fetch-Site (Fetch Metadata), or with Origin where it does not
 * support that.
 */
#include "http/http_server_internal.h"

#include <arpa/inet.h>
#include <ctype.h>

#define HOST_MAX 256

/* ---- Host ---- */

/*
 * Parse the name or address of a Host header, in lower case, without brackets, port and trailing dot. False if
 * malformed.
 */
static bool parse_host(const char *header, char ret[static HOST_MAX])
{
        const char *end;
        size_t n;

        if (*header == '[') {
                end = strchr(++header, ']');
                if (!end || (end[1] && end[1] != ':'))
                        return false;
        } else {
                end = header + strcspn(header, ":");
        }
        n = (size_t)(end - header);
        if (n && header[n - 1] == '.')
                n--;
        if (n == 0 || n >= HOST_MAX)
                return false;
        for (size_t i = 0; i < n; i++)
                ret[i] = (char)tolower((unsigned char)header[i]);
        ret[n] = 0;
        return true;
}

static bool is_address(const char *host)
{
        struct in6_addr address;

        return inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1;
}

static bool is_localhost(const char *host)
{
        static const char name[] = "localhost";
        size_t n = strlen(host), k = sizeof name - 1;

        return n >= k && strcmp(host + n - k, name) == 0 && (n == k || host[n - k - 1] == '.');
}

static bool is_host_allowed(const struct http_options *o, const char *host)
{
        if (is_address(host) || is_localhost(host))
                return true;
        for (size_t i = 0; i < o->allowed_host_count; i++)
                if (strcasecmp(o->allowed_hosts[i], host) == 0)
                        return true;
        return false;
}

void request_check_host(struct http_request *req)
{
        const struct http_options *o = &req->server->options;
        const char *header = http_header(req, "Host");
        char host[HOST_MAX];

        if (!o->check_host || !header) /* a request without Host is HTTP/1.0, which browsers do not send */
                return;
        if (!parse_host(header, host))
                http_fail_code(req, 400, "bad_data", "the Host header '%.80s' is malformed", header);
        else if (!is_host_allowed(o, host))
                http_fail_code(req, 421, "host",
                               "unknown host name '%.80s', refused so that web pages cannot reach this service by DNS "
                               "rebinding; use its address or localhost, or start it with "
                               "--allow-host %.80s",
                               host, host);
}

/* ---- Origin ---- */

/* Whether an Origin header equals the Host header. The scheme's default port may be omitted in both. */
static bool is_own_origin(const char *origin, const char *host)
{
        bool https = strncasecmp(origin, "https://", 8) == 0;
        const char *usual = https ? ":443" : ":80";
        size_t n, k, u = strlen(usual);

        if (!https && strncasecmp(origin, "http://", 7) != 0)
                return false;
        origin += https ? 8 : 7;
        n = strlen(origin);
        k = strlen(host);
        if (n > u && strcmp(origin + n - u, usual) == 0)
                n -= u;
        if (k > u && strcmp(host + k - u, usual) == 0)
                k -= u;
        return n > 0 && n == k && strncasecmp(origin, host, n) == 0;
}

bool http_is_cross_origin(const struct http_request *req)
{
        const char *site = http_header(req, "Sec-Fetch-Site"), *origin = http_header(req, "Origin");
        const char *host = http_header(req, "Host");

        if (site)
                return strcasecmp(site, "same-origin") != 0 && strcasecmp(site, "none") != 0;
        return origin && !(host && is_own_origin(origin, host));
}

bool http_is_same_origin(const struct http_request *req)
{
        const char *site = http_header(req, "Sec-Fetch-Site"), *origin = http_header(req, "Origin");
        const char *host = http_header(req, "Host");

        if (site)
                return strcasecmp(site, "same-origin") == 0;
        return origin && host && is_own_origin(origin, host);
}

/* A followed link, not an image, frame or script. */
static bool is_navigation(const struct http_request *req)
{
        const char *mode = http_header(req, "Sec-Fetch-Mode"), *dest = http_header(req, "Sec-Fetch-Dest");

        return (strcmp(req->method, "GET") == 0 || strcmp(req->method, "HEAD") == 0) && mode &&
               strcasecmp(mode, "navigate") == 0 && (!dest || strcasecmp(dest, "document") == 0);
}

bool http_is_origin_allowed(const struct http_request *req)
{
        const struct http_options *o = &req->server->options;
        const char *origin = http_header(req, "Origin");

        for (size_t i = 0; origin && i < o->allowed_origin_count; i++)
                if (strcmp(o->allowed_origins[i], "*") == 0 || strcmp(o->allowed_origins[i], origin) == 0)
                        return true;
        return false;
}

void request_check_origin(struct http_request *req)
{
        const char *origin = http_header(req, "Origin");

        if (!http_is_cross_origin(req) || is_navigation(req))
                return;
        if (req->route->cross_origin && (http_is_origin_allowed(req) || strcmp(req->method, "OPTIONS") == 0))
                return;
        http_fail_code(req, 403, "cross_origin",
                       "a web page of another origin (%.80s) may not do that; open the service's own "
                       "page, or use a program%s",
                       origin ? origin : "not named",
                       req->route->cross_origin ? "; --cors-origin lets pages of an origin in" : "");
}
