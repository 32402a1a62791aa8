/* SPDX-License-Identifier: Apache-2.0 */
#include "server/artifact.h"

#include <string.h>

#include "common/sha256.h"
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

static enum status open_scanned(struct server *s, struct http_request *req, const struct build_id *id, enum object_kind kind,
                                struct artifact *ret, struct error *err)
{
        struct scan_opened o;
        enum status st = s->scan ? scan_open(s->scan, id, kind, http_server_stopping(req), &o, err) : ST_NOT_FOUND;

        if (st)
                return st;
        ret->fd = o.fd;
        ret->size_bytes = o.size_bytes;
        snprintf(ret->identity, sizeof ret->identity, "%s", o.identity);
        snprintf(ret->name, sizeof ret->name, "%s", o.name);
        snprintf(ret->archive, sizeof ret->archive, "%s", o.archive);
        return ST_OK;
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
                const struct federation_client client = { http_header(req, "X-Forwarded-For"), http_server_stopping(req) };

                st = federation_fetch(s->federation, id, kind, &client, upstream == ARTIFACT_COMING ? &a.coming : NULL, err);
                if (!st && !a.coming)
                        st = open_stored(s, id, kind, &a, err);
        }
        if (!st)
                *ret = a;
        return st;
}

void artifact_close(struct artifact *a)
{
        if (a->reader)
                object_reader_close(a->reader);
        if (a->fd >= 0)
                close(a->fd);
        if (a->coming)
                download_unref(a->coming);
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

enum status artifact_section(struct server *s, const struct artifact *a, const char *name, const atomic_bool *cancel,
                             uint64_t *offset_ret, uint64_t *size_ret, struct error *err)
{
        enum section_found known = section_table_find(a->identity, name, offset_ret, size_ret);
        struct buf table;
        enum status st;

        if (known == SECTION_ABSENT)
                return error_set(err, ST_NOT_FOUND, "the file has no section '%.100s'", name);
        if (known == SECTION_UNKNOWN) {
                buf_init(&table, LIMIT_SECTION_TABLES_BYTES);
                st = list_sections(s, a, cancel, &table, err);
                if (!st)
                        st = section_table_look(table.data, table.size, name, offset_ret, size_ret, err);
                if (st && st != ST_NOT_FOUND)
                        buf_deinit(&table);
                else
                        section_table_put(a->identity, table.data, table.size);
                if (st)
                        return st;
        }
        if (*offset_ret > a->size_bytes || *size_ret > a->size_bytes - *offset_ret)
                return error_set(err, ST_BAD_DATA, "section '%.100s' ends past the file", name);
        return ST_OK;
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
        if (a->fd >= 0 && offset == 0 && size == a->size_bytes) { /* no copy through here */
                http_respond_file(req, "application/octet-stream", a->fd, etag);
                return;
        }
        if (a->fd >= 0 && !etag) {
                http_respond_file_part(req, "application/octet-stream", a->fd, offset, size);
                return;
        }
        p = malloc(sizeof *p);
        if (!p) {
                artifact_close(a);
                http_reset(req);
                return;
        }
        *p = (struct part){ *a, offset, size };
        http_respond_stream(req, "application/octet-stream", size, etag, read_part, close_part, p);
}
