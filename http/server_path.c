/* SPDX-License-Identifier: Apache-2.0 */
#include "common/text.h"
#include "http/http_server_internal.h"

/* Percent-decode n bytes; NULL if malformed, if the result contains NUL, or when out of memory. */
static char *percent_decode(const char *text, size_t n, bool plus_is_space)
{
        _cleanup_free_ char *ret = malloc(n + 1);
        char *to = ret;

        if (!ret)
                return NULL;
        for (size_t i = 0; i < n; i++) {
                char c = text[i];

                if (c == '%') {
                        int high, low;

                        if (n - i < 3)
                                return NULL;
                        high = hex_digit_value(text[i + 1]);
                        low = hex_digit_value(text[i + 2]);
                        if (high < 0 || low < 0 || (high | low) == 0)
                                return NULL;
                        c = (char)(high << 4 | low);
                        i += 2;
                } else if (c == '+' && plus_is_space) {
                        c = ' ';
                }
                *to++ = c;
        }
        *to = 0;
        return steal_ptr(ret);
}

static enum status parse_parameter(struct http_request *req, const char *text, size_t n, struct error *err)
{
        const char *equals = memchr(text, '=', n);
        size_t name_size = equals ? (size_t)(equals - text) : n;
        _cleanup_free_ char *name = NULL, *value = NULL;
        const char *known;

        if (req->query_count == LIMIT_HTTP_QUERY_PARAMETERS)
                return error_set(err, ST_BAD_DATA, "more than %d query parameters", LIMIT_HTTP_QUERY_PARAMETERS);
        name = percent_decode(text, name_size, true);
        value = equals ? percent_decode(equals + 1, n - name_size - 1, true) : strdup("");
        if (!name || !value)
                return error_set(err, ST_BAD_DATA, "query parameter '%.*s' has a malformed %% escape",
                                 (int)(n < 80 ? n : 80), text);
        known = http_query(req, name); /* none of the interfaces has parameters with several values */
        if (known && strcmp(known, value) != 0)
                return error_set(err, ST_USAGE, "query parameter '%.80s' has two different values", name);
        req->query[req->query_count++] = (struct query_parameter){ steal_ptr(name), steal_ptr(value) };
        return ST_OK;
}

enum status request_parse_uri(struct http_request *req, const char *uri, struct error *err)
{
        const char *question = strchr(uri, '?');
        size_t path_size = question ? (size_t)(question - uri) : strlen(uri);

        if (uri[0] != '/')
                return error_set(err, ST_BAD_DATA, "the path must begin with a slash");
        req->path = percent_decode(uri, path_size, false);
        if (!req->path)
                return error_set(err, ST_BAD_DATA, "the path has a malformed %% escape");
        if (!question)
                return ST_OK;
        for (const char *p = question + 1; *p;) {
                size_t n = strcspn(p, "&");
                enum status st = n ? parse_parameter(req, p, n, err) : ST_OK;

                if (st)
                        return st;
                p += n + (p[n] == '&');
        }
        return ST_OK;
}

void request_clear_parts(struct http_request *req)
{
        for (size_t i = 0; i < req->part_count; i++)
                free(req->parts[i].text);
        req->part_count = 0;
}

/* Matches the path as sent, so that an escaped slash is part of its segment. */
bool match_route(const struct http_route *route, struct http_request *req)
{
        const char *want = route->path, *have = req->uri;
        const char *end = have + strcspn(have, "?");

        request_clear_parts(req);
        while (*want && have <= end) {
                const char *close;
                size_t name_size, n;
                bool rest;

                if (*want != '{') {
                        if (have == end || *want++ != *have++)
                                return false;
                        continue;
                }
                close = strchr(want, '}');
                name_size = (size_t)(close - want) - 1;
                rest = name_size > 3 && memcmp(close - 3, "...", 3) == 0;
                n = rest ? (size_t)(end - have) : strcspn(have, "/?");
                if (n == 0 || req->part_count == MAX_PATH_PARTS)
                        return false;
                req->parts[req->part_count].name = want + 1;
                req->parts[req->part_count].name_size = rest ? name_size - 3 : name_size;
                req->parts[req->part_count].text = percent_decode(have, n, false);
                if (!req->parts[req->part_count].text)
                        return false;
                req->part_count++;
                have += n;
                want = close + 1;
        }
        return !*want && have == end;
}

bool http_form_field(const struct http_request *req, const char *name, char *to, size_t size)
{
        const char *p = (const char *)req->body.data, *end = p ? p + req->body.size : p;
        size_t name_size = strlen(name);

        if (!p || memchr(p, 0, req->body.size))
                return false;
        while (p < end) {
                const char *next = memchr(p, '&', (size_t)(end - p));
                size_t n = (size_t)((next ? next : end) - p);

                if (n > name_size && memcmp(p, name, name_size) == 0 && p[name_size] == '=') {
                        _cleanup_free_ char *value = percent_decode(p + name_size + 1, n - name_size - 1, true);

                        if (!value || strlen(value) >= size)
                                return false;
                        memcpy(to, value, strlen(value) + 1);
                        explicit_bzero(value, strlen(value));
                        return true;
                }
                p = next ? next + 1 : end;
        }
        return false;
}
