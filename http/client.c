/* SPDX-License-Identifier: Apache-2.0 */
#include "http/client.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/limits.h"
#include "http/client_internal.h"

struct http_client {
        CURL *curl;
        char *base_url, *user_agent, *token, *ca_file;
        uint64_t connect_timeout_ms, request_timeout_ms, idle_timeout_s;
        uint64_t first_pause_ms, longest_pause_ms, send_bytes_per_s;
        unsigned attempts;
        const atomic_bool *stop;
        uint64_t jitter;
};

/* What one attempt needs in libcurl's callbacks. */
struct attempt {
        const struct http_client *client;
        const struct http_client_request *request;
        struct http_client_response *response;
        size_t body_sent;
        bool stream_began;
        enum status write_failed;
        char curl_error[CURL_ERROR_SIZE];
};

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void curl_start(void)
{
        curl_global_init(CURL_GLOBAL_DEFAULT);
}

static uint64_t or_default(uint64_t v, uint64_t standard)
{
        return v ? v : standard;
}

static bool is_http_url(const char *url)
{
        return strncasecmp(url, "http://", 7) == 0 || strncasecmp(url, "https://", 8) == 0;
}

enum status http_client_create(const struct http_client_options *o, struct http_client **ret, struct error *err)
{
        struct http_client *c;
        size_t n;

        if (!o->base_url || !is_http_url(o->base_url))
                return error_set(err, ST_USAGE, "'%s' is no address: give http://HOST:PORT or https://HOST",
                                 o->base_url ? o->base_url : "");
        if (o->ca_file && faccessat(AT_FDCWD, o->ca_file, R_OK, AT_EACCESS)) /* capabilities count, as when it is opened */
                return error_os(err, errno, "cannot read the certificates in '%s'", o->ca_file);
        pthread_once(&curl_once, curl_start);
        c = calloc(1, sizeof *c);
        if (!c)
                return error_no_memory(err);
        c->curl = curl_easy_init();
        c->base_url = strdup(o->base_url);
        c->user_agent = strdup(o->user_agent ? o->user_agent : "cairn/" CAIRN_VERSION);
        c->token = o->token ? strdup(o->token) : NULL;
        c->ca_file = o->ca_file ? strdup(o->ca_file) : NULL;
        if (!c->curl || !c->base_url || !c->user_agent || (o->token && !c->token) || (o->ca_file && !c->ca_file)) {
                http_client_destroy(c);
                return error_no_memory(err);
        }
        n = strlen(c->base_url);
        while (n && c->base_url[n - 1] == '/')
                c->base_url[--n] = 0;
        c->connect_timeout_ms = or_default(o->connect_timeout_ms, 10000);
        c->request_timeout_ms = o->request_timeout_ms;
        c->idle_timeout_s = or_default(o->idle_timeout_s, 60);
        c->first_pause_ms = or_default(o->first_pause_ms, 500);
        c->longest_pause_ms = or_default(o->longest_pause_ms, 30000);
        c->attempts = o->attempts ? o->attempts : 5;
        c->send_bytes_per_s = o->send_bytes_per_s;
        c->stop = o->stop;
        c->jitter = (uint64_t)monotonic_ns() ^ (uint64_t)(uintptr_t)c;
        *ret = c;
        return ST_OK;
}

void http_client_destroy(struct http_client *c)
{
        if (!c)
                return;
        curl_easy_cleanup(c->curl);
        free(c->base_url);
        free(c->user_agent);
        free(c->token);
        free(c->ca_file);
        free(c);
}

void http_client_response_deinit(struct http_client_response *r)
{
        buf_deinit(&r->body);
        *r = (struct http_client_response){ 0 };
}

static bool stopped(const struct http_client *c)
{
        return c->stop && atomic_load(c->stop);
}

static size_t on_read(char *to, size_t size, size_t count, void *context)
{
        struct attempt *a = context;
        const struct http_client_request *q = a->request;
        size_t room = size * count, n;

        if (q->read) {
                ssize_t got = q->read(q->context, to, room);

                a->stream_began = true;
                return got < 0 ? CURL_READFUNC_ABORT : (size_t)got;
        }
        n = q->body_size - a->body_sent < room ? q->body_size - a->body_sent : room;
        if (n)
                memcpy(to, (const char *)q->body + a->body_sent, n);
        a->body_sent += n;
        return n;
}

/* libcurl itself goes back when a kept connection turns out to be dead, or after a 100-continue. */
static int on_seek(void *context, curl_off_t offset, int origin)
{
        struct attempt *a = context;

        if (origin != SEEK_SET || offset != 0)
                return CURL_SEEKFUNC_CANTSEEK;
        a->body_sent = 0;
        if (!a->request->read || !a->stream_began)
                return CURL_SEEKFUNC_OK;
        return a->request->rewind && a->request->rewind(a->request->context) ? CURL_SEEKFUNC_OK
                                                                             : CURL_SEEKFUNC_CANTSEEK;
}

static size_t on_write(char *data, size_t size, size_t count, void *context)
{
        struct attempt *a = context;
        size_t n = size * count;
        long code = 0;

        curl_easy_getinfo(a->client->curl, CURLINFO_RESPONSE_CODE, &code);
        if (a->request->write && code >= 200 && code < 300)
                a->write_failed = a->request->write(a->request->write_context, data, n);
        else
                a->write_failed = buf_append(&a->response->body, data, n);
        return a->write_failed ? 0 : n;
}

static size_t on_header(char *line, size_t size, size_t count, void *context)
{
        static const char name[] = "retry-after:";
        struct attempt *a = context;
        size_t n = size * count;

        if (n > strlen(name) && strncasecmp(line, name, strlen(name)) == 0)
                a->response->retry_after_ms = retry_after_ms(line + strlen(name), n - strlen(name), time(NULL));
        return n;
}

static int on_progress(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
        const struct attempt *attempt = context;

        (void)a, (void)b, (void)c, (void)d;
        return stopped(attempt->client);
}

static bool is_loopback(const char *url)
{
        const char *host = strstr(url, "://");

        if (!host)
                return false;
        host += 3;
        return strncmp(host, "127.", 4) == 0 || strncmp(host, "[::1]", 5) == 0 ||
               (strncasecmp(host, "localhost", 9) == 0 && strchr(":/", host[9]));
}

bool http_client_exposes_token(const char *base_url)
{
        return strncasecmp(base_url, "http://", 7) == 0 && !is_loopback(base_url);
}

static bool add_header(struct curl_slist **list, const char *line)
{
        struct curl_slist *longer = curl_slist_append(*list, line);

        if (longer)
                *list = longer;
        return longer != NULL;
}

static enum status make_headers(const struct http_client *c, const struct http_client_request *q, bool ours,
                                struct curl_slist **ret, struct error *err)
{
        struct curl_slist *list = NULL;
        _cleanup_free_ char *authorization = NULL;
        bool ok = true;

        for (const char *const *h = q->headers; ok && h && *h; h++)
                ok = add_header(&list, *h);
        /* The token goes to its own service only, never to a whole URL that somebody handed in. */
        if (ok && c->token && ours)
                ok = asprintf(&authorization, "Authorization: Bearer %s", c->token) >= 0 &&
                     add_header(&list, authorization);
        if (!ok) {
                curl_slist_free_all(list);
                return error_no_memory(err);
        }
        *ret = list;
        return ST_OK;
}

static void set_body(CURL *curl, const struct http_client_request *q)
{
        bool is_get = strcmp(q->method, "GET") == 0, is_head = strcmp(q->method, "HEAD") == 0;
        bool has_body = q->read || q->body_size || strcmp(q->method, "PUT") == 0 || strcmp(q->method, "POST") == 0;

        if (is_head) {
                curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
                return;
        }
        if (is_get && !has_body) {
                curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L);
                curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
                curl_easy_setopt(curl, CURLOPT_MAXREDIRS, 5L);
                return;
        }
        if (has_body) {
                curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
                if (!q->read)
                        curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE, (curl_off_t)q->body_size);
                else if (q->stream_size)
                        curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE, (curl_off_t)q->stream_size);
        }
        curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, q->method);
}

/* One attempt on the wire. */
static CURLcode perform(struct http_client *c, struct attempt *a, const char *url, struct curl_slist *headers)
{
        CURL *curl = c->curl;

        curl_easy_reset(curl);
        curl_easy_setopt(curl, CURLOPT_URL, url);
        curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
        curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
        curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
        if (c->ca_file) {
                curl_easy_setopt(curl, CURLOPT_CAINFO, c->ca_file);
                curl_easy_setopt(curl, CURLOPT_CAPATH, NULL);
        }
        if (is_loopback(url))
                curl_easy_setopt(curl, CURLOPT_PROXY, "");
        curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
        curl_easy_setopt(curl, CURLOPT_USERAGENT, c->user_agent);
        curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)c->connect_timeout_ms);
        curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)c->request_timeout_ms);
        curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 10L);
        curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)c->idle_timeout_s);
        curl_easy_setopt(curl, CURLOPT_MAX_SEND_SPEED_LARGE, (curl_off_t)c->send_bytes_per_s);
        curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, a->curl_error);
        curl_easy_setopt(curl, CURLOPT_READFUNCTION, on_read);
        curl_easy_setopt(curl, CURLOPT_READDATA, a);
        curl_easy_setopt(curl, CURLOPT_SEEKFUNCTION, on_seek);
        curl_easy_setopt(curl, CURLOPT_SEEKDATA, a);
        curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_write);
        curl_easy_setopt(curl, CURLOPT_WRITEDATA, a);
        curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
        curl_easy_setopt(curl, CURLOPT_HEADERDATA, a);
        curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
        curl_easy_setopt(curl, CURLOPT_XFERINFODATA, a);
        curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
        set_body(curl, a->request);
        return curl_easy_perform(curl);
}

static bool is_repeatable(const struct http_client_request *q)
{
        return q->repeatable || strcmp(q->method, "POST") != 0;
}

static bool worth_repeating(unsigned code)
{
        return code == 0 || code == 429 || code == 502 || code == 503 || code == 504;
}

/* Failures that are the same at the next attempt. */
static bool is_final(CURLcode rc)
{
        return rc == CURLE_URL_MALFORMAT || rc == CURLE_UNSUPPORTED_PROTOCOL || rc == CURLE_OUT_OF_MEMORY ||
               rc == CURLE_PEER_FAILED_VERIFICATION || rc == CURLE_SSL_CACERT_BADFILE;
}

/* Wait in slices so that a stop is seen soon; the jitter keeps many clients from coming back together. */
static bool pause_before_retry(struct http_client *c, unsigned attempt, uint64_t asked_ms)
{
        uint64_t ms = c->first_pause_ms << (attempt < 16 ? attempt - 1 : 15);
        int64_t end;

        if (ms > c->longest_pause_ms)
                ms = c->longest_pause_ms;
        if (asked_ms > ms)
                ms = asked_ms;
        c->jitter = c->jitter * 6364136223846793005u + 1442695040888963407u;
        ms += (c->jitter >> 33) % (ms / 8 + 1);
        end = monotonic_ns() + (int64_t)ms * 1000000;
        while (!stopped(c)) {
                int64_t left = end - monotonic_ns();
                struct timespec slice = { .tv_nsec = left < 50000000 ? left : 50000000 };

                if (left <= 0)
                        return true;
                nanosleep(&slice, NULL);
        }
        return false;
}

static void take_content_type(CURL *curl, struct http_client_response *r)
{
        const char *type = NULL;

        curl_easy_getinfo(curl, CURLINFO_CONTENT_TYPE, &type);
        snprintf(r->content_type, sizeof r->content_type, "%s", type ? type : "");
}

enum status http_client_send(struct http_client *c, const struct http_client_request *q,
                             struct http_client_response *response, struct error *err)
{
        bool whole_url = is_http_url(q->path);
        unsigned attempts = is_repeatable(q) ? c->attempts : 1;
        struct attempt a = { .client = c, .request = q, .response = response };
        struct curl_slist *headers = NULL;
        _cleanup_free_ char *url = NULL;
        CURLcode rc = CURLE_OK;
        enum status st;

        *response = (struct http_client_response){ 0 };
        buf_init(&response->body, or_default(q->max_response, MiB(1)));
        if (asprintf(&url, "%s%s", whole_url ? "" : c->base_url, q->path) < 0) {
                url = NULL;
                return error_no_memory(err);
        }
        st = make_headers(c, q, !whole_url, &headers, err);
        if (st)
                return st;
        for (;;) {
                long code = 0;

                buf_clear(&response->body);
                response->retry_after_ms = 0;
                response->attempts++;
                a.body_sent = 0;
                rc = perform(c, &a, url, headers);
                curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &code);
                response->code = rc == CURLE_OK || code >= 400 ? (unsigned)code : 0;
                take_content_type(c->curl, response);
                if (a.write_failed || rc == CURLE_ABORTED_BY_CALLBACK || stopped(c) ||
                    response->attempts >= attempts || !worth_repeating(response->code))
                        break;
                if (is_final(rc))
                        break;
                if (response->retry_after_ms > c->longest_pause_ms) /* sooner than it asks for is in vain */
                        break;
                if (!pause_before_retry(c, response->attempts, response->retry_after_ms))
                        break;
                if (a.stream_began && (!q->rewind || !q->rewind(q->context)))
                        break;
                a.stream_began = false;
        }
        curl_slist_free_all(headers);
        if (a.write_failed)
                return error_set(err, a.write_failed, "cannot take the answer of %s %s: %s", q->method, url,
                                 a.write_failed == ST_TOO_BIG ? "it is larger than this request allows"
                                                              : status_name(a.write_failed));
        if (stopped(c) && (rc || response->code >= 300))
                return error_set(err, ST_BUSY, "%s %s was stopped", q->method, url);
        return client_judge(q->method, url, rc, a.curl_error[0] ? a.curl_error : curl_easy_strerror(rc), response,
                            err);
}
