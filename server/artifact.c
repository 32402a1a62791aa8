/* SPDX-License-Identifier: Apache-2.0 */
#include "server/artifact.h"

#include <string.h>

#include "common/sha256.h"
#include "debuginfo-store/forwarded.h"
#include "elf-image/section_list.h"
#include "server/elf_job.h"
#include "server/section_table.h"

static enum status open_stored(struct server *s, const struct build_id *id, enum object_kind kind, struct artifact *ret,
                               struct error *err)
{
        struct stored_object stored;
        enum status st = s->objects ? object_reader_open(s->objects, id, kind, &ret->reader, &stored, err) : ST_NOT_FOUND;

        if (st)
                return st;
        ret->size_bytes = stored.size_bytes;
        sha256_hex(stored.sha256, ret->identity);
        snprintf(ret->name, sizeof ret->name, "%s", stored.name);
        ret->kind = stored.kind; /* a supplementary file is debuginfo too */
        note_use(s, id, stored.kind);
        return ST_OK;
}

static void take_scanned(struct artifact *a, const struct scan_opened *o)
{
        a->fd = o->fd;
        a->size_bytes = o->size_bytes;
        snprintf(a->identity, sizeof a->identity, "%s", o->identity);
        snprintf(a->name, sizeof a->name, "%s", o->name);
        snprintf(a->archive, sizeof a->archive, "%s", o->archive);
}

static enum status open_scanned(struct server *s, struct http_request *req, const struct build_id *id, enum object_kind kind,
                                struct artifact *ret, struct error *err)
{
        const struct scan_wait wait = { .cancel = http_server_stopping(req) };
        struct scan_opened o;
        enum status st = s->scan ? scan_open(s->scan, id, kind, &wait, &o, err) : ST_NOT_FOUND;

        if (!st)
                take_scanned(ret, &o);
        return st;
}

enum status artifact_wait_begin(struct http_request *req, struct error *err)
{
        enum status st = http_wait_begin(err);

        if (st && forwarded_by_service(http_header(req, "X-Forwarded-For")) && !http_answered(req))
                http_fail_code(req, 503, "busy", "%s; ask again in a moment", err->text);
        return st;
}

static enum status fetch(struct server *s, struct http_request *req, const struct build_id *id, enum object_kind kind,
                         struct download **coming_ret, struct error *err)
{
        const struct federation_client client = { http_header(req, "X-Forwarded-For"), http_server_stopping(req) };
        enum status st = artifact_wait_begin(req, err);

        if (st)
                return st;
        st = federation_fetch(s->federation, id, kind, &client, coming_ret, err);
        http_wait_end();
        return st;
}

enum status artifact_open(struct server *s, struct http_request *req, const struct build_id *id, enum object_kind kind,
                          enum artifact_upstream upstream, struct artifact *ret, struct error *err)
{
        struct artifact a = { .fd = -1, .id = *id, .kind = kind };
        enum status st = open_stored(s, id, kind, &a, err);

        if (st == ST_NOT_FOUND)
                st = open_scanned(s, req, id, kind, &a, err);
        if (st == ST_NOT_FOUND && upstream != ARTIFACT_HERE && s->federation &&
            (kind == OBJECT_DEBUGINFO || kind == OBJECT_EXECUTABLE)) {
                st = fetch(s, req, id, kind, upstream == ARTIFACT_COMING ? &a.coming : NULL, err);
                if (!st && !a.coming)
                        st = open_stored(s, id, kind, &a, err);
        }
        if (!st)
                *ret = a;
        return st;
}

enum status artifact_open_at_once(struct server *s, const struct build_id *id, enum object_kind kind, struct artifact *ret,
                                  struct error *err)
{
        static const struct scan_wait never = { .never = true };
        struct artifact a = { .fd = -1, .id = *id, .kind = kind };
        struct stored_object stored;
        struct scan_opened o;
        enum status st = s->objects ? debuginfo_store_find(s->objects, id, kind, &stored, err) : ST_NOT_FOUND;

        if (!st)
                return error_set(err, ST_BUSY, "a stored object has to be unpacked");
        if (st == ST_NOT_FOUND && s->scan)
                st = scan_open(s->scan, id, kind, &never, &o, err);
        if (st)
                return st;
        take_scanned(&a, &o);
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

static enum status list_sections(struct server *s, const struct artifact *a, const atomic_bool *cancel, struct buf *ret,
                                 struct error *err)
{
        _cleanup_close_ int unpacked = -1;
        enum status st = ST_OK;

        if (a->reader)
                st = debuginfo_store_unpack(s->objects, &a->id, a->kind, &unpacked, err);
        return st ? st : elf_job_sections(a->reader ? unpacked : a->fd, s->scratch_dir, cancel, ret, err);
}

static enum status check_inside(const struct artifact *a, const char *name, uint64_t offset, uint64_t size, struct error *err)
{
        if (offset > a->size_bytes || size > a->size_bytes - offset)
                return error_set(err, ST_BAD_DATA, "section '%.100s' ends past the file", name);
        return ST_OK;
}

/* What an older version stored is noted now, for good. */
static void note_sections(const struct server *s, const struct artifact *a, const struct buf *table)
{
        struct error err;

        if (a->reader && !s->options->read_only && object_reader_note_sections(a->reader, table->data, table->size, &err))
                log_warn("debuginfod", "cannot note where sections lie: %s, ignoring", err.text);
}

enum status artifact_section(struct server *s, const struct artifact *a, const char *name, const atomic_bool *cancel,
                             uint64_t *offset_ret, uint64_t *size_ret, struct error *err)
{
        enum status st = a->reader ? object_reader_section(a->reader, name, offset_ret, size_ret, err) : ST_UNSUPPORTED;
        enum section_found known;
        struct buf table;

        if (st != ST_UNSUPPORTED)
                return st ? st : check_inside(a, name, *offset_ret, *size_ret, err);
        known = section_table_find(a->identity, name, offset_ret, size_ret);
        if (known == SECTION_ABSENT)
                return error_set(err, ST_NOT_FOUND, "the file has no section '%.100s'", name);
        if (known == SECTION_UNKNOWN) {
                buf_init(&table, LIMIT_SECTION_TABLES_BYTES);
                st = list_sections(s, a, cancel, &table, err);
                if (!st)
                        st = section_list_find(table.data, table.size, name, offset_ret, size_ret, err);
                if (st && st != ST_NOT_FOUND) {
                        buf_deinit(&table);
                        return st;
                }
                note_sections(s, a, &table);
                section_table_put(a->identity, table.data, table.size);
                if (st)
                        return st;
        }
        return check_inside(a, name, *offset_ret, *size_ret, err);
}

/* A use is noted by writing, for which others may have to be waited for. */
static enum status open_at_hand(struct server *s, struct http_request *req, const struct stored_object *stored,
                                const char *name, struct artifact *a, struct error *err)
{
        size_t size;
        enum status st;

        if (!s->options->read_only && object_use_is_due(stored))
                return error_set(err, ST_BUSY, "a use has to be noted");
        st = debuginfo_store_section_at_hand(s->objects, stored, name, &a->bytes, &size, err);
        if (!st && (st = http_hold(req, size, err)))
                artifact_close(a);
        if (st)
                return st;
        a->size_bytes = size;
        snprintf(a->name, sizeof a->name, "%s", stored->name);
        return ST_OK;
}

enum status artifact_open_section(struct server *s, struct http_request *req, const struct build_id *id, enum object_kind kind,
                                  const char *name, bool at_once, struct artifact *ret, uint64_t *offset_ret,
                                  uint64_t *size_ret, struct error *err)
{
        const struct scan_wait wait = { .never = at_once, .cancel = http_server_stopping(req) };
        struct artifact a = { .fd = -1, .id = *id, .kind = kind };
        struct stored_object stored;
        struct scan_opened o;
        enum status st = s->objects ? debuginfo_store_find(s->objects, id, kind, &stored, err) : ST_NOT_FOUND;

        if (!st && !at_once)
                return error_set(err, ST_UNSUPPORTED, "the object is stored");
        if (!st) {
                st = open_at_hand(s, req, &stored, name, &a, err);
                if (st)
                        return st;
                *offset_ret = 0;
                *size_ret = a.size_bytes;
                *ret = a;
                return ST_OK;
        }
        if (st == ST_NOT_FOUND && s->scan)
                st = scan_open_section(s->scan, id, kind, name, &wait, &o, offset_ret, size_ret, err);
        if (st)
                return st;
        take_scanned(&a, &o);
        st = check_inside(&a, name, *offset_ret, *size_ret, err);
        if (st)
                artifact_close(&a);
        else
                *ret = a;
        return st;
}

/* ---- answering ---- */

struct part {
        struct artifact artifact;
        uint64_t offset, size;
};

static ssize_t read_part(void *state, void *to, size_t n, uint64_t offset)
{
        struct part *p = state;
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
        return done > 0 ? done : -1; /* a file that became shorter */
}

static void close_part(void *state)
{
        struct part *p = state;

        artifact_close(&p->artifact);
        free(p);
}

void artifact_respond(struct http_request *req, struct artifact *a, uint64_t offset, uint64_t size, const char *etag)
{
        struct part *p;

        if (a->name[0])
                http_set_header(req, "X-DEBUGINFOD-FILE", a->name);
        if (a->archive[0])
                http_set_header(req, "X-DEBUGINFOD-ARCHIVE", a->archive);
        http_set_header(req, "Cache-Control", "public");
        if (a->bytes) {
                http_respond_bytes(req, "application/octet-stream", a->bytes, a->size_bytes, etag);
                return;
        }
        if (a->fd >= 0 && offset == 0 && size == a->size_bytes) { /* no copy through here */
                http_respond_file(req, "application/octet-stream", a->fd, etag);
                return;
        }
        if (a->fd >= 0 && !etag) {
                http_respond_file_part(req, "application/octet-stream", a->fd, offset, size);
                return;
        }
        if (a->reader && !etag && size <= LIMIT_FRAMES_BYTES / 8) /* a long section would push all others out */
                object_reader_share(a->reader);
        p = malloc(sizeof *p);
        if (!p) {
                artifact_close(a);
                http_reset(req);
                return;
        }
        *p = (struct part){ *a, offset, size };
        http_respond_stream(req, "application/octet-stream", size, etag, read_part, close_part, p);
}
