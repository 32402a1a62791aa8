/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Source files of the debuginfod web API, from source bundles, scanned packages and trees, or upstreams. A scanned file
 * is served only if debuginfo, scanned or stored, refers to it.
 * Source: elfutils, debuginfod(8); RFC 3986, 5.2.4.
 */
#include <stdlib.h>
#include <string.h>

#include "common/files/file.h"
#include "common/hash/sha256.h"
#include "common/metrics.h"
#include "debuginfo-store/stored_source.h"
#include "server/api/debuginfo/artifact.h"
#include "server/api/debuginfo/debuginfod_answer.h"
#include "server/api/debuginfo/source_text.h"
#include "server/core/route_tables.h"
#include "server/protocol/respond.h"

static struct metric found =
        METRIC_COUNTER("cairn_source_requests_total", "Requests for a source file.", "outcome=\"found\"");
static struct metric missing =
        METRIC_COUNTER("cairn_source_requests_total", "Requests for a source file.", "outcome=\"missing\"");

static ssize_t read_bundled_source(void *source, void *to, size_t n, uint64_t offset)
{
        struct error err;
        ssize_t got = stored_source_pread(source, to, n, offset, &err);

        if (got < 0)
                log_error("source", "%s", err.text);
        return got;
}

static void free_bundled_source(void *source)
{
        stored_source_close(source);
        free(source);
}

static enum status open_bundled_source(struct debuginfo_space *s, const struct build_id *id, const char *path,
                                       struct stored_source *ret, struct error *err)
{
        enum status st = s->objects ? stored_source_open(s->objects, id, path, ret, err) : ST_NOT_FOUND;

        if (!st)
                record_object_use(s, id, OBJECT_SOURCE);
        return st;
}

/* Takes the artifact. */
static void send_source(struct http_request *req, struct artifact *a)
{
        if (!check_max_size(req, a->size_bytes)) {
                artifact_close(a);
                return;
        }
        metric_add(&found, 1);
        artifact_send(req, a, 0, a->size_bytes, NULL);
}

/* ---- scanned trees ---- */

struct stored_debuginfo {
        struct debuginfo_space *s;
        const struct build_id *id;
};

static enum status unpack_debuginfo(void *context, int *fd_ret, struct error *err)
{
        const struct stored_debuginfo *d = context;

        record_object_use(d->s, d->id, OBJECT_DEBUGINFO);
        return debuginfo_store_unpack(d->s->objects, d->id, OBJECT_DEBUGINFO, fd_ret, err);
}

static enum status open_scanned_source(struct debuginfo_space *s, const struct build_id *id, const char *path,
                                       const atomic_bool *cancel, struct package_opened *ret, struct error *err)
{
        struct stored_debuginfo context = { s, id };
        char identity[SHA256_HEX_MAX];
        const struct package_debuginfo other = { .identity = identity, .open = unpack_debuginfo, .context = &context };
        struct stored_object stored;
        bool is_stored;

        if (!s->scan_demand.scan)
                return ST_NOT_FOUND;
        is_stored = s->objects && !debuginfo_store_find(s->objects, id, OBJECT_DEBUGINFO, &stored, NULL);
        if (is_stored)
                sha256_hex(stored.sha256, identity);
        return package_scan_open_source(s->scan_demand.scan, id, path, is_stored ? &other : NULL, cancel, ret, err);
}

/* Respond with a file of a scanned package or tree. */
static enum status respond_scanned(struct debuginfo_space *s, struct http_request *req, const struct build_id *id,
                                   struct error *err)
{
        _cleanup_free_ char *path = NULL;
        struct artifact a = { .reader = NULL };
        struct package_opened o;
        enum status st;

        if (asprintf(&path, "/%s", http_path_part(req, "path")) < 0) {
                path = NULL;
                return error_no_memory(err);
        }
        st = open_scanned_source(s, id, path, http_request_cancelled(req), &o, err);
        if (st)
                return st;
        a.fd = o.fd;
        a.size_bytes = o.size_bytes;
        snprintf(a.name, sizeof a.name, "%s", o.name);
        snprintf(a.archive, sizeof a.archive, "%s", o.archive);
        send_source(req, &a);
        return ST_OK;
}

static enum status respond_fetched(struct debuginfo_space *s, struct http_request *req, const struct build_id *id,
                                   struct error *err)
{
        const struct artifact_query q = { .space = s, .req = req, .id = *id };
        struct artifact a;
        enum status st = artifact_fetch_source(&q, http_path_part(req, "path"), &a, err);

        if (st)
                return st;
        send_source(req, &a);
        return ST_OK;
}

/* ---- for queries ---- */

#define QUERY_FETCHES_MAX 8 /* source files that one query requests from upstreams */
#define QUERY_FETCH_WAIT_NS (INT64_C(30) * 1000000000)

struct federation_client query_fetches_make_client(const struct query_fetches *f)
{
        const struct deadline *d = http_request_deadline(f->req);
        int64_t until_ns = monotonic_ns() + QUERY_FETCH_WAIT_NS;

        return (struct federation_client){ .cancel = http_request_cancelled(f->req),
                                           .until_ns = d && d->expires_ns < until_ns ? d->expires_ns : until_ns };
}

static enum status append_bundled_text(struct debuginfo_space *s, const struct build_id *id, const char *path,
                                       struct buf *ret, struct error *err)
{
        enum status st = s->objects ? stored_source_append(s->objects, id, path, ret, err) : ST_NOT_FOUND;

        if (!st)
                record_object_use(s, id, OBJECT_SOURCE);
        return st;
}

static enum status append_upstream_text(struct query_fetches *f, const struct build_id *id, const char *path,
                                        struct buf *ret, struct error *err)
{
        const struct federation_client client = query_fetches_make_client(f);
        _cleanup_buf_ struct buf part;
        int fd = -1;
        enum status st;

        buf_init(&part, 4 * LIMIT_PATH_BYTES);
        st = source_part_put_name(path, &part, err);
        if (st)
                return st;
        if (f->count++ >= QUERY_FETCHES_MAX)
                return error_set(err, ST_BUSY, "one query may request at most %d source files from upstreams",
                                 QUERY_FETCHES_MAX);
        st = http_begin_wait(err);
        if (st)
                return st;
        st = federation_fetch_part(f->space->federation, id, (const char *)part.data, &client, &fd, err);
        http_end_wait();
        return st ? st : source_file_append(fd, path, ret, err);
}

static enum status explain_missing_source(struct debuginfo_space *s, const struct build_id *id, bool was_fetched,
                                          struct error *err)
{
        const char *rest = !s->federation ? ""
                           : was_fetched  ? ", and no upstream has it"
                                          : ", and no upstream sent it yet";

        return stored_source_explain_missing(s->objects, id, rest, err);
}

enum status read_source_text(void *fetches, const struct build_id *id, const char *path, bool may_fetch,
                             struct buf *ret, struct error *err)
{
        struct query_fetches *f = fetches;
        struct debuginfo_space *s = f->space;
        struct build_id owner;
        struct package_opened o;
        enum status st;

        if (s->objects && debuginfo_store_resolve_alias(s->objects, id, &owner, NULL) == ST_OK)
                id = &owner;
        st = append_bundled_text(s, id, path, ret, err);
        if (st != ST_NOT_FOUND || *path != '/' || is_path_outside_root(path + 1))
                return st == ST_NOT_FOUND ? explain_missing_source(s, id, true, err) : st;
        if (may_fetch) {
                st = open_scanned_source(s, id, path, http_request_cancelled(f->req), &o, err);
                if (!st)
                        st = source_file_append(o.fd, path, ret, err);
        }
        if (st == ST_NOT_FOUND && s->federation && s->objects)
                st = may_fetch ? append_upstream_text(f, id, path, ret, err)
                               : cached_source_append(s->objects, id, path, ret, err);
        return st == ST_NOT_FOUND ? explain_missing_source(s, id, may_fetch, err) : st;
}

/* ---- the route ---- */

static void handle_source(struct http_request *req)
{
        struct stored_source *source = calloc(1, sizeof *source);
        struct debuginfo_space *s = get_request_space(req);
        _cleanup_free_ char *path = NULL;
        struct build_id id;
        struct error err = { 0 };
        enum status st;

        if (!get_route_build_id(req, &id)) {
                free(source);
                return;
        }
        if (asprintf(&path, "/%s", http_path_part(req, "path")) < 0)
                path = NULL;
        st = source && path ? open_bundled_source(s, &id, path, source, &err) : error_no_memory(&err);
        if (!st && !check_max_size(req, source->size_bytes)) {
                free_bundled_source(source);
                return;
        }
        if (!st) {
                metric_add(&found, 1);
                http_set_header(req, "Cache-Control", get_cache_policy(s));
                http_respond_stream(req, "application/octet-stream", source->size_bytes, NULL, read_bundled_source,
                                    free_bundled_source, source);
                return;
        }
        free(source);
        if (st == ST_NOT_FOUND)
                st = respond_scanned(s, req, &id, &err);
        if (st == ST_NOT_FOUND)
                st = respond_fetched(s, req, &id, &err);
        if (!st)
                return;
        if (st == ST_NOT_FOUND) {
                metric_add(&missing, 1);
                http_fail_code(req, 404, "not_found", "no such source file found for build-id %.130s",
                               http_path_part(req, "id"));
                return;
        }
        log_warn("source", "%s: %s", http_path_part(req, "id"), err.text);
        if (!http_is_answered(req))
                http_reset_connection(req); /* clients would cache an error response as "not found" */
}

static const struct http_route routes[] = {
        { ROUTE("GET", "/buildid/{id}/source/{path...}", SCOPE_READ, TENANCY_SPACE), .pool = POOL_DEBUGINFOD,
          .cacheable = true, .handle = handle_source },
};
const struct route_table source_routes = ROUTE_TABLE(ROLE_DEBUGINFOD, routes);
