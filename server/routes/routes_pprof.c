/* SPDX-License-Identifier: Apache-2.0 */
/* Ingest of pprof and folded stacks, at the paths of Pyroscope's clients. docs/formats/ingest.md */
#include <string.h>

#include "common/clock.h"
#include "common/options.h"
#include "profile-formats/folded.h"
#include "profile-formats/pprof.h"
#include "profile-formats/profile_copy.h"
#include "profile-formats/proto/push.pb-c.h"
#include "profile-formats/proto_message.h"
#include "server/routes/app_name.h"
#include "server/routes/ingest.h"
#include "server/routes/multipart.h"

/*
 * Unix time in seconds, milliseconds, microseconds or nanoseconds, distinguished by magnitude; the current time if 0.
 */
static int64_t read_time(const char *text)
{
        uint64_t t;

        if (!text || !parse_uint(text, &t) || t == 0 || t > INT64_MAX)
                return wall_clock_ns();
        while (t < 1000000000000000000ull && t <= INT64_MAX / 1000)
                t *= 1000;
        return (int64_t)t;
}

/* These protocols cannot report rejected samples; cairn_ingest_rejected_samples_total counts them. */
static enum status fail_if_all_rejected(const struct profile *p, struct error *err)
{
        if (p->samples.count || !p->rejected_samples)
                return ST_OK;
        return error_set(err, ST_BAD_DATA, "all %llu samples rejected: %s", (unsigned long long)p->rejected_samples,
                         p->rejected_reason);
}

/* ---- POST /ingest ---- */

static enum status decode_ingest(struct http_request *req, struct profile *ret, struct error *err)
{
        const char *format = http_query(req, "format"), *type = http_header(req, "Content-Type");
        bool multipart = type && strncasecmp(type, "multipart/form-data", 19) == 0;
        const uint8_t *body;
        size_t n;
        enum status st;

        body = http_body(req, &n);
        if (multipart) {
                st = multipart_find(type, body, n, "profile", &body, &n, err);
                if (st)
                        return st == ST_NOT_FOUND ? ST_BAD_DATA : st;
        }
        if (format ? strcmp(format, "pprof") == 0 : multipart)
                return pprof_decode(body, n, NULL, ret, err);
        if (!format || !*format || strcmp(format, "folded") == 0 || strcmp(format, "groups") == 0)
                return folded_decode(body, n, NULL, ret, err);
        return error_set(err, ST_UNSUPPORTED, "format '%.40s' is not supported; send pprof or folded", format);
}

static void handle_pprof_ingest(struct http_request *req, void *context)
{
        const char *name = http_query(req, "name");
        struct server *s = context;
        struct profile p;
        struct hash128 id;
        struct error err;
        bool is_history;
        enum status st;

        if (!check_history(req, &is_history))
                return;
        if (!name) {
                fail_ingest(req, error_set(&err, ST_USAGE, "the query parameter 'name' is missing"), &err);
                return;
        }
        st = read_batch_id(req, &id, &err);
        if (!st)
                st = decode_ingest(req, &p, &err);
        if (st) {
                fail_ingest(req, st, &err);
                return;
        }
        st = parse_app_name(name, &p, &err);
        if (!st) {
                profile_set_missing_times(&p, read_time(http_query(req, "from")));
                st = append_ingested_batch(s, &p, id, is_history, &err);
        }
        if (!st)
                st = fail_if_all_rejected(&p, &err);
        profile_deinit(&p);
        if (st)
                fail_ingest(req, st, &err);
        else
                http_respond(req, 200, NULL, "", 0);
}

/* ---- POST /push.v1.PusherService/Push ---- */

#define LABEL_TEXT_BYTES (LIMIT_LABEL_BYTES + 1)

/* A label's name or value as text. */
static enum status copy_label_text(const ProtobufCBinaryData *from, char *to, struct error *err)
{
        if (from->len > LIMIT_LABEL_BYTES || (from->len && memchr(from->data, 0, from->len)))
                return error_set(err, ST_BAD_DATA, "a label is longer than %zu bytes or holds NUL",
                                 (size_t)LIMIT_LABEL_BYTES);
        if (from->len)
                memcpy(to, from->data, from->len);
        to[from->len] = 0;
        return ST_OK;
}

/* Find the type's name among the labels of a series, and check all of them. */
static enum status read_profile_type_name(const Push__RawProfileSeries *series, char *type_name, struct error *err)
{
        char name[LABEL_TEXT_BYTES], value[LABEL_TEXT_BYTES];
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < series->n_labels; i++) {
                st = copy_label_text(&series->labels[i]->name, name, err);
                if (!st)
                        st = copy_label_text(&series->labels[i]->value, value, err);
                if (!st && strcmp(name, "__name__") == 0)
                        memcpy(type_name, value, strlen(value) + 1);
        }
        return st;
}

static enum status add_series_labels(const Push__RawProfileSeries *series, struct profile *p, struct error *err)
{
        char name[LABEL_TEXT_BYTES], value[LABEL_TEXT_BYTES];
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < series->n_labels; i++) {
                st = copy_label_text(&series->labels[i]->name, name, err);
                if (!st)
                        st = copy_label_text(&series->labels[i]->value, value, err);
                if (!st && *name && strncmp(name, "__", 2) != 0)
                        st = profile_add_label_to_all(p, name, value, err);
        }
        return st;
}

/* Decode one pprof file with the labels of its series, and append it to all. */
static enum status add_pushed_profile(struct profile *all, const Push__RawProfileSeries *series, const char *type_name,
                                      const ProtobufCBinaryData *raw, struct error *err)
{
        struct profile p;
        enum status st = pprof_decode(raw->data, raw->len, *type_name ? type_name : NULL, &p, err);

        if (st)
                return st;
        st = add_series_labels(series, &p, err);
        if (!st)
                st = profile_merge(all, &p, err);
        profile_deinit(&p);
        return st;
}

static enum status add_pushed_series(struct profile *all, const Push__RawProfileSeries *series, struct error *err)
{
        char type_name[LABEL_TEXT_BYTES] = "";
        enum status st = read_profile_type_name(series, type_name, err);

        for (size_t i = 0; !st && i < series->n_samples; i++)
                if (series->samples[i]->raw_profile.len)
                        st = add_pushed_profile(all, series, type_name, &series->samples[i]->raw_profile, err);
        return st;
}

/* All profiles of a request are one batch: acknowledged together, with one sync. */
static enum status decode_push(struct http_request *req, struct profile *ret, struct error *err)
{
        _cleanup_arena_ struct arena memory;
        const Push__PushRequest *request;
        const void *message;
        struct profile all;
        const uint8_t *body;
        size_t n;
        enum status st;

        arena_init_budget(&memory, LIMIT_PROFILE_MEMORY_BYTES, MEMORY_INGEST);
        body = http_body(req, &n);
        st = proto_message_decode(&push__push_request__descriptor, body, n, &memory, "push request", &message, err);
        if (st)
                return st;
        request = message;
        st = profile_init(&all, LIMIT_PROFILE_MEMORY_BYTES, err);
        if (st)
                return st;
        for (size_t i = 0; !st && i < request->n_series; i++)
                st = add_pushed_series(&all, request->series[i], err);
        if (st)
                profile_deinit(&all);
        else
                *ret = all;
        return st;
}

static void handle_pprof_push(struct http_request *req, void *context)
{
        const char *type = http_header(req, "Content-Type");
        struct server *s = context;
        struct profile p;
        struct hash128 id;
        struct error err;
        bool is_history;
        enum status st;

        if (!check_history(req, &is_history))
                return;
        if (!type || (strcasecmp(type, "application/proto") != 0 && strcasecmp(type, "application/x-protobuf") != 0)) {
                fail_ingest(req,
                            error_set(&err, ST_UNSUPPORTED,
                                      "Content-Type '%.60s' is not supported; send application/proto",
                                      type ? type : "(none)"),
                            &err);
                return;
        }
        st = read_batch_id(req, &id, &err);
        if (!st)
                st = decode_push(req, &p, &err);
        if (st) {
                fail_ingest(req, st, &err);
                return;
        }
        profile_set_missing_times(&p, wall_clock_ns());
        st = append_ingested_batch(s, &p, id, is_history, &err);
        if (!st)
                st = fail_if_all_rejected(&p, &err);
        profile_deinit(&p);
        if (st)
                fail_ingest(req, st, &err);
        else
                http_respond(req, 200, NULL, "", 0);
}

static const struct http_route routes[] = {
        { .pool = POOL_INGEST,
          .method = "POST",
          .path = "/ingest",
          .scope = SCOPE_INGEST,
          .max_body = LIMIT_HTTP_BODY_BYTES,
          .handle = handle_pprof_ingest },
        { .pool = POOL_INGEST,
          .method = "POST",
          .path = "/push.v1.PusherService/Push",
          .scope = SCOPE_INGEST,
          .max_body = LIMIT_HTTP_BODY_BYTES,
          .handle = handle_pprof_push },
};
const struct route_table pprof_routes = ROUTE_TABLE(routes);
