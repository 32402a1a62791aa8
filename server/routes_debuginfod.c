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
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "common/metrics.h"
#include "common/options.h"
#include "common/sha256.h"
#include "server/elf_job.h"
#include "server/server_internal.h"

static struct metric found = METRIC_COUNTER("cairn_debuginfod_requests_total", "debuginfod requests.", "outcome=\"found\"");
static struct metric missing = METRIC_COUNTER("cairn_debuginfod_requests_total", "debuginfod requests.", "outcome=\"missing\"");
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
        http_reset(req);
}

/* Open what is stored, or have it fetched. ST_NOT_FOUND is definite. */
static enum status open_object(struct server *s, struct http_request *req, const struct build_id *id, enum object_kind kind,
                               struct object_reader **ret, struct stored_object *object, struct error *err)
{
        enum status st = s->objects ? object_reader_open(s->objects, id, kind, ret, object, err) : ST_NOT_FOUND;

        if (st == ST_NOT_FOUND && s->federation) {
                st = federation_fetch(s->federation, id, kind, http_header(req, "X-Forwarded-For"), http_server_stopping(req),
                                      err);
                if (!st)
                        st = object_reader_open(s->objects, id, kind, ret, object, err);
        }
        if (!st)
                note_use(s, id, kind);
        return st;
}

/* False, with the answer made, when the client wants nothing this large. */
static bool size_allowed(struct http_request *req, uint64_t size)
{
        const char *header = http_header(req, "X-DEBUGINFOD-MAXSIZE");
        uint64_t max;
        char text[24];

        snprintf(text, sizeof text, "%" PRIu64, size);
        http_set_header(req, "X-DEBUGINFOD-SIZE", text);
        if (!header || !parse_uint(header, &max) || max == 0 || size <= max)
                return true;
        http_fail_code(req, 406, "too_big", "it has %" PRIu64 " bytes, the request allows %" PRIu64, size, max);
        return false;
}

static ssize_t read_object(void *state, void *to, size_t n, uint64_t offset)
{
        struct error err;
        ssize_t done = object_reader_pread(state, to, n, offset, &err);

        if (done < 0)
                log_error("debuginfod", "%s", err.text);
        return done;
}

static void close_object(void *state)
{
        object_reader_close(state);
}

static void object(struct http_request *req, struct server *s, enum object_kind kind)
{
        struct object_reader *reader;
        struct stored_object stored;
        struct build_id id;
        struct error err;
        char etag[2 * sizeof stored.sha256 + 1];
        enum status st;

        if (!route_build_id(req, &id))
                return;
        st = open_object(s, req, &id, kind, &reader, &stored, &err);
        if (st == ST_NOT_FOUND) {
                answer_missing(req, object_kind_name(kind));
                return;
        }
        if (st) {
                answer_transient(req, &err);
                return;
        }
        if (!size_allowed(req, stored.size_bytes)) {
                object_reader_close(reader);
                return;
        }
        metric_add(&found, 1);
        if (stored.name[0])
                http_set_header(req, "X-DEBUGINFOD-FILE", stored.name);
        http_set_header(req, "Cache-Control", "public");
        http_respond_stream(req, "application/octet-stream", stored.size_bytes, sha256_hex(stored.sha256, etag), read_object,
                            close_object, reader);
}

static void debuginfo(struct http_request *req, void *context)
{
        object(req, context, OBJECT_DEBUGINFO);
}

static void executable(struct http_request *req, void *context)
{
        object(req, context, OBJECT_EXECUTABLE);
}

/* The section out of what is stored; ST_NOT_FOUND when no stored file has it. */
static enum status find_section(struct server *s, const struct build_id *id, const char *name, const atomic_bool *cancel,
                                int *fd_ret, struct error *err)
{
        static const enum object_kind kinds[] = { OBJECT_DEBUGINFO, OBJECT_EXECUTABLE };

        for (size_t i = 0; i < 2; i++) {
                _cleanup_close_ int fd = -1;
                enum status st = debuginfo_store_unpack(s->objects, id, kinds[i], &fd, err);

                if (!st)
                        st = elf_job_section(fd, name, s->scratch_dir, cancel, fd_ret, err);
                if (st != ST_NOT_FOUND)
                        return st;
        }
        return ST_NOT_FOUND;
}

static void section(struct http_request *req, void *context)
{
        const char *name = http_path_part(req, "name");
        struct server *s = context;
        struct object_reader *reader;
        struct stored_object stored;
        struct build_id id;
        struct error err;
        struct stat st_file;
        int fd;
        enum status st;

        if (!route_build_id(req, &id))
                return;
        st = open_object(s, req, &id, OBJECT_DEBUGINFO, &reader, &stored, &err);
        if (!st)
                object_reader_close(reader);
        if (!st || st == ST_NOT_FOUND)
                st = find_section(s, &id, name, http_server_stopping(req), &fd, &err);
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
        if (fstat(fd, &st_file) == 0 && !size_allowed(req, (uint64_t)st_file.st_size)) {
                close(fd);
                return;
        }
        metric_add(&found, 1);
        http_respond_file(req, "application/octet-stream", fd, NULL);
}

static const struct http_route routes[] = {
        { .method = "GET", .path = "/buildid/{id}/debuginfo", .scope = SCOPE_READ, .handle = debuginfo, .slow = true },
        { .method = "GET", .path = "/buildid/{id}/executable", .scope = SCOPE_READ, .handle = executable, .slow = true },
        { .method = "GET", .path = "/buildid/{id}/section/{name}", .scope = SCOPE_READ, .handle = section, .slow = true },
};
const struct route_table debuginfod_routes = ROUTE_TABLE(routes);
