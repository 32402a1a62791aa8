/* SPDX-License-Identifier: Apache-2.0 */
/* Shared profiles: POST /api/v1/share, GET /share/ID, GET /share/ID/profile. docs/formats/share.md */
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/files/file.h"
#include "common/json/json_out.h"
#include "common/memory/memory_budget.h"
#include "common/metrics.h"
#include "profile-formats/input/profile_decode.h"
#include "profile-formats/pprof/pprof.h"
#include "query/query.h"
#include "server/core/query_work.h"
#include "server/core/route_tables.h"
#include "server/core/server_internal.h"
#include "server/core/share_store.h"

static struct metric posted = METRIC_COUNTER("cairn_shares_posted_total", "Profiles that were shared by a link.", "");

/* ---- POST /api/v1/share ---- */

/* Every share is stored as pprof that the service encoded: the client's bytes are parsed only here. */
static enum status encode_share(struct http_request *req, struct buf *ret, struct error *err)
{
        const int64_t now = wall_clock_ns();
        const struct profile_decode_options o = { http_query(req, "format"), http_query(req, "type"), now };
        struct profile p;
        size_t n;
        const uint8_t *body = http_body(req, &n);
        enum status st = profile_decode(body, n, &o, &p, NULL, err);

        if (st)
                return st;
        http_free_body(req);
        profile_set_missing_times(&p, now);
        st = profile_check_samples(&p, err);
        if (!st)
                st = pprof_encode(&p, ret, err);
        profile_deinit(&p);
        return st;
}

static void put_share_answer(struct buf *to, const char *path, const char *id, int64_t expires)
{
        struct json_out j;
        struct tm utc;
        time_t at = expires;
        char text[32];

        json_out_init(&j, to);
        json_out_object(&j, NULL);
        json_out_str(&j, "id", id);
        json_out_str(&j, "url", path);
        if (expires && gmtime_r(&at, &utc) && strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc))
                json_out_str(&j, "expires", text);
        json_out_object_end(&j);
        buf_append_str(to, "\n");
}

static void handle_share(struct http_request *req)
{
        _cleanup_buf_ struct buf file, body;
        char id[SHARE_ID_CHARS + 1], path[sizeof "/share/" + SHARE_ID_CHARS];
        struct error err;
        int64_t expires;
        enum status st;

        buf_init(&body, KiB(4));
        buf_init_budget(&file, LIMIT_SHARE_BYTES, MEMORY_INGEST);
        st = encode_share(req, &file, &err);
        if (!st)
                st = share_store_add(get_request_tenant(req)->shares, file.data, file.size, id, &expires, &err);
        if (st == ST_UNSUPPORTED) {
                http_fail_code(req, 403, "disabled", "%s", err.text);
                return;
        }
        if (st) {
                http_fail(req, st, &err);
                return;
        }
        metric_register(&posted);
        metric_add(&posted, 1);
        snprintf(path, sizeof path, "/share/%s", id);
        put_share_answer(&body, path, id, expires);
        http_set_header(req, "Location", path);
        http_respond_buf(req, 201, "application/json", &body);
}

/* ---- reading ---- */

static bool open_share(struct http_request *req, int *fd_ret)
{
        struct error err;

        if (!share_store_get(get_request_tenant(req)->shares, http_path_part(req, "id"), fd_ret, &err))
                return true;
        http_fail(req, ST_NOT_FOUND, &err);
        return false;
}

/* Decodes the profile within the memory limit of a query (--query-memory). */
static enum status load_share(int fd, struct profile *ret, struct error *err)
{
        _cleanup_file_map_ struct file_map map = { 0 };
        struct memory_account account = { .limit = memory_get_query_limit() };
        enum status st = file_map_fd(fd, LIMIT_SHARE_BYTES, "share", &map, err);

        if (st)
                return st;
        memory_set_account(&account);
        st = pprof_decode_for_query(map.data, map.size, ret, err);
        memory_set_account(NULL);
        if (st && account.refused)
                return error_set(err, ST_TOO_BIG,
                                 "the profile needs more memory than the %zu MiB that a query may use (--query-memory)",
                                 account.limit >> 20);
        return st;
}

/* A flame graph is a page unless the request says otherwise. */
static const char *get_share_param(void *context, const char *name)
{
        const char *value = http_query(context, name);

        return !value && strcmp(name, "format") == 0 ? "html" : value;
}

static enum status draw_share(struct http_request *req, int fd, struct query_work *work, struct buf *ret,
                              struct query_answer *answer, struct error *err)
{
        const struct query_input input = {
                .param = get_share_param, .param_context = req, .meter = &work->meter, .report = &work->report
        };
        const struct profile *profiles[1];
        const struct profile_query query = { profiles, 1, "flame", &input };
        struct profile p;
        enum status st = load_share(fd, &p, err);

        if (st)
                return st;
        profiles[0] = &p;
        st = query_run_profiles(&query, ret, answer, err);
        profile_deinit(&p);
        return st;
}

static void handle_share_page(struct http_request *req)
{
        _cleanup_close_ int fd = -1;
        struct query_answer answer;
        struct query_work work;
        struct buf body;
        struct error err;
        enum status st;

        if (!open_share(req, &fd))
                return;
        buf_init_budget(&body, LIMIT_RESPONSE_BYTES, MEMORY_ANSWERS);
        query_work_init(&work, req, "share");
        st = draw_share(req, fd, &work, &body, &answer, &err);
        if (st) {
                buf_deinit(&body);
                query_work_answer_failure(&work, st, &err);
                return;
        }
        query_work_respond(&work, &answer, &body);
}

static void handle_share_profile(struct http_request *req)
{
        int fd;

        if (open_share(req, &fd))
                http_respond_file(req, "application/octet-stream", fd, NULL);
}

static const struct http_route routes[] = {
        { ROUTE("POST", "/api/v1/share", SCOPE_INGEST, TENANCY_OWN), .max_body = LIMIT_SHARE_BYTES,
          .handle = handle_share, .writes = true },
        { ROUTE("GET", "/share/{id}", SCOPE_READ, TENANCY_OWN), .handle = handle_share_page },
        { ROUTE("GET", "/share/{id}/profile", SCOPE_READ, TENANCY_OWN), .handle = handle_share_profile },
};
const struct route_table share_routes = ROUTE_TABLE(ROLE_QUERY, routes);
