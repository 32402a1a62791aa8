/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The debuginfod web API, for gdb, perf, elfutils and delve.
 *
 * A client of it takes any answer of 400 and more, and any connection that
 * ends in order without one, for "nobody has it", and remembers that for ten
 * minutes. So 404 is said only when it is so; what may be otherwise in a
 * moment is a reset of the connection, after which clients ask again.
 * Source: elfutils, debuginfod(8) and debuginfod-client.c.
 */
#include <string.h>

#include "common/metrics.h"
#include "server/artifact.h"
#include "server/max_size.h"
#include "server/server_internal.h"

#define COMING_BYTES KiB(64)

static struct metric found = METRIC_COUNTER("cairn_debuginfod_requests_total", "debuginfod requests.", "outcome=\"found\"");
static struct metric missing = METRIC_COUNTER("cairn_debuginfod_requests_total", "debuginfod requests.", "outcome=\"missing\"");
static struct metric streamed = METRIC_COUNTER("cairn_debuginfod_streamed_total",
                                               "Answers that began before all had come from an upstream.", "");
static struct metric transient = METRIC_COUNTER("cairn_debuginfod_requests_total", "debuginfod requests.", "outcome=\"transient\"");

static void answer_missing(struct http_request *req, const char *what)
{
        metric_add(&missing, 1);
        http_fail_code(req, 404, "not_found", "nobody has the %s of build-id %.130s", what, http_path_part(req, "id"));
}

static void answer_transient(struct http_request *req, const struct error *err)
{
        metric_add(&transient, 1);
        log_warn("debuginfod", "%s: %s", http_path_part(req, "id"), err->text);
        if (!http_answered(req))
                http_reset(req);
}

/* ---- what comes just now ---- */

struct coming {
        struct download *download;
        const atomic_bool *stopping;
        uint64_t sent;
};

static enum status make_coming(void *state, struct buf *to, bool *end, struct error *err)
{
        struct coming *c = state;
        char bytes[COMING_BYTES];
        bool waits = c->sent > 0; /* the first bytes are there */
        enum status st = waits ? http_wait_begin(err) : ST_OK;
        ssize_t n;

        if (st)
                return st;
        n = download_read(c->download, bytes, sizeof bytes, c->sent, c->stopping, err);
        if (waits)
                http_wait_end();
        if (n < 0)
                return ST_BUSY;
        buf_append(to, bytes, (size_t)n);
        c->sent += (uint64_t)n;
        *end = n == 0;
        return ST_OK;
}

static void close_coming(void *state)
{
        struct coming *c = state;

        download_unref(c->download);
        free(c);
}

/* Whoever wants a part, or only to know, waits for the whole. */
static bool takes_what_comes(const struct http_request *req)
{
        return strcmp(http_method(req), "GET") == 0 && !http_header(req, "Range") && !http_header(req, "If-None-Match");
}

/* Takes the download. The end is sent when all is verified and stored, and else a reset. */
static void send_coming(struct http_request *req, struct download *download)
{
        struct coming *c = malloc(sizeof *c);
        struct fetch_answer answer;

        download_get(download, &answer);
        if (!c || !max_size_allows(req, answer.size_bytes)) {
                download_unref(download);
                free(c);
                if (!http_answered(req))
                        http_reset(req);
                return;
        }
        *c = (struct coming){ .download = download, .stopping = http_server_stopping(req) };
        metric_add(&found, 1);
        metric_add(&streamed, 1);
        if (answer.name[0])
                http_set_header(req, "X-DEBUGINFOD-FILE", answer.name);
        http_set_header(req, "Cache-Control", "public");
        http_respond_pieces(req, "application/octet-stream", COMING_BYTES, make_coming, close_coming, c);
}

/* ---- routes ---- */

/* Takes it. */
static void answer_object(struct http_request *req, struct artifact *a)
{
        if (!max_size_allows(req, a->size_bytes)) {
                artifact_close(a);
                return;
        }
        metric_add(&found, 1);
        artifact_respond(req, a, 0, a->size_bytes, a->identity);
}

static void object(struct http_request *req, struct server *s, enum object_kind kind)
{
        struct artifact a;
        struct build_id id;
        struct error err;
        enum status st;

        if (!route_build_id(req, &id))
                return;
        st = artifact_open(s, req, &id, kind, takes_what_comes(req) ? ARTIFACT_COMING : ARTIFACT_WHOLE, &a, &err);
        if (st == ST_NOT_FOUND) {
                answer_missing(req, object_kind_name(kind));
                return;
        }
        if (st) {
                answer_transient(req, &err);
                return;
        }
        if (a.coming) {
                send_coming(req, a.coming);
                return;
        }
        answer_object(req, &a);
}

static void object_at_once(struct http_request *req, struct server *s, enum object_kind kind)
{
        struct artifact a;
        struct build_id id;
        struct error err;
        enum status st;

        if (!route_build_id(req, &id))
                return;
        st = artifact_open_at_once(s, &id, kind, &a, &err);
        if (st == ST_NOT_FOUND && !s->federation)
                answer_missing(req, object_kind_name(kind));
        if (!st)
                answer_object(req, &a);
}

static void debuginfo(struct http_request *req, void *context)
{
        object(req, context, OBJECT_DEBUGINFO);
}

static void debuginfo_at_once(struct http_request *req, void *context)
{
        object_at_once(req, context, OBJECT_DEBUGINFO);
}

static void executable(struct http_request *req, void *context)
{
        object(req, context, OBJECT_EXECUTABLE);
}

static void executable_at_once(struct http_request *req, void *context)
{
        object_at_once(req, context, OBJECT_EXECUTABLE);
}

/* Nobody's upstream has these two: no client of debuginfod asks for them yet. */
static void dwp(struct http_request *req, void *context)
{
        object(req, context, OBJECT_DWP);
}

static void dwo(struct http_request *req, void *context)
{
        object(req, context, OBJECT_DWO);
}

/* Not a part of debuginfod, and never debuginfo: for who wants back what was sent. */
static void symbols(struct http_request *req, void *context)
{
        object(req, context, OBJECT_SYMBOLS);
}

static void supplementary(struct http_request *req, void *context)
{
        object(req, context, OBJECT_SUPPLEMENTARY);
}

static const enum object_kind section_kinds[] = { OBJECT_DEBUGINFO, OBJECT_EXECUTABLE };

static enum status find_in_file(struct server *s, struct http_request *req, const struct build_id *id, const char *name,
                                enum artifact_upstream upstream, struct artifact *ret, uint64_t *offset, uint64_t *size,
                                struct error *err)
{
        enum status st = ST_NOT_FOUND;

        for (size_t i = 0; i < 2 && st == ST_NOT_FOUND; i++) {
                st = artifact_open_section(s, req, id, section_kinds[i], name, false, ret, offset, size, err);
                if (st == ST_NOT_FOUND && upstream == ARTIFACT_HERE)
                        continue;
                if (st != ST_NOT_FOUND && st != ST_UNSUPPORTED)
                        break;
                st = artifact_open(s, req, id, section_kinds[i], upstream, ret, err);
                if (st)
                        continue;
                st = artifact_section(s, ret, name, http_server_stopping(req), offset, size, err);
                if (st)
                        artifact_close(ret);
        }
        return st;
}

/* Of what is here, of an upstream that knows sections, of the files of one that does not, in this order. */
static enum status find_section(struct server *s, struct http_request *req, const struct build_id *id, const char *name,
                                struct artifact *ret, uint64_t *offset, uint64_t *size, struct error *err)
{
        enum status st = find_in_file(s, req, id, name, ARTIFACT_HERE, ret, offset, size, err);

        if (st != ST_NOT_FOUND || !s->federation)
                return st;
        st = artifact_fetch_section(s, req, id, name, ret, err);
        if (!st) {
                *offset = 0;
                *size = ret->size_bytes;
        }
        return st == ST_BUSY && !http_answered(req) ? find_in_file(s, req, id, name, ARTIFACT_WHOLE, ret, offset, size, err) : st;
}

/* Takes it. */
static void answer_section(struct http_request *req, struct artifact *a, uint64_t offset, uint64_t size)
{
        if (!max_size_allows(req, size)) {
                artifact_close(a);
                return;
        }
        metric_add(&found, 1);
        artifact_respond(req, a, offset, size, NULL);
}

static void section(struct http_request *req, void *context)
{
        uint64_t offset, size;
        struct artifact a;
        struct build_id id;
        struct error err;
        enum status st;

        if (!route_build_id(req, &id))
                return;
        st = find_section(context, req, &id, http_path_part(req, "name"), &a, &offset, &size, &err);
        if (st == ST_NOT_FOUND) {
                answer_missing(req, "section");
                return;
        }
        if (st == ST_BAD_DATA) { /* a client then takes the whole file and looks for itself */
                http_fail_code(req, 503, "section", "%s", err.text);
                return;
        }
        if (st) {
                answer_transient(req, &err);
                return;
        }
        answer_section(req, &a, offset, size);
}

/* What was scanned, from where it lies. */
static void section_at_once(struct http_request *req, void *context)
{
        const char *name = http_path_part(req, "name");
        enum status st = ST_NOT_FOUND;
        struct server *s = context;
        uint64_t offset, size;
        struct artifact a;
        struct build_id id;
        struct error err;

        if (!route_build_id(req, &id))
                return;
        for (size_t i = 0; i < 2 && st == ST_NOT_FOUND; i++)
                st = artifact_open_section(s, req, &id, section_kinds[i], name, true, &a, &offset, &size, &err);
        if (st == ST_NOT_FOUND && !s->federation)
                answer_missing(req, "section");
        if (!st)
                answer_section(req, &a, offset, size);
}

static const struct http_route routes[] = {
        { .pool = POOL_DEBUGINFOD, .method = "GET", .path = "/buildid/{id}/debuginfo", .scope = SCOPE_READ, .handle = debuginfo,
          .at_once = debuginfo_at_once },
        { .pool = POOL_DEBUGINFOD, .method = "GET", .path = "/buildid/{id}/executable", .scope = SCOPE_READ, .handle = executable,
          .at_once = executable_at_once },
        { .pool = POOL_DEBUGINFOD, .method = "GET", .path = "/buildid/{id}/supplementary", .scope = SCOPE_READ, .handle = supplementary },
        { .pool = POOL_DEBUGINFOD, .method = "GET", .path = "/buildid/{id}/dwp", .scope = SCOPE_READ, .handle = dwp },
        { .pool = POOL_DEBUGINFOD, .method = "GET", .path = "/buildid/{id}/dwo", .scope = SCOPE_READ, .handle = dwo },
        { .pool = POOL_DEBUGINFOD, .method = "GET", .path = "/buildid/{id}/symbols", .scope = SCOPE_READ, .handle = symbols },
        { .pool = POOL_DEBUGINFOD, .method = "GET", .path = "/buildid/{id}/section/{name}", .scope = SCOPE_READ, .handle = section,
          .at_once = section_at_once },
};
const struct route_table debuginfod_routes = ROUTE_TABLE(routes);
