/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sections and source files from upstreams.
 *
 * gdb asks for one small section of each library, .gdb_index, so an upstream is asked for the section and not for the
 * file, which may be a hundred times larger. Only where it cannot tell sections from files the file is fetched.
 */
#include <sys/stat.h>

#include "server/artifact.h"
#include "server/url_part.h"

/* @param also characters of text that stay as they are. */
static enum status fetch(struct server *s, struct http_request *req, const struct build_id *id, const char *what,
                         const char *text, const char *also, struct artifact *ret, struct error *err)
{
        const struct federation_client client = { http_header(req, "X-Forwarded-For"), http_server_stopping(req) };
        struct artifact a = { .fd = -1, .id = *id };
        _cleanup_buf_ struct buf part;
        struct stat info;
        enum status st;

        buf_init(&part, LIMIT_PATH_BYTES);
        buf_append_str(&part, what);
        url_part_append(&part, text, also);
        buf_append(&part, "", 1);
        if (!s->federation || buf_status(&part, err, "name"))
                return ST_NOT_FOUND;
        st = artifact_wait_begin(req, err);
        if (st)
                return st;
        st = federation_fetch_piece(s->federation, id, (const char *)part.data, &client, &a.fd, err);
        http_wait_end();
        if (st)
                return st;
        if (fstat(a.fd, &info) < 0) {
                artifact_close(&a);
                return error_os(err, errno, "cannot look at a fetched file");
        }
        a.size_bytes = (uint64_t)info.st_size;
        *ret = a;
        return ST_OK;
}

enum status artifact_fetch_section(struct server *s, struct http_request *req, const struct build_id *id, const char *name,
                                   struct artifact *ret, struct error *err)
{
        return fetch(s, req, id, "section/", name, "", ret, err);
}

/* A path that climbs above its root names nothing; a server or a proxy on the way might think otherwise. */
enum status artifact_fetch_source(struct server *s, struct http_request *req, const struct build_id *id, const char *path,
                                  struct artifact *ret, struct error *err)
{
        return path_climbs_out(path) ? ST_NOT_FOUND : fetch(s, req, id, "source/", path, "/", ret, err);
}
