/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The debuginfod web API, for gdb, perf, elfutils and delve.
 *
 * Clients treat any status of 400 or more, and an orderly closed connection without a response, as "not found", and
 * cache that for ten minutes. So 404 is sent only if it is definite; a failure that may be transient resets the
 * connection, after which clients retry.
 * Source: elfutils, debuginfod(8) and debuginfod-client.c.
 */
#include <string.h>

#include "common/metrics.h"
#include "server/api/debuginfo/artifact.h"
#include "server/api/debuginfo/debuginfod_answer.h"
#include "server/core/route_tables.h"
#include "server/core/server_internal.h"
#include "server/protocol/respond.h"

#define DOWNLOAD_PIECE_BYTES KiB(64)

static struct metric found =
        METRIC_COUNTER("cairn_debuginfod_requests_total", "debuginfod requests.", "outcome=\"found\"");
static struct metric missing =
        METRIC_COUNTER("cairn_debuginfod_requests_total", "debuginfod requests.", "outcome=\"missing\"");
static struct metric streamed =
        METRIC_COUNTER("cairn_debuginfod_streamed_total",
                       "Responses that started before the download from an upstream was complete.", "");
static struct metric transient =
        METRIC_COUNTER("cairn_debuginfod_requests_total", "debuginfod requests.", "outcome=\"transient\"");

/* A client remembers a 404 for long, so it gets one only when it is certain. */
static void answer_missing(struct http_request *req, const char *what)
{
        struct debuginfo_store *objects = get_request_space(req)->objects;
        struct error err;

        if (objects && debuginfo_store_check_records(objects, &err)) {
                metric_add(&transient, 1);
                http_fail(req, ST_BUSY, &err);
                return;
        }
        metric_add(&missing, 1);
        http_fail_code(req, 404, "not_found", "no %s found for build-id %.130s", what, http_path_part(req, "id"));
}

static void answer_transient(struct http_request *req, const struct error *err)
{
        metric_add(&transient, 1);
        log_warn("debuginfod", "%s: %s", http_path_part(req, "id"), err->text);
        if (!http_is_answered(req))
                http_reset_connection(req);
}

/* ---- objects that are still being downloaded ---- */

struct partial_download {
        struct download *download;
        const atomic_bool *cancel;
        uint64_t sent;
};

static enum status make_download_piece(void *state, struct buf *to, bool *end, struct error *err)
{
        struct partial_download *c = state;
        char bytes[DOWNLOAD_PIECE_BYTES];
        bool waits = c->sent > 0; /* the first bytes have arrived before */
        enum status st = waits ? http_begin_wait(err) : ST_OK;
        ssize_t n;

        if (st)
                return st;
        n = download_read(c->download, bytes, sizeof bytes, c->sent, c->cancel, err);
        if (waits)
                http_end_wait();
        if (n < 0)
                return ST_BUSY;
        buf_append(to, bytes, (size_t)n);
        c->sent += (uint64_t)n;
        *end = n == 0;
        return ST_OK;
}

static void close_partial_download(void *state)
{
        struct partial_download *c = state;

        download_unref(c->download);
        free(c);
}

/* A range or conditional request waits for the whole file. */
static bool can_send_partial_download(const struct http_request *req)
{
        return strcmp(http_method(req), "GET") == 0 && !http_header(req, "Range") && !http_header(req, "If-None-Match");
}

/*
 * Takes the download. The response ends when the file is verified and stored; if that fails, the connection is reset.
 */
static void send_partial_download(struct http_request *req, struct download *download)
{
        struct partial_download *c = malloc(sizeof *c);
        struct fetch_response answer;

        download_get_answer(download, &answer);
        if (!c || !check_max_size(req, answer.size_bytes)) {
                download_unref(download);
                free(c);
                if (!http_is_answered(req))
                        http_reset_connection(req);
                return;
        }
        *c = (struct partial_download){ .download = download, .cancel = http_request_cancelled(req) };
        metric_add(&found, 1);
        metric_add(&streamed, 1);
        if (answer.name[0])
                http_set_header(req, "X-DEBUGINFOD-FILE", answer.name);
        http_set_header(req, "Cache-Control", "public");
        http_respond_pieces(req, "application/octet-stream", DOWNLOAD_PIECE_BYTES, make_download_piece,
                            close_partial_download, c);
}

/* ---- routes ---- */

/* Takes the artifact. */
static void answer_object(struct http_request *req, struct artifact *a)
{
        if (!check_max_size(req, a->size_bytes)) {
                artifact_close(a);
                return;
        }
        metric_add(&found, 1);
        artifact_send(req, a, 0, a->size_bytes, a->identity);
}

/*
 * The route's argument is the kind. Dwp, dwo and symbol files are not part of the debuginfod protocol, so they are not
 * fetched from upstreams; symbol files are never served as debuginfo, but as uploaded.
 */
static void handle_object(struct http_request *req)
{
        enum object_kind kind = (enum object_kind)http_route_argument(req);
        enum artifact_upstream upstream = can_send_partial_download(req) ? ARTIFACT_PARTIAL : ARTIFACT_WHOLE;
        struct artifact_query q = { .space = get_request_space(req), .req = req };
        struct artifact a;
        struct error err;
        enum status st;

        if (!get_route_build_id(req, &q.id))
                return;
        st = artifact_open(&q, kind, upstream, &a, &err);
        if (st == ST_NOT_FOUND) {
                answer_missing(req, object_kind_name(kind));
                return;
        }
        if (st) {
                answer_transient(req, &err);
                return;
        }
        if (a.coming) {
                send_partial_download(req, a.coming);
                return;
        }
        answer_object(req, &a);
}

static void handle_object_at_once(struct http_request *req)
{
        enum object_kind kind = (enum object_kind)http_route_argument(req);
        struct artifact_query q = { .space = get_request_space(req), .req = req };
        struct artifact a;
        struct error err;
        enum status st;

        if (!get_route_build_id(req, &q.id))
                return;
        st = artifact_open_at_once(&q, kind, &a, &err);
        if (st == ST_NOT_FOUND && !q.space->federation)
                answer_missing(req, object_kind_name(kind));
        if (!st)
                answer_object(req, &a);
}

static const enum object_kind section_kinds[] = { OBJECT_DEBUGINFO, OBJECT_EXECUTABLE };

/* Find a section in the local files of an object, or with ARTIFACT_WHOLE also in those of upstreams. */
static enum status find_section_in_files(const struct artifact_query *q, const char *name,
                                         enum artifact_upstream upstream, struct artifact_part *ret, struct error *err)
{
        enum status st = ST_NOT_FOUND;

        for (size_t i = 0; i < 2 && st == ST_NOT_FOUND; i++) {
                st = artifact_open_section(q, section_kinds[i], name, false, ret, err);
                if (st == ST_NOT_FOUND && upstream == ARTIFACT_LOCAL)
                        continue;
                if (st != ST_NOT_FOUND && st != ST_UNSUPPORTED)
                        break;
                st = artifact_open(q, section_kinds[i], upstream, &ret->artifact, err);
                if (st)
                        continue;
                st = artifact_find_section(q, name, ret, err);
                if (st)
                        artifact_close(&ret->artifact);
        }
        return st;
}

/* Search local files, then upstreams that support section requests, then the whole files of those that do not. */
static enum status find_section(const struct artifact_query *q, const char *name, struct artifact_part *ret,
                                struct error *err)
{
        enum status st = find_section_in_files(q, name, ARTIFACT_LOCAL, ret, err);

        if (st != ST_NOT_FOUND || !q->space->federation)
                return st;
        st = artifact_fetch_section(q, name, &ret->artifact, err);
        if (!st) {
                ret->offset = 0;
                ret->size = ret->artifact.size_bytes;
        }
        return st == ST_BUSY && !http_is_answered(q->req) ? find_section_in_files(q, name, ARTIFACT_WHOLE, ret, err)
                                                          : st;
}

/* Takes the artifact. */
static void answer_section(struct http_request *req, struct artifact_part *p)
{
        if (!check_max_size(req, p->size)) {
                artifact_close(&p->artifact);
                return;
        }
        metric_add(&found, 1);
        artifact_send(req, &p->artifact, p->offset, p->size, NULL);
}

static void handle_section(struct http_request *req)
{
        struct artifact_query q = { .space = get_request_space(req), .req = req };
        struct artifact_part section;
        struct error err;
        enum status st;

        if (!get_route_build_id(req, &q.id))
                return;
        st = find_section(&q, http_path_part(req, "name"), &section, &err);
        if (st == ST_NOT_FOUND) {
                answer_missing(req, "section");
                return;
        }
        if (st == ST_BAD_DATA) { /* the client then fetches the whole file */
                http_fail_code(req, 503, "section", "%s", err.text);
                return;
        }
        if (st) {
                answer_transient(req, &err);
                return;
        }
        answer_section(req, &section);
}

/* Serves sections that need no waiting: of scanned files, and cached ones. */
static void handle_section_at_once(struct http_request *req)
{
        const char *name = http_path_part(req, "name");
        struct artifact_query q = { .space = get_request_space(req), .req = req };
        enum status st = ST_NOT_FOUND;
        struct artifact_part section;
        struct error err;

        if (!get_route_build_id(req, &q.id))
                return;
        for (size_t i = 0; i < 2 && st == ST_NOT_FOUND; i++)
                st = artifact_open_section(&q, section_kinds[i], name, true, &section, &err);
        if (st == ST_NOT_FOUND && !q.space->federation)
                answer_missing(req, "section");
        if (!st)
                answer_section(req, &section);
}

/* For services whose upstream this one is: not part of the protocol. */
static void handle_filter(struct http_request *req)
{
        uint8_t *file;
        size_t size;
        struct error err;
        enum status st = published_filter_get(get_request_space(req), &file, &size, &err);

        if (st == ST_NOT_FOUND)
                http_fail_code(req, 404, "filter", "%s", err.text);
        else if (st)
                http_fail(req, st, &err);
        else
                http_respond_bytes(req, "application/octet-stream", file, size, NULL);
}

static const struct http_route routes[] = {
        { ROUTE("GET", "/buildid/{id}/debuginfo", SCOPE_READ, TENANCY_SPACE), .pool = POOL_DEBUGINFOD,
          .cacheable = true, .argument = OBJECT_DEBUGINFO, .handle = handle_object, .at_once = handle_object_at_once },
        { ROUTE("GET", "/buildid/{id}/executable", SCOPE_READ, TENANCY_SPACE), .pool = POOL_DEBUGINFOD,
          .cacheable = true, .argument = OBJECT_EXECUTABLE, .handle = handle_object, .at_once = handle_object_at_once },
        { ROUTE("GET", "/buildid/{id}/supplementary", SCOPE_READ, TENANCY_SPACE), .pool = POOL_DEBUGINFOD,
          .cacheable = true, .argument = OBJECT_SUPPLEMENTARY, .handle = handle_object },
        { ROUTE("GET", "/buildid/{id}/dwp", SCOPE_READ, TENANCY_SPACE), .pool = POOL_DEBUGINFOD, .cacheable = true,
          .argument = OBJECT_DWP, .handle = handle_object },
        { ROUTE("GET", "/buildid/{id}/dwo", SCOPE_READ, TENANCY_SPACE), .pool = POOL_DEBUGINFOD, .cacheable = true,
          .argument = OBJECT_DWO, .handle = handle_object },
        { ROUTE("GET", "/buildid/{id}/symbols", SCOPE_READ, TENANCY_SPACE), .pool = POOL_DEBUGINFOD, .cacheable = true,
          .argument = OBJECT_SYMBOLS, .handle = handle_object },
        { ROUTE("GET", "/buildid/{id}/section/{name}", SCOPE_READ, TENANCY_SPACE), .pool = POOL_DEBUGINFOD,
          .cacheable = true, .handle = handle_section, .at_once = handle_section_at_once },
        { ROUTE("GET", "/buildid-filter", SCOPE_READ, TENANCY_SPACE), .pool = POOL_DEBUGINFOD,
          .handle = handle_filter },
};
const struct route_table debuginfod_routes = ROUTE_TABLE(ROLE_DEBUGINFOD, routes);
