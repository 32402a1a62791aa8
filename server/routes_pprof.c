/* SPDX-License-Identifier: Apache-2.0 */
/* pprof and folded stacks, at the addresses that Pyroscope's clients use. docs/formats/ingest.md */
#include <string.h>

#include "common/clock.h"
#include "common/options.h"
#include "profile-formats/folded.h"
#include "profile-formats/pprof.h"
#include "profile-formats/profile_merge.h"
#include "profile-formats/wire.h"
#include "server/app_name.h"
#include "server/ingest.h"
#include "server/multipart.h"

/* Unix time in seconds, milliseconds, microseconds or nanoseconds, told apart by its size; now when it is none. */
static int64_t read_time(const char *text)
{
        uint64_t t;

        if (!text || !parse_uint(text, &t) || t == 0 || t > INT64_MAX)
                return wall_clock_ns();
        while (t < 1000000000000000000ull && t <= INT64_MAX / 1000)
                t *= 1000;
        return (int64_t)t;
}

/* These protocols have no answer for "some samples were rejected"; cairn_ingest_rejected_samples_total counts them. */
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
        return error_set(err, ST_UNSUPPORTED, "format '%.40s' is not taken here; send pprof or folded", format);
}

static void ingest(struct http_request *req, void *context)
{
        const char *name = http_query(req, "name");
        struct server *s = context;
        struct profile p;
        struct hash128 id;
        struct error err;
        enum status st;

        if (!name) {
                ingest_fail(req, error_set(&err, ST_USAGE, "the query parameter 'name' is missing"), &err);
                return;
        }
        st = ingest_batch_id(req, &id, &err);
        if (!st)
                st = decode_ingest(req, &p, &err);
        if (st) {
                ingest_fail(req, st, &err);
                return;
        }
        st = app_name_label(name, &p, &err);
        if (!st) {
                profile_default_time(&p, read_time(http_query(req, "from")));
                st = ingest_append(s, &p, id, &err);
        }
        if (!st)
                st = fail_if_all_rejected(&p, &err);
        profile_deinit(&p);
        if (st)
                ingest_fail(req, st, &err);
        else
                http_respond(req, 200, NULL, "", 0);
}

/* ---- POST /push.v1.PusherService/Push ---- */

/* PushRequest { repeated RawProfileSeries series = 1 { labels = 1 { name = 1, value = 2 }, samples = 2 { raw_profile = 1 } } } */
enum { PUSH_SERIES = 1, SERIES_LABEL = 1, SERIES_SAMPLE = 2, LABEL_NAME = 1, LABEL_VALUE = 2, SAMPLE_PROFILE = 1 };

static enum status read_label(struct reader r, char *name, char *value, struct error *err)
{
        struct wire_field f;

        name[0] = value[0] = 0;
        while (wire_next(&r, &f)) {
                char *to = f.number == LABEL_NAME ? name : value;

                if (f.type != WIRE_BYTES || (f.number != LABEL_NAME && f.number != LABEL_VALUE))
                        continue;
                if (f.bytes.size > LIMIT_LABEL_BYTES || memchr(f.bytes.data, 0, f.bytes.size))
                        return error_set(err, ST_BAD_DATA, "a label is longer than %zu bytes or holds NUL", (size_t)LIMIT_LABEL_BYTES);
                memcpy(to, f.bytes.data, f.bytes.size);
                to[f.bytes.size] = 0;
        }
        return r.failed ? reader_error(&r, err, "label") : ST_OK;
}

/* Goes through the labels of a series: those of its samples into p, or only the name into name. */
static enum status walk_labels(struct reader series, struct profile *p, char *type_name, struct error *err)
{
        char name[LIMIT_LABEL_BYTES + 1], value[LIMIT_LABEL_BYTES + 1];
        struct wire_field f;
        enum status st = ST_OK;

        while (!st && wire_next(&series, &f)) {
                if (f.number != SERIES_LABEL || f.type != WIRE_BYTES)
                        continue;
                st = read_label(f.bytes, name, value, err);
                if (!st && !p && strcmp(name, "__name__") == 0)
                        memcpy(type_name, value, strlen(value) + 1);
                if (!st && p && *name && strncmp(name, "__", 2) != 0)
                        st = profile_label_all(p, name, value, err);
        }
        return st ? st : series.failed ? reader_error(&series, err, "series") : ST_OK;
}

/* Decode one pprof file with the labels of its series, and append it to all. */
static enum status add_pushed_profile(struct profile *all, struct reader series, const char *type_name, struct reader raw,
                                      struct error *err)
{
        struct profile p;
        enum status st = pprof_decode(raw.data, raw.size, *type_name ? type_name : NULL, &p, err);

        if (st)
                return st;
        st = walk_labels(series, &p, NULL, err);
        if (!st)
                st = profile_merge(all, &p, err);
        profile_deinit(&p);
        return st;
}

static enum status add_pushed_series(struct profile *all, struct reader series, struct error *err)
{
        char type_name[LIMIT_LABEL_BYTES + 1] = "";
        struct reader r = series;
        struct wire_field f, inner;
        enum status st = walk_labels(series, NULL, type_name, err);

        while (!st && wire_next(&r, &f)) {
                if (f.number != SERIES_SAMPLE || f.type != WIRE_BYTES)
                        continue;
                while (!st && wire_next(&f.bytes, &inner))
                        if (inner.number == SAMPLE_PROFILE && inner.type == WIRE_BYTES)
                                st = add_pushed_profile(all, series, type_name, inner.bytes, err);
                if (!st && f.bytes.failed)
                        st = reader_error(&f.bytes, err, "sample of a series");
        }
        return st ? st : r.failed ? reader_error(&r, err, "series") : ST_OK;
}

/* All profiles of a request are one batch: it is acknowledged, and costs a sync, as a whole. */
static enum status decode_push(struct http_request *req, struct profile *ret, struct error *err)
{
        struct profile all;
        struct wire_field f;
        struct reader r;
        const uint8_t *body;
        size_t n;
        enum status st = profile_init(&all, LIMIT_PROFILE_MEMORY_BYTES, err);

        if (st)
                return st;
        body = http_body(req, &n);
        reader_init(&r, body, n);
        while (!st && wire_next(&r, &f))
                if (f.number == PUSH_SERIES && f.type == WIRE_BYTES)
                        st = add_pushed_series(&all, f.bytes, err);
        if (!st && r.failed)
                st = reader_error(&r, err, "push request");
        if (st)
                profile_deinit(&all);
        else
                *ret = all;
        return st;
}

static void push(struct http_request *req, void *context)
{
        const char *type = http_header(req, "Content-Type");
        struct server *s = context;
        struct profile p;
        struct hash128 id;
        struct error err;
        enum status st;

        if (!type || (strcasecmp(type, "application/proto") != 0 && strcasecmp(type, "application/x-protobuf") != 0)) {
                ingest_fail(req, error_set(&err, ST_UNSUPPORTED, "Content-Type '%.60s' is not taken here; send application/proto",
                                    type ? type : "(none)"), &err);
                return;
        }
        st = ingest_batch_id(req, &id, &err);
        if (!st)
                st = decode_push(req, &p, &err);
        if (st) {
                ingest_fail(req, st, &err);
                return;
        }
        profile_default_time(&p, wall_clock_ns());
        st = ingest_append(s, &p, id, &err);
        if (!st)
                st = fail_if_all_rejected(&p, &err);
        profile_deinit(&p);
        if (st)
                ingest_fail(req, st, &err);
        else
                http_respond(req, 200, NULL, "", 0);
}

static const struct http_route routes[] = {
        { .pool = POOL_INGEST, .method = "POST", .path = "/ingest", .scope = SCOPE_INGEST, .max_body = LIMIT_HTTP_BODY_BYTES, .handle = ingest },
        { .pool = POOL_INGEST, .method = "POST", .path = "/push.v1.PusherService/Push", .scope = SCOPE_INGEST, .max_body = LIMIT_HTTP_BODY_BYTES,
          .handle = push },
};
const struct route_table pprof_routes = ROUTE_TABLE(routes);
