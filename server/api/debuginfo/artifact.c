/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An artifact is looked for in three places, always in this order: the store, scanned trees, upstreams. What it is
 * read from differs (a reader that decompresses, a descriptor, bytes in memory, a running download); artifact_send()
 * chooses the cheapest way to answer from it.
 *
 * Lookups come in two kinds. artifact_open() and artifact_find_section() may wait, for a disk, a worker or an
 * upstream. artifact_open_at_once(), and artifact_open_section() with at_once, never wait; they return ST_BUSY when
 * that is impossible.
 *
 * A section is found by its table: that of a stored object is kept with the object, others are cached by the identity
 * of the file; a missing one is read by a worker and recorded.
 *
 * Order: parts from upstreams, whole artifacts, sections, answering.
 */
#include "server/api/debuginfo/artifact.h"

#include <string.h>
#include <sys/stat.h>

#include "common/files/file.h"
#include "common/hash/sha256.h"
#include "debuginfo-store/federation/forward_loop.h"
#include "elf-image/section_list.h"
#include "pipeline/elf_job.h"
#include "server/api/debuginfo/debuginfod_answer.h"
#include "server/api/debuginfo/section_table.h"

/*
 * ---- sections and source files from upstreams ----
 *
 * gdb requests one small section of each library, .gdb_index. So the section is requested from the upstream instead of
 * the file, which may be a hundred times larger. The file is fetched only if the upstream does not support sections.
 */

static struct federation_client make_artifact_client(const struct http_request *req)
{
        return (struct federation_client){ .forwarded_for = http_header(req, "X-Forwarded-For"),
                                           .cancel = http_request_cancelled(req) };
}

/* @param what  "section/" or "source/"  @param also  characters of text that are not percent-encoded. */
static enum status fetch_artifact_part(const struct artifact_query *q, const char *what, const char *text,
                                       const char *also, struct artifact *ret, struct error *err)
{
        const struct federation_client client = make_artifact_client(q->req);
        struct artifact a = { .fd = -1, .id = q->id };
        _cleanup_buf_ struct buf part;
        struct stat info;
        enum status st;

        buf_init(&part, LIMIT_PATH_BYTES);
        buf_append_str(&part, what);
        buf_append_url_encoded(&part, text, also);
        buf_append(&part, "", 1);
        if (!q->space->federation || buf_status(&part, err, "name"))
                return ST_NOT_FOUND;
        st = artifact_begin_wait(q->req, err);
        if (st)
                return st;
        st = federation_fetch_part(q->space->federation, &q->id, (const char *)part.data, &client, &a.fd, err);
        http_end_wait();
        if (st)
                return st;
        if (fstat(a.fd, &info) < 0) {
                artifact_close(&a);
                return error_os(err, errno, "cannot stat a fetched file");
        }
        a.size_bytes = (uint64_t)info.st_size;
        *ret = a;
        return ST_OK;
}

enum status artifact_fetch_section(const struct artifact_query *q, const char *name, struct artifact *ret,
                                   struct error *err)
{
        return fetch_artifact_part(q, "section/", name, "", ret, err);
}

/* A path that leads above its root is rejected: an upstream, or a proxy in between, might resolve it. */
enum status artifact_fetch_source(const struct artifact_query *q, const char *path, struct artifact *ret,
                                  struct error *err)
{
        return is_path_outside_root(path) ? ST_NOT_FOUND : fetch_artifact_part(q, "source/", path, "/", ret, err);
}

static enum status open_stored_artifact(struct debuginfo_space *s, const struct build_id *id, enum object_kind kind,
                                        struct artifact *ret, struct error *err)
{
        struct stored_object stored;
        enum status st =
                s->objects ? object_reader_open(s->objects, id, kind, &ret->reader, &stored, err) : ST_NOT_FOUND;

        if (st)
                return st;
        ret->size_bytes = stored.size_bytes;
        sha256_hex(stored.sha256, ret->identity);
        snprintf(ret->name, sizeof ret->name, "%s", stored.name);
        ret->kind = stored.kind; /* may be OBJECT_SUPPLEMENTARY for a request of debuginfo */
        record_object_use(s, id, stored.kind);
        return ST_OK;
}

static void copy_scanned_artifact(struct artifact *a, const struct package_opened *o)
{
        a->fd = o->fd;
        a->size_bytes = o->size_bytes;
        snprintf(a->identity, sizeof a->identity, "%s", o->identity);
        snprintf(a->name, sizeof a->name, "%s", o->name);
        snprintf(a->archive, sizeof a->archive, "%s", o->archive);
}

static enum status open_scanned_artifact(const struct artifact_query *q, enum object_kind kind, struct artifact *ret,
                                         struct error *err)
{
        const struct package_scan_wait wait = { .cancel = http_request_cancelled(q->req) };
        struct package_scan *scan = q->space->scan_demand.scan;
        struct package_opened o;
        enum status st = scan ? package_scan_open(scan, &q->id, kind, &wait, &o, err) : ST_NOT_FOUND;

        if (!st)
                copy_scanned_artifact(ret, &o);
        return st;
}

enum status artifact_begin_wait(struct http_request *req, struct error *err)
{
        enum status st = http_begin_wait(err);

        if (st && forward_loop_is_from_service(http_header(req, "X-Forwarded-For")) && !http_is_answered(req))
                http_fail_code(req, 503, "busy", "%s; retry in a moment", err->text);
        return st;
}

static enum status fetch_artifact(const struct artifact_query *q, enum object_kind kind, struct download **coming_ret,
                                  struct error *err)
{
        const struct federation_client client = make_artifact_client(q->req);
        enum status st = artifact_begin_wait(q->req, err);

        if (st)
                return st;
        st = federation_fetch(q->space->federation, &q->id, kind, &client, coming_ret, err);
        http_end_wait();
        return st;
}

enum status artifact_open(const struct artifact_query *q, enum object_kind kind, enum artifact_upstream upstream,
                          struct artifact *ret, struct error *err)
{
        struct artifact a = { .fd = -1, .id = q->id, .kind = kind };
        enum status st = deadline_check(http_request_deadline(q->req), err);

        if (!st)
                st = open_stored_artifact(q->space, &q->id, kind, &a, err);
        if (st == ST_NOT_FOUND)
                st = open_scanned_artifact(q, kind, &a, err);
        if (st == ST_NOT_FOUND && upstream != ARTIFACT_LOCAL && q->space->federation &&
            (kind == OBJECT_DEBUGINFO || kind == OBJECT_EXECUTABLE)) {
                st = fetch_artifact(q, kind, upstream == ARTIFACT_PARTIAL ? &a.coming : NULL, err);
                if (!st && !a.coming)
                        st = open_stored_artifact(q->space, &q->id, kind, &a, err);
        }
        if (!st)
                *ret = a;
        return st;
}

static enum status find_stored_artifact(const struct artifact_query *q, enum object_kind kind,
                                        struct stored_object *ret, struct error *err)
{
        struct debuginfo_store *objects = q->space->objects;

        return objects ? debuginfo_store_find(objects, &q->id, kind, ret, err) : ST_NOT_FOUND;
}

enum status artifact_open_at_once(const struct artifact_query *q, enum object_kind kind, struct artifact *ret,
                                  struct error *err)
{
        static const struct package_scan_wait never = { .never = true };
        struct artifact a = { .fd = -1, .id = q->id, .kind = kind };
        struct package_scan *scan = q->space->scan_demand.scan;
        struct stored_object stored;
        struct package_opened o;
        enum status st = find_stored_artifact(q, kind, &stored, err);

        if (!st)
                return error_set(err, ST_BUSY, "a stored object must be decompressed");
        if (st == ST_NOT_FOUND && scan)
                st = package_scan_open(scan, &q->id, kind, &never, &o, err);
        if (st)
                return st;
        copy_scanned_artifact(&a, &o);
        *ret = a;
        return ST_OK;
}

void artifact_close(struct artifact *a)
{
        if (a->reader)
                object_reader_close(a->reader);
        if (a->fd >= 0)
                close(a->fd);
        if (a->coming)
                download_unref(a->coming);
        free(a->bytes);
        a->bytes = NULL;
        a->coming = NULL;
        a->reader = NULL;
        a->fd = -1;
}

/* ---- sections ---- */

static enum status list_artifact_sections(struct debuginfo_space *s, const struct artifact *a,
                                          const atomic_bool *cancel, struct buf *ret, struct error *err)
{
        _cleanup_close_ int unpacked = -1;
        enum status st = ST_OK;

        if (a->reader)
                st = debuginfo_store_unpack(s->objects, &a->id, a->kind, &unpacked, err);
        return st ? st : elf_job_list_sections(a->reader ? unpacked : a->fd, s->scratch_dir, cancel, ret, err);
}

static enum status check_section_bounds(const struct artifact_part *p, const char *name, struct error *err)
{
        uint64_t file_bytes = p->artifact.size_bytes;

        if (p->offset > file_bytes || p->size > file_bytes - p->offset)
                return error_set(err, ST_BAD_DATA, "section '%.100s' ends past the end of the file", name);
        return ST_OK;
}

/* Read the section table of the file with a worker, and cache it. */
static enum status read_section_table(const struct artifact_query *q, const char *name, struct artifact_part *p,
                                      struct error *err)
{
        struct artifact *a = &p->artifact;
        struct buf table;
        enum status st;

        buf_init(&table, LIMIT_SECTION_TABLES_BYTES);
        st = list_artifact_sections(q->space, a, http_request_cancelled(q->req), &table, err);
        if (!st)
                st = section_list_find(table.data, table.size, name, &p->offset, &p->size, err);
        if (st && st != ST_NOT_FOUND) {
                buf_deinit(&table);
                return st;
        }
        section_table_insert(a->identity, table.data, table.size);
        return st;
}

enum status artifact_find_section(const struct artifact_query *q, const char *name, struct artifact_part *p,
                                  struct error *err)
{
        const struct artifact *a = &p->artifact;
        enum status st =
                a->reader ? object_reader_find_section(a->reader, name, &p->offset, &p->size, err) : ST_UNSUPPORTED;

        if (st == ST_UNSUPPORTED) {
                switch (section_table_find(a->identity, name, &p->offset, &p->size)) {
                case SECTION_ABSENT:
                        return error_set(err, ST_NOT_FOUND, "the file has no section '%.100s'", name);
                case SECTION_UNKNOWN:
                        st = read_section_table(q, name, p, err);
                        break;
                case SECTION_FOUND:
                        st = ST_OK;
                }
        }
        return st ? st : check_section_bounds(p, name, err);
}

/* ST_BUSY when a use must be recorded, because writing to the store may wait for other writers. */
static enum status open_cached_section(const struct artifact_query *q, const struct stored_object *stored,
                                       const char *name, struct artifact_part *p, struct error *err)
{
        struct artifact *a = &p->artifact;
        size_t size;
        enum status st;

        if (!q->space->options->read_only && object_is_use_due(stored))
                return error_set(err, ST_BUSY, "a use must be recorded");
        st = debuginfo_store_read_cached_section(q->space->objects, stored, name, &a->bytes, &size, err);
        if (!st && (st = http_reserve_memory(q->req, size, err)))
                artifact_close(a);
        if (st)
                return st;
        a->size_bytes = size;
        snprintf(a->name, sizeof a->name, "%s", stored->name);
        p->offset = 0;
        p->size = size;
        return ST_OK;
}

static enum status open_scanned_section(const struct artifact_query *q, const char *name, bool at_once,
                                        struct artifact_part *p, struct error *err)
{
        const struct package_scan_wait wait = { .never = at_once, .cancel = http_request_cancelled(q->req) };
        struct package_scan *scan = q->space->scan_demand.scan;
        struct artifact *a = &p->artifact;
        struct package_opened o;
        enum status st = scan ? package_scan_open_section(scan, &q->id, a->kind, name, &wait, &o, err) : ST_NOT_FOUND;

        if (st)
                return st;
        copy_scanned_artifact(a, &o);
        p->offset = o.section_offset;
        p->size = o.section_bytes;
        st = check_section_bounds(p, name, err);
        if (st)
                artifact_close(a);
        return st;
}

enum status artifact_open_section(const struct artifact_query *q, enum object_kind kind, const char *name, bool at_once,
                                  struct artifact_part *ret, struct error *err)
{
        struct artifact_part p = { .artifact = { .fd = -1, .id = q->id, .kind = kind } };
        struct stored_object stored;
        enum status st = find_stored_artifact(q, kind, &stored, err);

        if (!st && !at_once)
                return error_set(err, ST_UNSUPPORTED, "the object is stored");
        if (!st)
                st = open_cached_section(q, &stored, name, &p, err);
        else if (st == ST_NOT_FOUND)
                st = open_scanned_section(q, name, at_once, &p, err);
        if (!st)
                *ret = p;
        return st;
}

/* ---- answering ---- */

static ssize_t read_artifact_part(void *state, void *to, size_t n, uint64_t offset)
{
        struct artifact_part *p = state;
        uint64_t left = offset < p->size ? p->size - offset : 0;
        struct error err;
        ssize_t done;

        n = n < left ? n : (size_t)left;
        if (n == 0)
                return 0;
        done = p->artifact.reader ? object_reader_pread(p->artifact.reader, to, n, p->offset + offset, &err)
                                  : pread(p->artifact.fd, to, n, (off_t)(p->offset + offset));
        if (done < 0)
                log_error("debuginfod", "%s", p->artifact.reader ? err.text : strerror(errno));
        return done > 0 ? done : -1; /* 0: the file was truncated */
}

static void close_artifact_part(void *state)
{
        struct artifact_part *p = state;

        artifact_close(&p->artifact);
        free(p);
}

void artifact_send(struct http_request *req, struct artifact *a, uint64_t offset, uint64_t size, const char *etag)
{
        struct artifact_part *p;

        if (a->name[0])
                http_set_header(req, "X-DEBUGINFOD-FILE", a->name);
        if (a->archive[0])
                http_set_header(req, "X-DEBUGINFOD-ARCHIVE", a->archive);
        http_set_header(req, "Cache-Control", get_cache_policy(get_request_space(req)));
        if (a->bytes) {
                http_respond_bytes(req, "application/octet-stream", a->bytes, a->size_bytes, etag);
                return;
        }
        if (a->fd >= 0 && offset == 0 && size == a->size_bytes) { /* sendfile() */
                http_respond_file(req, "application/octet-stream", a->fd, etag);
                return;
        }
        if (a->fd >= 0 && !etag) {
                http_respond_file_part(req, "application/octet-stream", a->fd, offset, size);
                return;
        }
        if (a->reader && !etag && size <= LIMIT_FRAMES_BYTES / 8) /* a long section would evict all others */
                object_reader_use_cache(a->reader);
        p = malloc(sizeof *p);
        if (!p) {
                artifact_close(a);
                http_reset_connection(req);
                return;
        }
        *p = (struct artifact_part){ *a, offset, size };
        http_respond_stream(req, "application/octet-stream", size, etag, read_artifact_part, close_artifact_part, p);
}
