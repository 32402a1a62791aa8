/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker that fetches one file from one upstream.
 *
 *  1. Only the body of a 200 response is written to the file, and never more than the limit.
 *  2. Redirects are followed only to the same host, and never from https to http.
 *  3. Only 404 and 410 mean "not found".
 *
 * Source: elfutils, debuginfod(8); RFC 9110, 15.4 and 10.2.3.
 */
#include <arpa/inet.h>
#include <curl/curl.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "common/text/number_text.h"
#include "debuginfo-store/federation/fetch_internal.h"

/* ---- URLs ---- */

/* A part of a URL; NULL: absent. Free with curl_free(). */
static char *get_url_part(CURLU *u, CURLUPart what)
{
        char *part = NULL;

        return curl_url_get(u, what, &part, CURLU_DEFAULT_PORT) ? NULL : part;
}

static bool is_same_part(CURLU *a, CURLU *b, CURLUPart what)
{
        char *x = get_url_part(a, what), *y = get_url_part(b, what);
        bool same = x && y && strcasecmp(x, y) == 0;

        curl_free(x);
        curl_free(y);
        return same;
}

static bool has_same_origin(const char *from, const char *to)
{
        CURLU *a = curl_url(), *b = curl_url();
        bool same = a && b && !curl_url_set(a, CURLUPART_URL, from, 0) && !curl_url_set(b, CURLUPART_URL, to, 0) &&
                    is_same_part(a, b, CURLUPART_SCHEME) && is_same_part(a, b, CURLUPART_HOST) &&
                    is_same_part(a, b, CURLUPART_PORT);

        curl_url_cleanup(a);
        curl_url_cleanup(b);
        return same;
}

static bool may_follow_redirect(const char *from, const char *to)
{
        CURLU *a = curl_url(), *b = curl_url();
        char *scheme = NULL;
        bool may = a && b && !curl_url_set(a, CURLUPART_URL, from, 0) && !curl_url_set(b, CURLUPART_URL, to, 0) &&
                   is_same_part(a, b, CURLUPART_HOST);

        if (may) {
                scheme = get_url_part(b, CURLUPART_SCHEME);
                may = scheme && (strcasecmp(scheme, "https") == 0 ||
                                 (is_same_part(a, b, CURLUPART_SCHEME) && is_same_part(a, b, CURLUPART_PORT)));
        }
        curl_free(scheme);
        curl_url_cleanup(a);
        curl_url_cleanup(b);
        return may;
}

/* Whether the host is a loopback address, for which no proxy is used. A name such as 127.evil.example is not. */
static bool is_loopback_upstream(const char *url)
{
        CURLU *u = curl_url();
        char *host = u && !curl_url_set(u, CURLUPART_URL, url, 0) ? get_url_part(u, CURLUPART_HOST) : NULL;
        size_t n = host ? strlen(host) : 0;
        struct in6_addr v6;
        struct in_addr v4;
        bool ret = false;

        if (n > 2 && host[0] == '[') {
                host[n - 1] = 0;
                ret = inet_pton(AF_INET6, host + 1, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
        } else if (n && inet_pton(AF_INET, host, &v4) == 1) {
                ret = ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
        } else if (n) {
                ret = strcasecmp(host, "localhost") == 0;
        }
        curl_free(host);
        curl_url_cleanup(u);
        return ret;
}

/* ---- the transfer ---- */

#define REDIRECTS_MAX 5
#define TELL_BYTES KiB(64)     /* received between two messages */
#define ERROR_BODY_MAX KiB(64) /* of a response other than 200, which is discarded */
#define CONNECT_S 20
#define SLOW_BYTES_PER_S 1024 /* a slower transfer times out */

struct download {
        CURL *curl;
        struct curl_slist *headers, *with_secret; /* with_secret: for the upstream only; its tail is headers */
        int out, answer;
        uint64_t max_bytes, told_bytes, ignored_bytes;
        bool is_too_big;
        struct fetch_message said;
        struct error err; /* of writing the file */
};

static enum status send_message(struct download *d, enum fetch_message_type type)
{
        d->said.type = type;
        return file_write_all(d->answer, &d->said, sizeof d->said, "answer", &d->err);
}

/* ---- the response ---- */

static bool parse_header_value(const char *line, size_t n, const char *name, char *ret, size_t size)
{
        size_t skip = strlen(name);

        if (n <= skip || strncasecmp(line, name, skip) != 0)
                return false;
        while (skip < n && (line[skip] == ' ' || line[skip] == '\t'))
                skip++;
        while (n > skip && (unsigned char)line[n - 1] <= ' ')
                n--;
        snprintf(ret, size, "%.*s", (int)(n - skip < size ? n - skip : size - 1), line + skip);
        return true;
}

static size_t on_fetch_header(char *line, size_t size, size_t count, void *context)
{
        struct download *d = context;
        size_t n = size * count;
        char number[24];
        uint64_t bytes;

        if (parse_header_value(line, n, "x-debuginfod-file:", d->said.response.name, sizeof d->said.response.name))
                return n;
        if (parse_header_value(line, n, "x-debuginfod-size:", number, sizeof number) && parse_uint(number, &bytes))
                d->said.response.size_bytes = bytes;
        return n;
}

static unsigned get_http_status(struct download *d)
{
        long code = 0;

        curl_easy_getinfo(d->curl, CURLINFO_RESPONSE_CODE, &code);
        return code > 0 ? (unsigned)code : 0;
}

/* Called before the first byte of the body. */
static void note_announced_size(struct download *d)
{
        curl_off_t length = -1;

        curl_easy_getinfo(d->curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
        if (length > 0)
                d->said.response.size_bytes = (uint64_t)length;
        d->said.response.http_status = 200;
        d->is_too_big = d->said.response.size_bytes > d->max_bytes;
}

static size_t on_fetch_body(char *data, size_t size, size_t count, void *context)
{
        struct download *d = context;
        size_t n = size * count;

        if (get_http_status(d) != 200) {
                d->ignored_bytes += n;
                return d->ignored_bytes > ERROR_BODY_MAX ? 0 : n;
        }
        if (d->said.response.received_bytes == 0)
                note_announced_size(d);
        d->is_too_big |= n > d->max_bytes - d->said.response.received_bytes;
        if (d->is_too_big || file_write_all(d->out, data, n, "fetched file", &d->err))
                return 0;
        d->said.response.received_bytes += n;
        if (d->told_bytes && d->said.response.received_bytes - d->told_bytes < TELL_BYTES)
                return n;
        d->told_bytes = d->said.response.received_bytes;
        return send_message(d, FETCH_PROGRESS) ? 0 : n;
}

/* ---- the request ---- */

static void configure_curl(struct download *d, uint64_t timeout_s, uint64_t total_s)
{
        CURL *curl = d->curl;

        curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
        curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
        curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
        curl_easy_setopt(curl, CURLOPT_USERAGENT, "cairn/" CAIRN_VERSION);
        curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)(timeout_s < CONNECT_S ? timeout_s : CONNECT_S));
        curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, (long)SLOW_BYTES_PER_S);
        curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)timeout_s);
        curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)total_s);
        curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_fetch_header);
        curl_easy_setopt(curl, CURLOPT_HEADERDATA, d);
        curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_fetch_body);
        curl_easy_setopt(curl, CURLOPT_WRITEDATA, d);
}

/* With an empty file no authority is trusted. */
static void set_authorities(CURL *curl, const struct file_map *authorities)
{
        struct curl_blob blob = { .data = authorities->size ? (void *)(uintptr_t)authorities->data
                                                            : (void *)(uintptr_t) "",
                                  .len = authorities->size,
                                  .flags = CURL_BLOB_NOCOPY };

        curl_easy_setopt(curl, CURLOPT_CAINFO, NULL);
        curl_easy_setopt(curl, CURLOPT_CAPATH, NULL);
        curl_easy_setopt(curl, CURLOPT_CAINFO_BLOB, &blob);
}

/* Send the request and follow redirects. @param refused set if a redirect was not followed. */
static CURLcode follow_redirects(struct download *d, const char *first, bool *refused)
{
        _cleanup_free_ char *url = strdup(first);
        CURLcode rc = url ? CURLE_OK : CURLE_OUT_OF_MEMORY;

        *refused = false;
        for (unsigned i = 0; !rc; i++) {
                char *next = NULL;

                d->said.response = (struct fetch_response){ 0 };
                if (is_loopback_upstream(url))
                        curl_easy_setopt(d->curl, CURLOPT_PROXY, "");
                curl_easy_setopt(d->curl, CURLOPT_URL, url);
                curl_easy_setopt(d->curl, CURLOPT_HTTPHEADER,
                                 has_same_origin(first, url) ? d->with_secret : d->headers);
                rc = curl_easy_perform(d->curl);
                if (rc || get_http_status(d) / 100 != 3)
                        break;
                curl_easy_getinfo(d->curl, CURLINFO_REDIRECT_URL, &next);
                *refused = !next || i == REDIRECTS_MAX || !may_follow_redirect(first, next);
                if (*refused)
                        break;
                free(url);
                url = strdup(next);
                rc = url ? CURLE_OK : CURLE_OUT_OF_MEMORY;
        }
        return rc;
}

/* ---- the result ---- */

static enum status send_result(struct download *d, CURLcode rc, bool refused, const char *curl_text)
{
        struct fetch_message *m = &d->said;
        unsigned status = get_http_status(d);
        curl_off_t pause_s = 0;

        curl_easy_getinfo(d->curl, CURLINFO_RETRY_AFTER, &pause_s);
        m->response.http_status = status;
        m->response.retry_after_s = pause_s <= 0                       ? 0
                                    : pause_s < LIMIT_UPSTREAM_PAUSE_S ? (uint64_t)pause_s
                                                                       : LIMIT_UPSTREAM_PAUSE_S;
        if (d->is_too_big || status == 406) {
                snprintf(m->text, sizeof m->text, "it is larger than %" PRIu64 " bytes", d->max_bytes);
                return send_message(d, FETCH_TOO_BIG);
        }
        if (d->err.text[0])
                snprintf(m->text, sizeof m->text, "%.190s", d->err.text);
        else if (status == 404 || status == 410)
                return send_message(d, FETCH_MISSING);
        else if (refused)
                snprintf(m->text, sizeof m->text, "it redirects to another host, which is not allowed");
        else if (status >= 400)
                snprintf(m->text, sizeof m->text, "it responded with status %u", status);
        else if (rc && m->response.received_bytes)
                snprintf(m->text, sizeof m->text, "its response was truncated after %" PRIu64 " bytes: %.120s",
                         m->response.received_bytes, curl_text);
        else if (rc)
                snprintf(m->text, sizeof m->text, "%.190s", curl_text);
        else if (status != 200)
                snprintf(m->text, sizeof m->text, "it responded with status %u", status);
        else if (m->response.received_bytes == 0)
                snprintf(m->text, sizeof m->text, "its response is empty");
        else
                return send_message(d, FETCH_FOUND);
        return send_message(d, FETCH_FAILED);
}

static bool add_request_header(struct download *d, const char *name, const char *value)
{
        _cleanup_free_ char *line = NULL;
        struct curl_slist *longer =
                asprintf(&line, "%s: %s", name, value) < 0 ? NULL : curl_slist_append(d->headers, line);

        if (longer)
                d->headers = longer;
        return longer != NULL;
}

static bool add_secret_header(struct download *d, const char *line)
{
        d->with_secret = d->headers;
        if (line) {
                d->with_secret = curl_slist_append(NULL, line);
                if (d->with_secret)
                        d->with_secret->next = d->headers;
        }
        return d->with_secret != NULL;
}

static void free_headers(struct download *d)
{
        if (d->with_secret && d->with_secret != d->headers) {
                d->with_secret->next = NULL;
                curl_slist_free_all(d->with_secret);
        }
        curl_slist_free_all(d->headers);
}

/* The URL of the file, and its header or NULL; owned. */
static enum status read_url(const char *path, char **ret, char **header_ret, struct error *err)
{
        _cleanup_file_map_ struct file_map base = { 0 };
        enum status st = file_map_fd(FETCH_WORKER_URL, LIMIT_UPSTREAM_URL_BYTES + 1 + LIMIT_UPSTREAM_HEADER_BYTES,
                                     "the upstream's URL", &base, err);
        size_t size = base.size;
        const char *line_end;

        if (st)
                return st;
        line_end = memchr(base.data, '\n', size);
        if (line_end) {
                size = (size_t)(line_end - (const char *)base.data);
                *header_ret = strndup(line_end + 1, base.size - size - 1);
                if (!*header_ret)
                        return error_no_memory(err);
        }
        while (size && ((const char *)base.data)[size - 1] == '/')
                size--;
        return asprintf(ret, "%.*s/%s", (int)size, (const char *)base.data, path) < 0 ? error_no_memory(err) : ST_OK;
}

enum status fetch_worker_run(char *const args[static FETCH_WORKER_ARGS], struct error *err)
{
        const char *path = args[0], *max_text = args[3], *forwarded_for = args[4];
        struct download d = { .out = FETCH_WORKER_OUT, .answer = FETCH_WORKER_ANSWER };
        bool has_authorities = fcntl(FETCH_WORKER_AUTHORITIES, F_GETFD) >= 0;
        _cleanup_file_map_ struct file_map authorities = { 0 };
        _cleanup_free_ char *url = NULL, *secret = NULL;
        char curl_error[CURL_ERROR_SIZE] = "";
        uint64_t timeout_s, total_s;
        bool refused;
        CURLcode rc;
        enum status st;

        if (!parse_uint(args[1], &timeout_s) || !parse_uint(args[2], &total_s) || !parse_uint(max_text, &d.max_bytes))
                return error_set(err, ST_USAGE, "invalid arguments: '%s' '%s' '%s'", args[1], args[2], max_text);
        st = has_authorities ? file_map_fd(FETCH_WORKER_AUTHORITIES, LIMIT_PEM_BYTES, "certificates", &authorities, err)
                             : ST_OK;
        if (!st)
                st = read_url(path, &url, &secret, err);
        if (st)
                return st;
        d.curl = !curl_global_init(CURL_GLOBAL_DEFAULT) ? curl_easy_init() : NULL;
        if (!d.curl || !add_request_header(&d, "X-DEBUGINFOD-MAXSIZE", max_text) ||
            (forwarded_for[0] && !add_request_header(&d, "X-Forwarded-For", forwarded_for)) ||
            !add_secret_header(&d, secret)) {
                st = error_no_memory(err);
        } else {
                configure_curl(&d, timeout_s, total_s);
                if (has_authorities)
                        set_authorities(d.curl, &authorities);
                curl_easy_setopt(d.curl, CURLOPT_ERRORBUFFER, curl_error);
                rc = follow_redirects(&d, url, &refused);
                st = send_result(&d, rc, refused, curl_error[0] ? curl_error : curl_easy_strerror(rc));
        }
        curl_easy_cleanup(d.curl);
        free_headers(&d);
        return st;
}
