/* SPDX-License-Identifier: Apache-2.0 */
#include "server/protocol/respond.h"

#include <string.h>

bool get_route_build_id(struct http_request *req, struct build_id *ret)
{
        const char *hex = http_path_part(req, "id");

        if (build_id_from_hex(ret, hex, strlen(hex)))
                return true;
        http_fail_code(req, 400, "build_id",
                       "'%.130s' is not a build-id: expected an even number of hexadecimal digits, 2 to 128", hex);
        return false;
}

void respond_json(struct http_request *req, struct buf *body)
{
        buf_append_str(body, "\n");
        http_respond_buf(req, 200, "application/json", body);
}

void respond_result(struct http_request *req, enum status st, struct buf *body, const struct error *err)
{
        if (!st) {
                respond_json(req, body);
                return;
        }
        buf_deinit(body);
        http_fail(req, st, err);
}
