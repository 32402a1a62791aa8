/* SPDX-License-Identifier: Apache-2.0 */
/* Ingest of pprof and folded stacks, at the paths of Pyroscope's clients. docs/formats/ingest.md */
#include <string.h>

#include "common/clock.h"
#include "common/options.h"
#include "profile-formats/folded.h"
#include "profile-formats/pprof.h"
#include "profile-formats/push.h"
#include "server/routes/app_name.h"
#include "server/routes/connect_call.h"
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

static void handle_pprof_push(struct http_request *req, void *context)
{
        enum connect_codec codec;
        struct server *s = context;
        struct profile p;
        struct hash128 id;
        struct error err;
        const uint8_t *body;
        bool is_history;
        size_t n;
        enum status st;

        if (!check_history(req, &is_history))
                return;
        if (!connect_read_codec(req, &codec)) {
                count_ingest_failure(ST_UNSUPPORTED);
                return;
        }
        body = http_body(req, &n);
        st = read_batch_id(req, &id, &err);
        if (!st)
                st = push_decode(body, n, codec == CONNECT_JSON, &p, &err);
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
                connect_respond_empty(req, codec);
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
          .handle = handle_pprof_push,
          .put_error = connect_put_error },
};
const struct route_table pprof_routes = ROUTE_TABLE(routes);
