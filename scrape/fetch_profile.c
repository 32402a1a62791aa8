/* SPDX-License-Identifier: Apache-2.0 */
#include "scrape/fetch_profile.h"

#include <ctype.h>
#include <string.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "common/text/base64.h"
#include "common/text/utf8.h"
#include "http/http_client.h"
#include "profile-formats/input/content_kind.h"
#include "profile-formats/pprof/pprof.h"
#include "profile-formats/profile_accept.h"
#include "profile-formats/sample_labels.h"
#include "scrape/cpu_turn.h"

/* ---- the Authorization header ---- */

#define SECRET_FILE_BYTES KiB(16)

/* The value, or the content of the file; *ret is owned, NULL when neither is configured. */
static enum status get_secret(const char *value, const char *path, char **ret, struct error *err)
{
        if (path)
                return file_read_first_line(path, SECRET_FILE_BYTES, ret, err);
        *ret = value ? strdup(value) : NULL;
        return *ret || !value ? ST_OK : error_no_memory(err);
}

/* The header, NUL-terminated; empty without credentials. */
static enum status put_authorization(const struct scrape_http *h, struct buf *to, struct error *err)
{
        _cleanup_free_ char *secret = NULL, *pair = NULL;
        enum status st;

        if (h->username) {
                st = get_secret(h->password, h->password_file, &secret, err);
                if (st)
                        return st;
                if (asprintf(&pair, "%s:%s", h->username, secret ? secret : "") < 0) {
                        pair = NULL;
                        return error_no_memory(err);
                }
                buf_append_str(to, "Authorization: Basic ");
                base64_encode_append(to, (const uint8_t *)pair, strlen(pair));
        } else {
                st = get_secret(h->credentials, h->credentials_file, &secret, err);
                if (st)
                        return st;
                if (secret)
                        buf_printf(to, "Authorization: %s %s", h->auth_type ? h->auth_type : "Bearer", secret);
        }
        buf_cstr(to);
        return buf_status(to, err, "credentials");
}

/* ---- the request ---- */

static enum status take_body(void *context, const void *data, size_t n)
{
        return buf_append(context, data, n);
}

/* The first line of an error's body, for the message. */
static const char *describe_error_body(const struct http_client_response *r, char *out, size_t size)
{
        size_t n = 0;

        if (strncmp(r->content_type, "text/plain", 10) != 0)
                n = size; /* an HTML page is not useful in a message */
        for (size_t i = 0; n < size - 1 && i < r->body.size && r->body.data[i] != '\n'; i++)
                out[n++] = (char)r->body.data[i];
        out[n < size ? n : 0] = 0;
        return out;
}

static enum status report_answer(const struct http_client_response *r, struct error *err)
{
        char text[120];

        describe_error_body(r, text, sizeof text);
        if (r->code < 400)
                return error_set(err, ST_BAD_DATA,
                                 "HTTP %u: redirected; configure the final address, or follow_redirects: true",
                                 r->code);
        return error_set(err, ST_BAD_DATA, "HTTP %u%s%s", r->code, *text ? ": " : "", PRINTABLE(text));
}

/* A request and its response. */
struct fetch {
        const struct scrape_target *target;
        const struct scrape_profile *profile;
        const atomic_bool *stop;
        uint64_t seconds, timeout_ms;
        char *url;
        struct buf authorization, body;
        struct http_client_response response;
};

static void deinit_fetch(struct fetch *f)
{
        free(f->url);
        buf_deinit(&f->authorization);
        buf_deinit(&f->body);
        http_client_response_deinit(&f->response);
}

/* Classify a failed request; the client's message, which is about services, is replaced by one about the target. */
static enum fetch_failure classify_fetch_failure(const struct fetch *f, struct error *err)
{
        if (f->response.code >= 300) {
                report_answer(&f->response, err);
                return FETCH_HTTP_STATUS;
        }
        if (f->body.failed == ST_TOO_BIG) {
                error_set(err, ST_TOO_BIG, "the body has more than %zu bytes (body_size_limit)", f->body.max);
                return FETCH_TOO_BIG;
        }
        if (f->body.failed) {
                error_set(err, f->body.failed, "no memory for the body; see --memory and --concurrency");
                return FETCH_BUSY;
        }
        if (f->response.timed_out) {
                error_set(err, ST_TIMEOUT, "no complete response within %.1f s (scrape_timeout%s)",
                          (double)f->timeout_ms / 1000, f->seconds ? " plus the profile's seconds" : "");
                return FETCH_TIMEOUT;
        }
        if (f->response.cause[0])
                error_set(err, ST_BUSY, "%s", f->response.cause);
        return FETCH_UNREACHABLE;
}

static enum status send_fetch(struct fetch *f, struct http_client **client, struct error *err)
{
        const struct scrape_http *h = &f->target->job->http;
        const char *authorization = f->authorization.size ? buf_cstr(&f->authorization) : NULL;
        const char *const headers[] = { "Accept: application/octet-stream, */*", "Accept-Encoding: identity",
                                        authorization, NULL };
        const struct http_client_options options = { .size = sizeof options,
                                                     .base_url = f->target->base_url,
                                                     .ca_file = h->ca_file,
                                                     .cert_file = h->cert_file,
                                                     .key_file = h->key_file,
                                                     .user_agent = "cairn-scrape/" CAIRN_VERSION,
                                                     .connect_timeout_ms = f->target->job->timeout_ms,
                                                     .request_timeout_ms = f->timeout_ms,
                                                     .idle_timeout_s = f->timeout_ms / 1000 + 1,
                                                     .attempts = 1,
                                                     .stop = f->stop };
        const struct http_client_request request = { .method = "GET",
                                                     .path = f->url,
                                                     .headers = headers,
                                                     .max_response = LIMIT_SCRAPE_ERROR_BYTES,
                                                     .write = take_body,
                                                     .write_context = &f->body,
                                                     .no_redirects = !h->follow_redirects };
        enum status st = http_client_create(&options, client, err);

        return st ? st : http_client_send(*client, &request, &f->response, err);
}

static enum status run_fetch(struct fetch *f, enum fetch_failure *failure_ret, struct error *err)
{
        _cleanup_http_client_ struct http_client *client = NULL;
        enum status st = put_authorization(&f->target->job->http, &f->authorization, err);

        if (!st)
                st = send_fetch(f, &client, err);
        if (st && !client) { /* the request was not sent */
                *failure_ret = FETCH_CONFIG;
                return st;
        }
        if (st) {
                *failure_ret = classify_fetch_failure(f, err);
                return err->code;
        }
        if (!f->body.size) {
                *failure_ret = FETCH_BAD_PROFILE;
                return error_set(err, ST_BAD_DATA, "the response is empty");
        }
        return ST_OK;
}

/* ---- the profile ---- */

static enum status decode_fetched_body(const struct fetch *f, struct profile *ret, struct error *err)
{
        struct pprof_files files = { .unpacked_left = LIMIT_HTTP_BODY_BYTES };
        enum status st;

        cpu_turn_begin();
        st = pprof_decode_one_of(f->body.data, f->body.size, f->profile->name, &files, ret, err);
        cpu_turn_end();
        return st;
}

static enum fetch_failure classify_decode_failure(enum status st)
{
        if (st == ST_TOO_BIG)
                return FETCH_TOO_BIG;
        return st == ST_BUSY || st == ST_NO_MEMORY ? FETCH_BUSY : FETCH_BAD_PROFILE;
}

static enum status read_fetched_profile(const struct fetch *f, struct profile *ret, struct error *err)
{
        char type[40];
        enum status st = decode_fetched_body(f, ret, err);

        if (st) {
                snprintf(type, sizeof type, "%.*s", (int)strcspn(f->response.content_type, ";"),
                         f->response.content_type);
                if (st != ST_BAD_DATA)
                        return st;
                if (*f->response.content_encoding)
                        return error_set(
                                err, st,
                                "not a profile: the target sends Content-Encoding '%.40s', which was not asked "
                                "for; turn compression off for %.80s at the target or its proxy",
                                PRINTABLE(f->response.content_encoding), PRINTABLE(f->profile->path));
                content_refuse(f->body.data, f->body.size, err);
                return error_prefix(err, st, "not a profile: content type %s", *type ? PRINTABLE(type) : "missing");
        }
        st = profile_apply_target_labels(ret, &f->target->labels, err);
        if (!st)
                st = profile_check_labels(ret, err);
        if (st)
                profile_deinit(ret);
        return st;
}

enum status fetch_profile(const struct scrape_target *t, const struct scrape_profile *p, const atomic_bool *stop,
                          struct fetched_profile *ret, enum fetch_failure *failure_ret, struct error *err)
{
        struct fetch f = { .target = t, .profile = p, .stop = stop, .seconds = scrape_profile_seconds(t->job, p) };
        struct fetched_profile fetched = { 0 };
        enum status st;

        f.timeout_ms = t->job->timeout_ms + f.seconds * 1000;
        f.url = scrape_target_url(t, p);
        buf_init(&f.authorization, KiB(64));
        buf_init_budget(&f.body, t->job->http.body_max_bytes, MEMORY_INGEST);
        if (!f.url) {
                deinit_fetch(&f);
                *failure_ret = FETCH_BUSY;
                return error_no_memory(err);
        }
        st = run_fetch(&f, failure_ret, err);
        if (!st) {
                fetched.body_bytes = f.body.size;
                st = read_fetched_profile(&f, &fetched.profile, err);
                if (st)
                        *failure_ret = classify_decode_failure(st);
        }
        deinit_fetch(&f);
        if (!st)
                *ret = fetched;
        return st;
}

/* ---- labels ---- */

/* Whether two names share a column of the tables, where characters other than letters and digits become '_'. */
static bool is_same_column(const char *a, const char *b)
{
        while (*a && *b) {
                char x = isalnum((unsigned char)*a) ? *a : '_', y = isalnum((unsigned char)*b) ? *b : '_';

                if (x != y)
                        return false;
                a++, b++;
        }
        return *a == *b;
}

static bool has_target_label(const struct label_set *labels, const char *name)
{
        for (size_t i = 0; i < labels->count; i++)
                if (is_same_column(labels->items[i].name, name))
                        return true;
        return false;
}

/* The labels of the sample that do not conflict with the target's, then the target's. */
static enum status combine_labels(struct profile *p, const struct profile_sample *s, const struct label_set *labels,
                                  struct sample_labels *ret, struct error *err)
{
        enum status st = ST_OK;

        ret->count = 0;
        for (uint32_t i = 0; i < s->label_count; i++) {
                struct profile_label l = p->labels.items[s->first_label + i];

                if (!has_target_label(labels, profile_text(p, l.key)))
                        ret->items[ret->count++] = l;
        }
        for (size_t i = 0; !st && i < labels->count; i++)
                st = sample_labels_set_text(ret, p, labels->items[i].name, labels->items[i].value,
                                            strlen(labels->items[i].value), err);
        return st;
}

enum status profile_apply_target_labels(struct profile *p, const struct label_set *labels, struct error *err)
{
        struct profile_sample before = { .first_label = PROFILE_NONE }; /* samples often share their labels */
        const struct profile_sample *last = NULL;
        struct sample_labels l;
        enum status st = ST_OK;

        for (uint32_t i = 0; !st && i < p->samples.count; i++) {
                struct profile_sample *s = &p->samples.items[i];

                if (last && s->first_label == before.first_label && s->label_count == before.label_count) {
                        s->first_label = last->first_label;
                        s->label_count = last->label_count;
                        continue;
                }
                before = *s;
                last = s;
                st = combine_labels(p, s, labels, &l, err);
                if (!st)
                        st = profile_add_label_set(p, l.items, l.count, &s->first_label, err);
                s->label_count = l.count;
        }
        return st;
}
