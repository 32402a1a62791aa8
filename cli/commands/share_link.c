/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands/share_link.h"

#include <stdio.h>
#include <string.h>

#include "common/json/json_value.h"
#include "common/limits.h"
#include "common/text/utf8.h"
#include "profile-formats/pprof/pprof.h"

#define PATH_CHARS 256
#define REQUEST_TIMEOUT_MS 120000

/* The link is the path in the response below the URL that was used: a proxy may hide the service's own URL. */
static enum status print_share_link(const char *server, const struct http_client_response *response, const char *query,
                                    struct error *err)
{
        char path[PATH_CHARS];
        struct json_value root;
        enum status st = json_value_parse(response->body.data, response->body.size, &root, err);

        if (!st && (!json_value_text(&root, "url", path, sizeof path) || path[0] != '/'))
                st = error_set(err, ST_BAD_DATA, "the response has no link");
        if (st)
                return error_prefix(err, st, "%s", server);
        printf("%.*s%s%s\n", (int)(strlen(server) - (server[strlen(server) - 1] == '/')), server, PRINTABLE(path),
               query);
        return ST_OK;
}

enum status share_and_print_link(const struct service_options *o, const struct profile *p, const char *query,
                                 struct error *err)
{
        const struct http_client_options how = { .size = sizeof how, .request_timeout_ms = REQUEST_TIMEOUT_MS };
        const char *const headers[] = { "Content-Type: application/octet-stream", NULL };
        struct http_client_request request = { .method = "POST",
                                               .path = "/api/v1/share?format=pprof",
                                               .headers = headers };
        _cleanup_http_client_response_ struct http_client_response response = { 0 };
        _cleanup_http_client_ struct http_client *client = NULL;
        _cleanup_buf_ struct buf file;
        enum status st;

        buf_init(&file, LIMIT_SHARE_BYTES);
        st = pprof_encode(p, &file, err);
        if (st)
                return error_prefix(err, st, "a shared profile has at most %zu MiB", LIMIT_SHARE_BYTES >> 20);
        st = service_connect(o, &how, &client, err);
        if (st)
                return st;
        request.body = file.data;
        request.body_size = file.size;
        st = service_send(client, &request, &response, err);
        return st ? st : print_share_link(o->server, &response, query, err);
}
