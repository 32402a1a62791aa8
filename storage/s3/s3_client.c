/* SPDX-License-Identifier: Apache-2.0 */
/*
 * send_request() near the end: keys, signature, request, and once more when the store says that the clock, the keys or
 * a checksum are at fault. The HTTP client below repeats what a network does.
 *
 * In the file: creating; connections; headers and bodies of answers; sending.
 *
 * Locks: lock protects the list of idle connections, of which S3_IDLE_CONNECTIONS_MAX are kept. The difference of the
 * clocks is atomic, and so is whether bodies have an MD5.
 */
#include "storage/s3/s3_client.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/limits.h"
#include "common/memory/memory_budget.h"
#include "common/metrics.h"
#include "common/text.h"
#include "http/http_client.h"
#include "storage/s3/s3_content.h"
#include "storage/s3/s3_location.h"
#include "storage/s3/s3_refusals.h"
#include "storage/s3/s3_xml.h"

#define CONNECT_MS 3000
#define CONNECT_TIMEOUTS 2    /* a store that drops packets is away after two of them: a user waits for a query */
#define UNACKED_MS CONNECT_MS /* the same for a connection that was kept */
#define IDLE_S 20
#define ATTEMPTS 5
#define FIRST_PAUSE_MS 100
#define LONGEST_PAUSE_MS 5000
#define DEADLINE_MS 40000
#define SLOW_DEADLINE_MS 600000
#define LEAST_BYTES_PER_S KiB(128) /* of what is sent or received, in addition to that */
#define UNKNOWN_BYTES MiB(4)       /* of an object that is read as a whole */
#define CLOCK_NOISE_MS 2000        /* the Date of an answer has seconds, and an answer takes time */

struct connection {
        SLIST_ENTRY(connection) next;
        struct http_client *http;
};

struct s3_client {
        struct s3_location location;
        struct s3_credential_source *credentials;
        const atomic_bool *stop;
        atomic_int_fast64_t ahead_ms; /* of the store's clock */
        atomic_bool sends_md5;        /* the bucket demands it */
        pthread_mutex_t lock;
        SLIST_HEAD(, connection) idle;
        size_t idle_count;
};

#define REQUESTS(method)                                                                                               \
        METRIC_COUNTER("cairn_object_store_requests_total", "Requests to the object store, without repeated ones.",    \
                       "method=\"" method "\"")
static const char *const methods[] = { "GET", "HEAD", "PUT", "POST", "DELETE" };
static struct metric requests[] = { REQUESTS("GET"), REQUESTS("HEAD"), REQUESTS("PUT"), REQUESTS("POST"),
                                    REQUESTS("DELETE") };
static struct metric failures = METRIC_COUNTER("cairn_object_store_failures_total",
                                               "Requests to the object store without an answer, or with a 5xx.", "");
static struct metric received = METRIC_COUNTER("cairn_object_store_received_bytes_total",
                                               "Bytes of objects and lists received from the object store.", "");

void s3_register_metrics(void)
{
        for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
                metric_register(&requests[i]);
        metric_register(&failures);
        metric_register(&received);
}

static void count_request(const struct s3_request *q, const struct s3_response *r, enum status st)
{
        const uint64_t bytes = !st && strcmp(q->method, "GET") == 0 ? r->length : 0;
        struct memory_account *account = memory_get_account();

        for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
                metric_add(&requests[i], strcmp(q->method, methods[i]) == 0);
        metric_add(&failures, st == ST_OS);
        metric_add(&received, (int64_t)bytes);
        if (account) {
                atomic_fetch_add(&account->store_requests, 1);
                atomic_fetch_add(&account->store_bytes, bytes);
        }
}

/* ---- creating ---- */

enum status s3_client_create(const char *url, const atomic_bool *stop, struct s3_client **ret, struct error *err)
{
        struct s3_client *c = calloc(1, sizeof *c);
        enum status st;

        if (!c)
                return error_no_memory(err);
        c->stop = stop;
        pthread_mutex_init(&c->lock, NULL);
        SLIST_INIT(&c->idle);
        st = s3_location_parse(url, &c->location, err);
        if (!st)
                st = s3_credential_source_create(c->location.region, &c->credentials, err);
        if (st)
                s3_client_destroy(c);
        else
                *ret = c;
        return st;
}

static void destroy_connection(struct connection *n)
{
        http_client_destroy(n->http);
        free(n);
}

void s3_client_destroy(struct s3_client *c)
{
        struct connection *n;

        if (!c)
                return;
        while ((n = SLIST_FIRST(&c->idle))) {
                SLIST_REMOVE_HEAD(&c->idle, next);
                destroy_connection(n);
        }
        s3_credential_source_destroy(c->credentials);
        s3_location_deinit(&c->location);
        pthread_mutex_destroy(&c->lock);
        free(c);
}

const struct s3_location *s3_client_location(const struct s3_client *c)
{
        return &c->location;
}

const char *s3_client_prefix(const struct s3_client *c)
{
        return c->location.prefix;
}

int64_t s3_client_now_ms(const struct s3_client *c)
{
        return wall_clock_ns() / 1000000 + (int64_t)atomic_load(&c->ahead_ms);
}

/* ---- connections ---- */

static enum status take_connection(struct s3_client *c, struct connection **ret, struct error *err)
{
        const struct http_client_options options = { .size = sizeof options,
                                                     .base_url = c->location.base_url,
                                                     .ca_file = c->location.ca_file,
                                                     .ca_setting = "AWS_CA_BUNDLE=FILE",
                                                     .connect_timeout_ms = CONNECT_MS,
                                                     .connect_timeouts = CONNECT_TIMEOUTS,
                                                     .unacked_timeout_ms = UNACKED_MS,
                                                     .idle_timeout_s = IDLE_S,
                                                     .attempts = ATTEMPTS,
                                                     .first_pause_ms = FIRST_PAUSE_MS,
                                                     .longest_pause_ms = LONGEST_PAUSE_MS,
                                                     .stop = c->stop };
        struct connection *n;
        enum status st;

        pthread_mutex_lock(&c->lock);
        n = SLIST_FIRST(&c->idle);
        if (n) {
                SLIST_REMOVE_HEAD(&c->idle, next);
                c->idle_count--;
        }
        pthread_mutex_unlock(&c->lock);
        if (!n) {
                n = calloc(1, sizeof *n);
                st = n ? http_client_create(&options, &n->http, err) : error_no_memory(err);
                if (st) {
                        free(n);
                        return st;
                }
        }
        *ret = n;
        return ST_OK;
}

static void give_connection_back(struct s3_client *c, struct connection *n)
{
        bool is_kept;

        pthread_mutex_lock(&c->lock);
        is_kept = c->idle_count < S3_IDLE_CONNECTIONS_MAX;
        if (is_kept) {
                SLIST_INSERT_HEAD(&c->idle, n, next);
                c->idle_count++;
        }
        pthread_mutex_unlock(&c->lock);
        if (!is_kept)
                destroy_connection(n);
}

/* ---- headers of answers ---- */

struct answer {
        const struct s3_request *request;
        struct s3_response *response;
        const struct buf *body; /* without request->write */
        int64_t date_ms;
        struct file_range range; /* of Content-Range; size 0: none */
        uint64_t received;
        bool ignores_range;
};

static int64_t parse_http_date(const char *text)
{
        struct tm utc = { 0 };
        const char *rest = strptime(text, "%a, %d %b %Y %H:%M:%S", &utc);

        return rest ? timegm(&utc) * 1000 : -1;
}

static void copy_etag(const char *text, char ret[static STORAGE_ETAG_BYTES])
{
        size_t n = strlen(text);

        if (n >= 2 && text[0] == '"' && text[n - 1] == '"') {
                text++;
                n -= 2;
        }
        snprintf(ret, STORAGE_ETAG_BYTES, "%.*s", n < STORAGE_ETAG_BYTES ? (int)n : 0, text);
}

/* "bytes FIRST-LAST/SIZE" */
static void note_content_range(struct answer *a, const char *text)
{
        unsigned long long first, last, size;

        if (strncmp(text, "bytes ", 6) != 0)
                return;
        first = strtoull(text + 6, (char **)&text, 10);
        if (*text != '-')
                return;
        last = strtoull(text + 1, (char **)&text, 10);
        if (*text != '/' || last < first)
                return;
        size = strtoull(text + 1, NULL, 10);
        a->range = (struct file_range){ first, last - first + 1 };
        a->response->size = size;
}

static void note_answer_header(void *context, const char *name, size_t name_size, const char *value, size_t value_size)
{
        struct answer *a = context;
        struct s3_response *r = a->response;
        char header[64], text[128];

        if (!name_size) {
                *r = (struct s3_response){ .body = r->body };
                a->range = (struct file_range){ 0 };
                a->received = 0;
                a->ignores_range = false;
                if (a->request->restart)
                        a->request->restart(a->request->write_context);
        }
        if (name_size >= sizeof header || value_size >= sizeof text)
                return;
        snprintf(header, sizeof header, "%.*s", (int)name_size, name);
        snprintf(text, sizeof text, "%.*s", (int)value_size, value);
        if (strcasecmp(header, "date") == 0)
                a->date_ms = parse_http_date(text);
        else if (strcasecmp(header, "last-modified") == 0)
                r->modified_ms = parse_http_date(text);
        else if (strcasecmp(header, "etag") == 0)
                copy_etag(text, r->etag);
        else if (strcasecmp(header, "content-length") == 0)
                r->length = strtoull(text, NULL, 10);
        else if (strcasecmp(header, "content-range") == 0)
                note_content_range(a, text);
        else if (strcasecmp(header, "x-amz-meta-cairn-upload") == 0)
                snprintf(r->upload, sizeof r->upload, "%.*s", (int)sizeof r->upload - 1, text);
        else if (strcasecmp(header, "x-amz-bucket-region") == 0)
                snprintf(r->region, sizeof r->region, "%.*s", (int)sizeof r->region - 1, text);
}

/* ---- bodies of answers ---- */

/* The range that the answer has: without Content-Range, all of the object. */
static struct file_range get_answered_range(const struct answer *a)
{
        return a->range.size ? a->range : (struct file_range){ 0, a->response->length };
}

static bool has_wanted_range(const struct answer *a)
{
        const struct file_range got = get_answered_range(a), *wanted = &a->request->wanted;
        const uint64_t size = a->range.size ? a->response->size : a->response->length;

        if (!wanted->size)
                return !a->range.size;
        if (a->request->wants_end)
                return got.offset + got.size == size && got.size == (size < wanted->size ? size : wanted->size);
        return got.offset == wanted->offset && got.size == wanted->size;
}

static enum status write_answer(void *context, const void *data, size_t n)
{
        struct answer *a = context;

        a->ignores_range = a->request->wanted.size && !a->range.size && a->response->length > a->request->wanted.size;
        if (!has_wanted_range(a) || n > get_answered_range(a).size - a->received)
                return ST_BUSY;
        a->received += n;
        return a->request->write(a->request->write_context, data, n);
}

static enum status accept_element(void *context, const char *parent, const char *name, const char *text,
                                  struct error *err)
{
        (void)context, (void)parent, (void)name, (void)text, (void)err;
        return ST_OK;
}

static bool is_whole_answer(void *context)
{
        const struct answer *a = context;

        if (a->request->write)
                return has_wanted_range(a) && a->received == get_answered_range(a).size;
        return !a->request->wants_xml ||
               s3_xml_parse(a->body->data, a->body->size, accept_element, NULL, NULL) != ST_BAD_DATA;
}

static void note_store_clock(struct s3_client *c, int64_t date_ms)
{
        int64_t ahead = date_ms - wall_clock_ns() / 1000000;
        int64_t noted = (int64_t)atomic_load(&c->ahead_ms);

        if (date_ms > 0 && llabs(ahead - noted) > CLOCK_NOISE_MS)
                atomic_store(&c->ahead_ms, llabs(ahead) > CLOCK_NOISE_MS ? ahead : 0);
}

/* ---- sending ---- */

void s3_response_deinit(struct s3_response *r)
{
        buf_deinit(&r->body);
        *r = (struct s3_response){ 0 };
}

static enum status make_request_path(const struct s3_client *c, const char *key, struct buf *ret, struct error *err)
{
        buf_init(ret, LIMIT_S3_REQUEST_TEXT_BYTES);
        buf_append_str(ret, c->location.bucket_path);
        buf_append_str(ret, "/");
        if (key && *c->location.prefix) {
                buf_append_url_encoded(ret, c->location.prefix, "/");
                buf_append_str(ret, "/");
        }
        if (key)
                buf_append_url_encoded(ret, key, "/");
        return buf_cstr(ret) ? ST_OK : buf_status(ret, err, "the key of an object");
}

static uint64_t get_deadline_ms(const struct s3_request *q)
{
        const bool is_read = q->write && !q->wanted.size;
        const uint64_t bytes = q->body_size + q->range.size + (is_read ? UNKNOWN_BYTES : q->wanted.size);

        return (q->may_take_minutes ? SLOW_DEADLINE_MS : DEADLINE_MS) + bytes * 1000 / LEAST_BYTES_PER_S;
}

static enum status send_signed_request(struct s3_client *c, const struct s3_request *q, const char *path,
                                       const struct s3_content *content, struct s3_file_body *file, uint64_t *keys_ret,
                                       struct s3_response *ret, struct error *err)
{
        _cleanup_s3_credentials_ struct s3_credentials credentials = { 0 };
        _cleanup_s3_signed_headers_ struct s3_signed_headers headers = { 0 };
        _cleanup_http_client_response_ struct http_client_response response = { 0 };
        struct s3_signing signing = { .method = q->method,
                                      .host = c->location.host,
                                      .path = path,
                                      .query = q->query ? q->query : "",
                                      .header_count = q->header_count,
                                      .content_sha256 = content->sha256,
                                      .region = c->location.region,
                                      .time = (time_t)(s3_client_now_ms(c) / 1000) };
        struct answer a = { .request = q, .response = ret, .body = &response.body };
        struct http_client_request request = { .method = q->method,
                                               .body = q->body,
                                               .body_size = q->body_size,
                                               .max_response = q->max_response,
                                               .write = q->write ? write_answer : NULL,
                                               .write_context = &a,
                                               .header = note_answer_header,
                                               .check = is_whole_answer,
                                               .header_context = &a,
                                               .deadline_ms = get_deadline_ms(q),
                                               .retries_500 = true,
                                               .repeatable = true,
                                               .no_redirects = true };
        _cleanup_free_ char *target = NULL;
        struct connection *connection;
        enum status st = s3_get_credentials(c->credentials, &credentials, err);

        memcpy(signing.headers, q->headers, sizeof signing.headers);
        if (*content->md5)
                signing.headers[signing.header_count++] = (struct s3_header){ "content-md5", content->md5 };
        *keys_ret = credentials.number;
        if (!st)
                st = s3_sign(&signing, &credentials, &headers, err);
        if (!st && asprintf(&target, "%s%s%s", path, *signing.query ? "?" : "", signing.query) < 0) {
                target = NULL;
                st = error_no_memory(err);
        }
        if (!st)
                st = take_connection(c, &connection, err);
        if (st)
                return st;
        request.path = target;
        request.headers = (const char *const *)headers.lines;
        if (file->range.size) {
                request.read = s3_file_body_read;
                request.rewind = s3_file_body_rewind;
                request.context = file;
                request.stream_size = file->range.size;
        }
        st = http_client_send(connection->http, &request, &response, err);
        give_connection_back(c, connection);
        ret->code = response.code;
        ret->ignores_range = a.ignores_range;
        if (!ret->size)
                ret->size = ret->length;
        note_store_clock(c, a.date_ms);
        ret->body = response.body;
        response.body = (struct buf){ 0 };
        return st;
}

/*
 * Keys that were replaced, also in a file that was read while it was written. An answer to HEAD has no code: the next
 * other request notices.
 */
static bool are_keys_outdated(const struct s3_response *r)
{
        return strcmp(r->error, "ExpiredToken") == 0 || strcmp(r->error, "InvalidAccessKeyId") == 0 ||
               strcmp(r->error, "SignatureDoesNotMatch") == 0;
}

/*
 * Errors that a request may get over at once: what was learned from the answer is in effect now.
 * @param keys  number of those that signed the request
 */
static bool can_send_again(struct s3_client *c, const struct s3_response *r, uint64_t keys, bool had_md5)
{
        if (s3_refusal_demands_md5(r)) {
                atomic_store(&c->sends_md5, true);
                return !had_md5;
        }
        return are_keys_outdated(r) ? s3_doubt_credentials(c->credentials, keys)
                                    : strcmp(r->error, "RequestTimeTooSkewed") == 0;
}

static void find_error(struct s3_response *r)
{
        if (r->code < 300 || !r->body.size)
                return;
        if (s3_xml_find(r->body.data, r->body.size, "Code", r->error, sizeof r->error, NULL))
                r->error[0] = 0;
        if (s3_xml_find(r->body.data, r->body.size, "Message", r->message, sizeof r->message, NULL))
                r->message[0] = 0;
}

static enum status send_request(struct s3_client *c, const struct s3_request *q, struct s3_response *ret,
                                struct error *err)
{
        struct s3_file_body file = { .fd = q->fd, .range = q->range };
        struct s3_content content;
        _cleanup_buf_ struct buf path;
        uint64_t keys;
        enum status st = make_request_path(c, q->key, &path, err);

        *ret = (struct s3_response){ 0 };
        for (unsigned attempt = 0; !st; attempt++) {
                const bool has_md5 = strcmp(q->method, "PUT") == 0 && atomic_load(&c->sends_md5);

                st = q->range.size ? s3_hash_file_body(&file, has_md5, &content, err)
                                   : s3_hash_content(q->body, q->body_size, has_md5, &content, err);
                if (st)
                        return st;
                st = send_signed_request(c, q, buf_cstr(&path), &content, &file, &keys, ret, err);
                if (!st)
                        return ST_OK;
                find_error(ret);
                if (attempt || !can_send_again(c, ret, keys, has_md5))
                        return s3_explain_refusal(&c->location, q, st, ret, err);
                s3_file_body_rewind(&file);
                s3_response_deinit(ret);
                st = ST_OK;
        }
        return st;
}

enum status s3_send(struct s3_client *c, const struct s3_request *q, struct s3_response *ret, struct error *err)
{
        enum status st = send_request(c, q, ret, err);

        count_request(q, ret, st);
        return st;
}
