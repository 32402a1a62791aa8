/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/v1/offsets: offsets of fields of C structures. */
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/limits.h"
#include "pipeline/stored_offsets.h"
#include "server/core/route_tables.h"
#include "server/core/server_internal.h"
#include "server/protocol/respond.h"

#define JOBS_MAX 2 /* each reads a whole debug file */

static _Atomic unsigned jobs;

/* Split a list such as "a.b,c.d" in place. */
static enum status split_fields(char *text, const char *fields[static STRUCT_FIELDS_MAX], size_t *count_ret,
                                struct error *err)
{
        char *rest = text;

        *count_ret = 0;
        for (const char *field; (field = strtok_r(rest, ",", &rest));) {
                if (*count_ret == STRUCT_FIELDS_MAX)
                        return error_set(err, ST_USAGE, "more than %d fields; split them into several requests",
                                         STRUCT_FIELDS_MAX);
                if (!struct_field_is_valid(field))
                        return error_set(err, ST_USAGE, "'%.100s' is not STRUCT.FIELD", field);
                fields[(*count_ret)++] = field;
        }
        return *count_ret ? ST_OK : error_set(err, ST_USAGE, "give field=STRUCT.FIELD, separate several with commas");
}

static enum status answer_offsets(struct http_request *req, struct debuginfo_space *s, struct buf *ret,
                                  struct error *err)
{
        const char *hex = http_query(req, "build_id"), *list = http_query(req, "field");
        _cleanup_free_ char *text = strdup(list ? list : "");
        const char *fields[STRUCT_FIELDS_MAX];
        struct build_id id;
        enum status st;
        size_t count;

        if (!text)
                return error_no_memory(err);
        if (!hex || !build_id_from_hex(&id, hex, strlen(hex)))
                return error_set(err, ST_USAGE, "'%.130s' is not a build-id", hex ? hex : "(none)");
        st = split_fields(text, fields, &count, err);
        if (!st && !s->objects)
                st = error_set(err, ST_NOT_FOUND, "this service stores no debuginfo");
        if (st)
                return st;
        if (atomic_fetch_add(&jobs, 1) >= JOBS_MAX)
                st = error_set(err, ST_BUSY, "%d debug files are being read; retry later", JOBS_MAX);
        else
                st = stored_offsets_write(s->objects, &id, fields, count, http_request_cancelled(req), ret, err);
        atomic_fetch_sub(&jobs, 1);
        return st ? st : deadline_check(http_request_deadline(req), err);
}

static void handle_offsets(struct http_request *req)
{
        struct buf body;
        struct error err;
        enum status st;

        buf_init(&body, MiB(1));
        st = answer_offsets(req, get_request_space(req), &body, &err);
        if (!st) {
                respond_json(req, &body);
                return;
        }
        buf_deinit(&body);
        http_fail(req, st, &err);
}

static const struct http_route routes[] = {
        { ROUTE("GET", "/api/v1/offsets", SCOPE_READ, TENANCY_SPACE), .pool = POOL_SYMBOLIZE,
          .handle = handle_offsets },
};
const struct route_table offsets_routes = ROUTE_TABLE(ROLE_SYMBOLIZE, routes);
