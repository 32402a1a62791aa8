/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_client_send() at the end is the loop over attempts: run_attempt(), decide whether a retry can help, pause,
 * rewind the body.
 *
 * Order: results (codes and curl's failures to a status and an error text), helpers for callers, creating and
 * destroying, libcurl's callbacks (on_curl_...), which have the struct attempt as context, then headers, body, attempt
 * and pauses.
 *
 * Each attempt resets the curl handle and sets all options again, so that no option of an earlier request remains; the
 * reset keeps the open connection. The token and the tenant are sent to the configured service only, never to a full
 * URL of a caller.
 *
 * Lock: token_lock protects `token`, which another thread may replace; it is held only to copy the token or to replace
 * it.
 */
#include "http/http_client.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/files/file.h"
#include "common/files/tenant_name.h"
#include "common/json/json_value.h"
#include "common/limits.h"
#include "common/reader.h"
#include "common/text.h"
#include "http/http_client_internal.h"

/* ---- results: from an HTTP response to a status and an error text ---- */

uint64_t parse_retry_after_ms(const char *value, size_t n, time_t now)
{
        char text[64];
        char *end;
        unsigned long seconds;
        time_t at;

        while (n && (*value == ' ' || *value == '\t'))
                value++, n--;
        while (n && (value[n - 1] == '\r' || value[n - 1] == '\n' || value[n - 1] == ' '))
                n--;
        if (n == 0 || n >= sizeof text)
                return 0;
        memcpy(text, value, n);
        text[n] = 0;
        if (text[0] >= '0' && text[0] <= '9') {
                seconds = strtoul(text, &end, 10);
                if (*end == 0)
                        return seconds > 86400 ? 86400000 : seconds * 1000;
        }
        at = curl_getdate(text, NULL);
        if (at <= now)
                return 0;
        return at - now > 86400 ? 86400000 : (uint64_t)(at - now) * 1000;
}

const char *http_client_get_error_member(const struct http_client_response *r, const char *member, char *out,
                                         size_t size)
{
        struct json_value root;
        char text[2048];

        out[0] = 0;
        if (r->body.size && !json_value_parse(r->body.data, r->body.size, &root, NULL) &&
            json_value_text(&root, member, text, sizeof text))
                snprintf(out, size, "%s", text);
        return out;
}

/* Up to the first control character. */
static void copy_text_line(const uint8_t *text, size_t text_size, char *out, size_t size)
{
        size_t n = 0;

        while (n < text_size && n + 1 < size && text[n] >= ' ' && text[n] != 0x7f) {
                out[n] = (char)text[n];
                n++;
        }
        out[n] = 0;
}

/* The message of a google.rpc.Status, field 2, as OTLP services answer. */
static void copy_status_message(const struct http_client_response *r, char *out, size_t size)
{
        enum { VARINT = 0, BYTES = 2, MESSAGE = 2 };
        struct reader body, bytes;
        uint64_t key, value;

        reader_init(&body, r->body.data, r->body.size);
        while (reader_left(&body) && reader_uleb128(&body, &key) && reader_uleb128(&body, &value)) {
                if ((key & 7) == BYTES && !reader_sub(&body, value, &bytes))
                        return;
                if ((key & 7) == BYTES && key >> 3 == MESSAGE)
                        copy_text_line(bytes.data, bytes.size, out, size);
                else if ((key & 7) != BYTES && (key & 7) != VARINT)
                        return;
        }
}

/* Copy the server's error text: the JSON error, the message of a status, or the first line of a plain text body. */
static void copy_error_text(const struct http_client_response *r, char *out, size_t size)
{
        http_client_get_error_member(r, "error", out, size);
        if (out[0])
                return;
        if (starts_with(r->content_type, "text/plain"))
                copy_text_line(r->body.data, r->body.size, out, size);
        else if (starts_with(r->content_type, "application/x-protobuf"))
                copy_status_message(r, out, size);
}

static enum status convert_http_code(unsigned code)
{
        switch (code) {
        case 401:
        case 403:
        case 405:
                return ST_USAGE;
        case 404:
                return ST_NOT_FOUND;
        case 413:
                return ST_TOO_BIG;
        case 415:
                return ST_UNSUPPORTED;
        case 408:
        case 429:
                return ST_BUSY;
        default:
                return code >= 500 ? ST_BUSY : ST_BAD_DATA;
        }
}

static const char *suggest_next_step(unsigned code)
{
        switch (code) {
        case 401:
                return "; give a token with --token-file";
        case 403:
                return "; give a token with the required scope";
        case 404:
        case 405:
                return "; check that the address is a Cairn service";
        case 429:
        case 502:
        case 503:
        case 504:
                return "; try again later";
        default:
                return code >= 300 && code < 400 ? "; give the address it redirects to" : "";
        }
}

#define SHOWN_URL_BYTES 101

/* A URL for a message: without its query, and cut to what fits into size. Returns out. */
static const char *shorten_url(const char *url, char *out, size_t size)
{
        size_t n = strcspn(url, "?#");

        if (n < size)
                snprintf(out, size, "%.*s", (int)n, url);
        else if (size > 4)
                snprintf(out, size, "%.*s...", (int)size - 4, url);
        else
                out[0] = 0;
        return out;
}

static enum status convert_curl_failure(const char *method, const char *url, CURLcode rc, const char *text,
                                        const char *ca_setting, const struct http_client_response *r, struct error *err)
{
        if (rc == CURLE_URL_MALFORMAT || rc == CURLE_UNSUPPORTED_PROTOCOL)
                return error_set(err, ST_USAGE, "%s %s failed: %.80s; give http://HOST:PORT", method, url, text);
        if (rc == CURLE_OUT_OF_MEMORY)
                return error_no_memory(err);
        if (rc == CURLE_PEER_FAILED_VERIFICATION)
                return error_set(err, ST_USAGE,
                                 "%s %.60s failed: %.80s; use the host name of its certificate, or give %s with "
                                 "the issuer's certificate",
                                 method, url, text, ca_setting);
        if (rc == CURLE_SSL_CACERT_BADFILE)
                return error_set(err, ST_USAGE, "%s %.60s failed: %.100s; %s takes certificates as PEM", method, url,
                                 text, ca_setting);
        if (rc == CURLE_ABORTED_BY_CALLBACK)
                return error_set(err, ST_OS, "%s %s failed: the request body could not be read", method, url);
        if (rc == CURLE_COULDNT_CONNECT || rc == CURLE_COULDNT_RESOLVE_HOST)
                return error_set(err, ST_BUSY, "%s %s failed: %.90s; is the service running there?", method, url, text);
        return error_set(err, ST_BUSY, "%s %s failed after %u attempt%s: %s", method, url, r->attempts,
                         r->attempts == 1 ? "" : "s", text);
}

/* The server's text comes first and is whole, as far as a struct error has room for it; the URL gets the rest. */
static enum status quote_server_error(const char *method, const char *url, unsigned code, const char *text,
                                      struct error *err)
{
        const size_t room = sizeof err->text - strlen(" (HTTP 000)"), used = strlen(text) + strlen(method) + 3;
        char shown[SHOWN_URL_BYTES];
        size_t left = used < room ? room - used : 0;

        if (left < 24) /* too little to tell a host */
                return error_set(err, convert_http_code(code), "%.*s (HTTP %u)", (int)room - 1, text, code);
        shorten_url(url, shown, left < sizeof shown ? left : sizeof shown);
        return error_set(err, convert_http_code(code), "%s (HTTP %u, %s %s)", text, code, method, shown);
}

static enum status client_convert_result(const char *method, const char *url, CURLcode rc, const char *curl_text,
                                         const char *ca_setting, const struct http_client_response *r,
                                         struct error *err)
{
        char text[sizeof err->text], shown[SHOWN_URL_BYTES];

        if (r->code >= 200 && r->code < 300 && rc == CURLE_OK)
                return ST_OK;
        shorten_url(url, shown, sizeof shown);
        if (r->code < 300)
                return convert_curl_failure(method, shown, rc, curl_text, ca_setting, r, err);
        copy_error_text(r, text, sizeof text);
        if (text[0])
                return quote_server_error(method, url, r->code, text, err);
        return error_set(err, convert_http_code(r->code), "%s %s: HTTP %u%s", method, shown, r->code,
                         suggest_next_step(r->code));
}

/* ---- request helpers ---- */

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
        char *line;
        enum status st = file_read_first_line(path, KiB(4), &line, err);

        if (st)
                return st;
        line[strcspn(line, " \t")] = 0;
        *ret = line;
        return ST_OK;
}

struct http_client {
        CURL *curl;
        char *base_url, *user_agent, *tenant, *ca_file, *cert_file, *key_file;
        const char *ca_setting;
        pthread_mutex_t token_lock;
        char *token;
        uint64_t connect_timeout_ms, request_timeout_ms, unacked_timeout_ms, idle_timeout_s;
        uint64_t first_pause_ms, longest_pause_ms, send_bytes_per_s;
        unsigned attempts, connect_timeouts;
        const atomic_bool *stop;
        uint64_t jitter;
};

/* State of one attempt, for libcurl's callbacks. */
struct attempt {
        const struct http_client *client;
        const struct http_client_request *request;
        struct http_client_response *response;
        int64_t end_ns; /* of the request; 0: none */
        size_t body_sent;
        bool stream_began;
        enum status write_failed;
        char curl_error[CURL_ERROR_SIZE];
};

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void init_curl(void)
{
        curl_global_init(CURL_GLOBAL_DEFAULT);
}

static uint64_t value_or_default(uint64_t v, uint64_t standard)
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
                return error_set(err, ST_USAGE, "'%s' is not an address: give http://HOST:PORT or https://HOST",
                                 o->base_url ? o->base_url : "");
        if (o->ca_file && faccessat(AT_FDCWD, o->ca_file, R_OK, AT_EACCESS)) /* checks effective ids, as open() does */
                return error_os(err, errno, "cannot read the certificates in '%s'", o->ca_file);
        pthread_once(&curl_once, init_curl);
        c = calloc(1, sizeof *c);
        if (!c)
                return error_no_memory(err);
        pthread_mutex_init(&c->token_lock, NULL);
        c->curl = curl_easy_init();
        c->base_url = strdup(o->base_url);
        c->user_agent = strdup(o->user_agent ? o->user_agent : "cairn/" CAIRN_VERSION);
        c->token = o->token ? strdup(o->token) : NULL;
        c->tenant = o->tenant ? strdup(o->tenant) : NULL;
        c->ca_file = o->ca_file ? strdup(o->ca_file) : NULL;
        c->cert_file = o->cert_file ? strdup(o->cert_file) : NULL;
        c->key_file = o->key_file ? strdup(o->key_file) : NULL;
        if (!c->curl || !c->base_url || !c->user_agent || (o->token && !c->token) || (o->tenant && !c->tenant) ||
            (o->ca_file && !c->ca_file) || (o->cert_file && !c->cert_file) || (o->key_file && !c->key_file)) {
                http_client_destroy(c);
                return error_no_memory(err);
        }
        n = strlen(c->base_url);
        while (n && c->base_url[n - 1] == '/')
                c->base_url[--n] = 0;
        c->ca_setting = o->ca_setting ? o->ca_setting : "--ca FILE";
        c->connect_timeout_ms = value_or_default(o->connect_timeout_ms, 10000);
        c->request_timeout_ms = o->request_timeout_ms;
        c->unacked_timeout_ms = o->unacked_timeout_ms;
        c->idle_timeout_s = value_or_default(o->idle_timeout_s, 60);
        c->first_pause_ms = value_or_default(o->first_pause_ms, 500);
        c->longest_pause_ms = value_or_default(o->longest_pause_ms, 30000);
        c->attempts = o->attempts ? o->attempts : 5;
        c->connect_timeouts = o->connect_timeouts ? o->connect_timeouts : c->attempts;
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
        pthread_mutex_destroy(&c->token_lock);
        free(c->token);
        free(c->tenant);
        free(c->ca_file);
        free(c->cert_file);
        free(c->key_file);
        free(c);
}

void http_client_response_deinit(struct http_client_response *r)
{
        buf_deinit(&r->body);
        *r = (struct http_client_response){ 0 };
}

static bool is_client_stopped(const struct http_client *c)
{
        return c->stop && atomic_load(c->stop);
}

static size_t on_curl_read(char *to, size_t size, size_t count, void *context)
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

/* libcurl rewinds when a reused connection turns out to be dead, and after 100-continue. */
static int on_curl_seek(void *context, curl_off_t offset, int origin)
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

static size_t on_curl_write(char *data, size_t size, size_t count, void *context)
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

/* Copy a header value without surrounding blanks. */
static void copy_header_value(const char *text, size_t n, char *ret, size_t size)
{
        while (n && strchr(" \t", *text)) {
                text++;
                n--;
        }
        while (n && strchr(" \t\r\n", text[n - 1]))
                n--;
        snprintf(ret, size, "%.*s", (int)n, text);
}

static void pass_header(const struct http_client_request *q, const char *line, size_t n)
{
        const char *colon = memchr(line, ':', n), *value = colon ? colon + 1 : NULL;
        size_t value_size = colon ? n - (size_t)(value - line) : 0;

        if (!colon)
                return;
        while (value_size && strchr(" \t", *value)) {
                value++;
                value_size--;
        }
        while (value_size && strchr(" \t\r\n", value[value_size - 1]))
                value_size--;
        q->header(q->header_context, line, (size_t)(colon - line), value, value_size);
}

static size_t on_curl_header(char *line, size_t size, size_t count, void *context)
{
        static const char retry_after[] = "retry-after:", note[] = "x-cairn-note:";
        static const char expiring[] = "x-cairn-expiring-samples:", encoding[] = "content-encoding:";
        struct attempt *a = context;
        size_t n = size * count;
        char number[24];

        if (a->request->header && n > 5 && strncmp(line, "HTTP/", 5) == 0)
                a->request->header(a->request->header_context, "", 0, "", 0);
        else if (a->request->header)
                pass_header(a->request, line, n);
        if (n > 5 && strncmp(line, "HTTP/", 5) == 0) /* the response to a redirection, too, begins with its status */
                a->response->content_encoding[0] = 0;
        else if (n > strlen(retry_after) && strncasecmp(line, retry_after, strlen(retry_after)) == 0)
                a->response->retry_after_ms =
                        parse_retry_after_ms(line + strlen(retry_after), n - strlen(retry_after), time(NULL));
        else if (n > strlen(note) && strncasecmp(line, note, strlen(note)) == 0)
                copy_header_value(line + strlen(note), n - strlen(note), a->response->note, sizeof a->response->note);
        else if (n > strlen(expiring) && strncasecmp(line, expiring, strlen(expiring)) == 0) {
                copy_header_value(line + strlen(expiring), n - strlen(expiring), number, sizeof number);
                a->response->expiring_samples = strtoull(number, NULL, 10);
        } else if (n > strlen(encoding) && strncasecmp(line, encoding, strlen(encoding)) == 0)
                copy_header_value(line + strlen(encoding), n - strlen(encoding), a->response->content_encoding,
                                  sizeof a->response->content_encoding);
        return n;
}

/* A peer may let a body wait for long. If the option cannot be set, the idle timeout ends the attempt. */
static void set_unacked_timeout(const struct attempt *a, int fd)
{
        const bool has_body = a->request->read || a->request->body_size;
        const unsigned ms = has_body ? 0 : (unsigned)a->client->unacked_timeout_ms;

        setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
}

static int on_curl_socket(void *context, curl_socket_t fd, curlsocktype purpose)
{
        (void)purpose;
        set_unacked_timeout(context, fd);
        return CURL_SOCKOPT_OK;
}

static int on_curl_progress(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
        const struct attempt *attempt = context;

        (void)a, (void)b, (void)c, (void)d;
        return is_client_stopped(attempt->client);
}

/* Whether the URL's host is a loopback address or localhost; a host name that merely resembles one is not. */
static bool is_local_service_url(const char *url)
{
        struct in6_addr v6;
        struct in_addr v4;
        bool ret = false;
        CURLU *parsed = curl_url();
        char *host = NULL;
        size_t n;

        if (!parsed || curl_url_set(parsed, CURLUPART_URL, url, 0) || curl_url_get(parsed, CURLUPART_HOST, &host, 0)) {
                curl_url_cleanup(parsed);
                return false;
        }
        n = strlen(host);
        if (n > 2 && host[0] == '[') {
                host[n - 1] = 0;
                ret = inet_pton(AF_INET6, host + 1, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
        } else if (inet_pton(AF_INET, host, &v4) == 1) {
                ret = ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
        } else {
                ret = strcasecmp(host, "localhost") == 0;
        }
        curl_free(host);
        curl_url_cleanup(parsed);
        return ret;
}

bool http_client_exposes_token(const char *base_url)
{
        return strncasecmp(base_url, "http://", 7) == 0 && !is_local_service_url(base_url);
}

static bool append_request_header(struct curl_slist **list, const char *line)
{
        struct curl_slist *longer = curl_slist_append(*list, line);

        if (longer)
                *list = longer;
        return longer != NULL;
}

enum status http_client_set_token(struct http_client *c, const char *token, struct error *err)
{
        char *copy = token ? strdup(token) : NULL, *old;

        if (token && !copy)
                return error_no_memory(err);
        pthread_mutex_lock(&c->token_lock);
        old = c->token;
        c->token = copy;
        pthread_mutex_unlock(&c->token_lock);
        free(old);
        return ST_OK;
}

/* @param ret  owned; NULL if there is no token.  @return false when out of memory. */
static bool make_authorization(struct http_client *c, char **ret)
{
        bool ok = true;

        pthread_mutex_lock(&c->token_lock);
        if (c->token)
                ok = asprintf(ret, "Authorization: Bearer %s", c->token) >= 0;
        pthread_mutex_unlock(&c->token_lock);
        return ok;
}

static enum status make_request_headers(struct http_client *c, const struct http_client_request *q, bool ours,
                                        struct curl_slist **ret, struct error *err)
{
        struct curl_slist *list = NULL;
        _cleanup_free_ char *authorization = NULL, *tenant = NULL;
        bool ok = true;

        for (const char *const *h = q->headers; ok && h && *h; h++)
                ok = append_request_header(&list, *h);
        /* The token is sent only to the configured service, never to a full URL given by a caller. */
        if (ok && ours)
                ok = make_authorization(c, &authorization) &&
                     (!authorization || append_request_header(&list, authorization));
        if (ok && c->tenant && ours)
                ok = asprintf(&tenant, TENANT_HEADER ": %s", c->tenant) >= 0 && append_request_header(&list, tenant);
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
                curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, q->no_redirects ? 0L : 1L);
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

/* Of one attempt, for libcurl, to which 0 is none, too. */
static long get_time_limit_ms(const struct http_client *c, const struct attempt *a)
{
        int64_t limit = (int64_t)c->request_timeout_ms, left;

        if (!a->end_ns)
                return (long)limit;
        left = (a->end_ns - monotonic_ns()) / 1000000;
        if (left < 1)
                left = 1;
        return (long)(limit && limit < left ? limit : left);
}

/* Run one attempt. */
static CURLcode run_attempt(struct http_client *c, struct attempt *a, const char *url, struct curl_slist *headers)
{
        CURL *curl = c->curl;
        curl_socket_t kept = CURL_SOCKET_BAD;

        if (c->unacked_timeout_ms && !curl_easy_getinfo(curl, CURLINFO_ACTIVESOCKET, &kept) && kept != CURL_SOCKET_BAD)
                set_unacked_timeout(a, kept);
        curl_easy_reset(curl);
        curl_easy_setopt(curl, CURLOPT_URL, url);
        curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
        curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
        curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
        if (c->ca_file) {
                curl_easy_setopt(curl, CURLOPT_CAINFO, c->ca_file);
                curl_easy_setopt(curl, CURLOPT_CAPATH, NULL);
        }
        if (c->cert_file) {
                curl_easy_setopt(curl, CURLOPT_SSLCERT, c->cert_file);
                curl_easy_setopt(curl, CURLOPT_SSLKEY, c->key_file);
        }
        if (is_local_service_url(url))
                curl_easy_setopt(curl, CURLOPT_PROXY, "");
        curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
        curl_easy_setopt(curl, CURLOPT_USERAGENT, c->user_agent);
        curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)c->connect_timeout_ms);
        curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, get_time_limit_ms(c, a));
        if (c->unacked_timeout_ms) {
                curl_easy_setopt(curl, CURLOPT_SOCKOPTFUNCTION, on_curl_socket);
                curl_easy_setopt(curl, CURLOPT_SOCKOPTDATA, a);
        }
        curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 10L);
        curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)c->idle_timeout_s);
        curl_easy_setopt(curl, CURLOPT_MAX_SEND_SPEED_LARGE, (curl_off_t)c->send_bytes_per_s);
        curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, a->curl_error);
        curl_easy_setopt(curl, CURLOPT_READFUNCTION, on_curl_read);
        curl_easy_setopt(curl, CURLOPT_READDATA, a);
        curl_easy_setopt(curl, CURLOPT_SEEKFUNCTION, on_curl_seek);
        curl_easy_setopt(curl, CURLOPT_SEEKDATA, a);
        curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_curl_write);
        curl_easy_setopt(curl, CURLOPT_WRITEDATA, a);
        curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_curl_header);
        curl_easy_setopt(curl, CURLOPT_HEADERDATA, a);
        curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_curl_progress);
        curl_easy_setopt(curl, CURLOPT_XFERINFODATA, a);
        curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
        set_body(curl, a->request);
        return curl_easy_perform(curl);
}

/* An attempt of which the response is not what was asked for. */
static CURLcode break_attempt(struct attempt *a)
{
        a->write_failed = ST_OK;
        a->curl_error[0] = 0;
        return CURLE_PARTIAL_FILE;
}

static CURLcode run_checked_attempt(struct http_client *c, struct attempt *a, const char *url,
                                    struct curl_slist *headers, long *code_ret)
{
        CURLcode rc = run_attempt(c, a, url, headers);

        curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, code_ret);
        if (a->write_failed == ST_BUSY)
                return break_attempt(a);
        return !rc && *code_ret >= 200 && *code_ret < 300 && a->request->check &&
                               !a->request->check(a->request->header_context)
                       ? break_attempt(a)
                       : rc;
}

/* Also while the name is looked up, or TLS begins. */
static bool has_connect_timed_out(CURL *curl, CURLcode rc)
{
        curl_off_t before_request_us = 0;

        curl_easy_getinfo(curl, CURLINFO_PRETRANSFER_TIME_T, &before_request_us);
        return rc == CURLE_OPERATION_TIMEDOUT && !before_request_us;
}

static bool is_retryable_request(const struct http_client_request *q)
{
        return q->repeatable || strcmp(q->method, "POST") != 0;
}

static bool is_retryable_code(const struct http_client_request *q, unsigned code)
{
        return code == 0 || code == 429 || code == 502 || code == 503 || (code == 504 && !q->no_timeout_retry) ||
               (code == 500 && q->retries_500);
}

/* Failures that a retry cannot fix. */
static bool is_permanent_failure(const struct http_client_request *q, CURLcode rc)
{
        return rc == CURLE_URL_MALFORMAT || rc == CURLE_UNSUPPORTED_PROTOCOL || rc == CURLE_OUT_OF_MEMORY ||
               rc == CURLE_PEER_FAILED_VERIFICATION || rc == CURLE_SSL_CACERT_BADFILE ||
               (rc == CURLE_OPERATION_TIMEDOUT && q->no_timeout_retry);
}

/* Sleep in slices so that a stop is noticed quickly. Jitter spreads the retries of many clients. False: there is no
 * time for another attempt. */
static bool pause_before_retry(struct http_client *c, unsigned attempt, uint64_t asked_ms, int64_t request_end_ns)
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
        if (request_end_ns && end >= request_end_ns)
                return false;
        while (!is_client_stopped(c)) {
                int64_t left = end - monotonic_ns();
                struct timespec slice = { .tv_nsec = left < 50000000 ? left : 50000000 };

                if (left <= 0)
                        return true;
                nanosleep(&slice, NULL);
        }
        return false;
}

static void copy_failure(const struct attempt *a, CURLcode rc, struct http_client_response *r)
{
        r->timed_out = rc == CURLE_OPERATION_TIMEDOUT;
        snprintf(r->cause, sizeof r->cause, "%.*s", (int)sizeof r->cause - 1,
                 !rc                ? ""
                 : a->curl_error[0] ? a->curl_error
                                    : curl_easy_strerror(rc));
}

static void copy_content_type(CURL *curl, struct http_client_response *r)
{
        const char *type = NULL;

        curl_easy_getinfo(curl, CURLINFO_CONTENT_TYPE, &type);
        snprintf(r->content_type, sizeof r->content_type, "%s", type ? type : "");
}

enum status http_client_send(struct http_client *c, const struct http_client_request *q,
                             struct http_client_response *response, struct error *err)
{
        bool whole_url = is_http_url(q->path);
        unsigned attempts = is_retryable_request(q) ? c->attempts : 1, connect_timeouts = 0;
        struct attempt a = { .client = c, .request = q, .response = response };
        struct curl_slist *headers = NULL;
        _cleanup_free_ char *url = NULL;
        char shown[SHOWN_URL_BYTES];
        CURLcode rc = CURLE_OK;
        enum status st;

        if (q->deadline_ms)
                a.end_ns = monotonic_ns() + (int64_t)q->deadline_ms * 1000000;
        *response = (struct http_client_response){ 0 };
        buf_init(&response->body, value_or_default(q->max_response, MiB(1)));
        if (asprintf(&url, "%s%s", whole_url ? "" : c->base_url, q->path) < 0) {
                url = NULL;
                return error_no_memory(err);
        }
        st = make_request_headers(c, q, !whole_url, &headers, err);
        if (st)
                return st;
        for (;;) {
                long code = 0;

                buf_clear(&response->body);
                response->retry_after_ms = 0;
                response->attempts++;
                a.body_sent = 0;
                rc = run_checked_attempt(c, &a, url, headers, &code);
                connect_timeouts += has_connect_timed_out(c->curl, rc);
                response->code = rc == CURLE_OK || code >= 400 ? (unsigned)code : 0;
                copy_content_type(c->curl, response);
                copy_failure(&a, rc, response);
                if (a.write_failed || rc == CURLE_ABORTED_BY_CALLBACK || is_client_stopped(c) ||
                    response->attempts >= attempts || connect_timeouts >= c->connect_timeouts ||
                    !is_retryable_code(q, response->code))
                        break;
                if (is_permanent_failure(q, rc))
                        break;
                if (response->retry_after_ms > c->longest_pause_ms) /* an earlier retry would be refused */
                        break;
                if (!pause_before_retry(c, response->attempts, response->retry_after_ms, a.end_ns))
                        break;
                if (a.stream_began && (!q->rewind || !q->rewind(q->context)))
                        break;
                a.stream_began = false;
        }
        curl_slist_free_all(headers);
        if (a.write_failed)
                return error_set(err, a.write_failed, "cannot process the response of %s %s: %s", q->method,
                                 shorten_url(url, shown, sizeof shown),
                                 a.write_failed == ST_TOO_BIG ? "it is larger than this request allows"
                                                              : status_name(a.write_failed));
        if (is_client_stopped(c) && (rc || response->code >= 300))
                return error_set(err, ST_BUSY, "%s %s was stopped", q->method, shorten_url(url, shown, sizeof shown));
        return client_convert_result(q->method, url, rc, a.curl_error[0] ? a.curl_error : curl_easy_strerror(rc),
                                     c->ca_setting, response, err);
}
