/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Source files of the debuginfod web API, out of the bundle of their build-id, of
 * scanned packages and trees, or of upstreams. What a scanned file may be taken for
 * is said by debuginfo, which may be scanned too, or stored.
 * A path is no path of this machine: it is looked up among the names of the
 * bundle, as it was sent, and then without "." and "..".
 * Source: elfutils, debuginfod(8); RFC 3986, 5.2.4.
 */
#include <stdlib.h>
#include <string.h>

#include "common/metrics.h"
#include "common/sha256.h"
#include "server/artifact.h"
#include "server/max_size.h"
#include "source-bundle/bundle.h"

static struct metric found = METRIC_COUNTER("cairn_source_requests_total", "Requests for a source file.", "outcome=\"found\"");
static struct metric missing = METRIC_COUNTER("cairn_source_requests_total", "Requests for a source file.", "outcome=\"missing\"");

/* One file of a bundle, while it is sent. */
struct source {
        struct object_reader *reader;
        uint64_t offset, size;
};

static ssize_t read_bundle(void *context, void *to, size_t n, uint64_t offset, struct error *err)
{
        return object_reader_pread(context, to, n, offset, err);
}

static ssize_t read_source(void *state, void *to, size_t n, uint64_t offset)
{
        struct source *s = state;
        struct error err;
        ssize_t got;

        if (offset >= s->size)
                return 0;
        got = object_reader_pread(s->reader, to, n < s->size - offset ? n : (size_t)(s->size - offset), s->offset + offset, &err);
        if (got < 0)
                log_error("source", "%s", err.text);
        return got;
}

static void close_source(void *state)
{
        struct source *s = state;

        object_reader_close(s->reader);
        free(s);
}

static enum status find(const struct object_reader *reader, uint64_t size, char *path, struct source *ret, struct error *err)
{
        struct source_bundle bundle;
        enum status st = source_bundle_open(read_bundle, (void *)reader, size, &bundle, err);

        if (st)
                return st;
        if (!source_bundle_find(&bundle, path, &ret->offset, &ret->size)) {
                found_path_normalise(path);
                if (!source_bundle_find(&bundle, path, &ret->offset, &ret->size))
                        st = ST_NOT_FOUND;
        }
        source_bundle_close(&bundle);
        return st;
}

static enum status open_source(struct server *s, const struct build_id *id, char *path, struct source *ret, struct error *err)
{
        struct stored_object stored;
        enum status st = s->objects ? object_reader_open(s->objects, id, OBJECT_SOURCE, &ret->reader, &stored, err)
                                    : ST_NOT_FOUND;

        if (st)
                return st;
        object_reader_share(ret->reader);
        st = find(ret->reader, stored.size_bytes, path, ret, err);
        if (st)
                object_reader_close(ret->reader);
        else
                note_use(s, id, OBJECT_SOURCE);
        return st;
}

/* Takes it. */
static void respond(struct http_request *req, struct artifact *a)
{
        if (!max_size_allows(req, a->size_bytes)) {
                artifact_close(a);
                return;
        }
        metric_add(&found, 1);
        artifact_respond(req, a, 0, a->size_bytes, NULL);
}

/* ---- of trees ---- */

struct stored_debuginfo {
        struct server *s;
        const struct build_id *id;
};

static enum status unpack_debuginfo(void *context, int *fd_ret, struct error *err)
{
        const struct stored_debuginfo *d = context;

        note_use(d->s, d->id, OBJECT_DEBUGINFO);
        return debuginfo_store_unpack(d->s->objects, d->id, OBJECT_DEBUGINFO, fd_ret, err);
}

/* Out of a scanned package or tree. */
static enum status respond_scanned(struct server *s, struct http_request *req, const struct build_id *id, struct error *err)
{
        struct stored_debuginfo context = { s, id };
        char identity[SHA256_HEX_MAX];
        const struct scan_debuginfo other = { .identity = identity, .open = unpack_debuginfo, .context = &context };
        _cleanup_free_ char *path = NULL;
        struct artifact a = { .reader = NULL };
        struct stored_object stored;
        struct scan_opened o;
        bool is_stored;
        enum status st;

        if (!s->scan)
                return ST_NOT_FOUND;
        if (asprintf(&path, "/%s", http_path_part(req, "path")) < 0) {
                path = NULL;
                return error_no_memory(err);
        }
        is_stored = s->objects && !debuginfo_store_find(s->objects, id, OBJECT_DEBUGINFO, &stored, NULL);
        if (is_stored)
                sha256_hex(stored.sha256, identity);
        st = scan_open_source(s->scan, id, path, is_stored ? &other : NULL, http_server_stopping(req), &o, err);
        if (st)
                return st;
        a.fd = o.fd;
        a.size_bytes = o.size_bytes;
        snprintf(a.name, sizeof a.name, "%s", o.name);
        snprintf(a.archive, sizeof a.archive, "%s", o.archive);
        respond(req, &a);
        return ST_OK;
}

static enum status respond_fetched(struct server *s, struct http_request *req, const struct build_id *id, struct error *err)
{
        struct artifact a;
        enum status st = artifact_fetch_source(s, req, id, http_path_part(req, "path"), &a, err);

        if (st)
                return st;
        respond(req, &a);
        return ST_OK;
}

static void source(struct http_request *req, void *context)
{
        struct source *source = calloc(1, sizeof *source);
        _cleanup_free_ char *path = NULL;
        struct build_id id;
        struct error err = { 0 };
        enum status st;

        if (!route_build_id(req, &id)) {
                free(source);
                return;
        }
        if (asprintf(&path, "/%s", http_path_part(req, "path")) < 0)
                path = NULL;
        st = source && path ? open_source(context, &id, path, source, &err) : error_no_memory(&err);
        if (!st && !max_size_allows(req, source->size)) {
                close_source(source);
                return;
        }
        if (!st) {
                metric_add(&found, 1);
                http_set_header(req, "Cache-Control", "public");
                http_respond_stream(req, "application/octet-stream", source->size, NULL, read_source, close_source, source);
                return;
        }
        free(source);
        if (st == ST_NOT_FOUND)
                st = respond_scanned(context, req, &id, &err);
        if (st == ST_NOT_FOUND)
                st = respond_fetched(context, req, &id, &err);
        if (!st)
                return;
        if (st == ST_NOT_FOUND) {
                metric_add(&missing, 1);
                http_fail_code(req, 404, "not_found", "nobody has this source file of build-id %.130s",
                               http_path_part(req, "id"));
                return;
        }
        log_warn("source", "%s: %s", http_path_part(req, "id"), err.text);
        if (!http_answered(req))
                http_reset(req); /* a client takes an answer for "nobody has it", and remembers that */
}

static const struct http_route routes[] = {
        { .pool = POOL_DEBUGINFOD, .method = "GET", .path = "/buildid/{id}/source/{path...}", .scope = SCOPE_READ, .handle = source },
};
const struct route_table source_routes = ROUTE_TABLE(routes);
