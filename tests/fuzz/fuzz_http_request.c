/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a request that are parsed by Cairn and not by libmicrohttpd. The input starts with lines: the target,
 * Range, If-None-Match, Accept-Encoding, X-Forwarded-For (also used as --trusted-proxy), Content-Type. The rest is the
 * body, parsed as multipart/form-data and as a form.
 */
#include <stdlib.h>
#include <string.h>

#include "common/build_id.h"
#include "debuginfo-store/federation/forward_loop.h"
#include "http/http_server_internal.h"
#include "http/trusted_proxy.h"
#include "server/protocol/multipart.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TARGET, RANGE, NONE_MATCH, ENCODING, FORWARDED, CONTENT_TYPE, LINES };

static void require(bool ok)
{
        if (!ok)
                abort();
}

/* Decoded text has no NUL bytes and is never longer than the encoded text. */
static void check_path_parts(const struct http_request *req)
{
        for (size_t i = 0; i < req->part_count; i++) {
                struct build_id id;
                const char *text = req->parts[i].text;

                require(text && strlen(text) <= strlen(req->uri));
                if (build_id_from_hex(&id, text, strlen(text)))
                        require(id.size > 0 && id.size <= BUILD_ID_MAX);
        }
}

static void check_route(const char *uri)
{
        static const struct http_route routes[] = {
                { .path = "/" },
                { .path = "/buildid/{id}/debuginfo" },
                { .path = "/buildid/{id}/section/{name}" },
                { .path = "/buildid/{id}/source/{path...}" },
                { .path = "/api/v1/debuginfo/{id}/{kind}/partial" },
                { .path = "/tables/{table}/{path...}" },
        };
        _cleanup_free_ struct http_request *req = calloc(1, sizeof *req);
        struct error err;

        require(req && (req->uri = strdup(uri)));
        if (request_parse_uri(req, uri, &err) == ST_OK)
                require(req->query_count <= LIMIT_HTTP_QUERY_PARAMETERS);
        for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
                if (match_route(&routes[i], req))
                        check_path_parts(req);
        request_clear_parts(req);
        for (size_t i = 0; i < req->query_count; i++) {
                require(strlen(req->query[i].name) + strlen(req->query[i].value) <= strlen(uri));
                free(req->query[i].name);
                free(req->query[i].value);
        }
        free(req->path);
        free(req->uri);
}

static void check_range(const char *header)
{
        static const uint64_t sizes[] = { 0, 1, 100, UINT64_MAX };

        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
                struct byte_range r = { 1, 0 };

                if (parse_range(header, sizes[i], &r) == RANGE_ONE)
                        require(r.start < r.end && r.end <= sizes[i]);
        }
}

static void check_forwarded(const char *header)
{
        struct forward_list f;
        struct error err;

        if (forward_loop_check(header, "_cairn-0123456789abcdef", &f, &err) == ST_OK)
                require(strlen(f.header) < sizeof f.header && strlen(f.via) < sizeof f.via);
}

static void forwarded_client(const char *header)
{
        static const struct address_range loopback = { .address = IN6ADDR_LOOPBACK_INIT, .bits = 128 };
        static const struct address_range all = { .bits = 0 };
        struct in6_addr client = IN6ADDR_ANY_INIT;
        struct address_range range;

        find_forwarded_client(header, &loopback, 1, &client); /* not a trusted proxy */
        require(IN6_IS_ADDR_UNSPECIFIED(&client));
        find_forwarded_client(header, &all, 1, &client);
        if (address_range_parse(header, &range, NULL) == ST_OK)
                require(range.bits <= 128 && is_address_in_ranges(&range.address, &range, 1));
}

static void check_form(const uint8_t *body, size_t n)
{
        _cleanup_free_ struct http_request *req = calloc(1, sizeof *req);
        char value[64];

        require(req != NULL);
        buf_init(&req->body, n);
        require(buf_append(&req->body, body, n) == ST_OK);
        if (http_form_field(req, "token", value, sizeof value))
                require(memmem(body, n, "token=", 6) && strlen(value) < sizeof value);
        buf_deinit(&req->body);
}

static void check_multipart(const char *type, const uint8_t *body, size_t n)
{
        const uint8_t *part;
        size_t part_size;

        if (multipart_find(type, body, n, "profile", &part, &part_size, NULL) == ST_OK)
                require(part >= body && part + part_size <= body + n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_free_ char *text = calloc(1, size + 1);
        char *lines[LINES], *rest = text;

        require(text != NULL);
        if (size)
                memcpy(text, data, size);
        for (unsigned i = 0; i < LINES; i++) {
                char *line = rest ? strsep(&rest, "\n") : NULL;

                lines[i] = line ? line : text + size;
        }
        check_route(lines[TARGET]);
        check_range(lines[RANGE]);
        require(!is_etag_listed(lines[NONE_MATCH], "tag") || strchr(lines[NONE_MATCH], '*') ||
                strstr(lines[NONE_MATCH], "\"tag\""));
        (void)choose_compression(lines[ENCODING]);
        check_forwarded(lines[FORWARDED]);
        forwarded_client(lines[FORWARDED]);
        if (rest) { /* an exact copy, so that reads past the end are detected */
                check_multipart(lines[CONTENT_TYPE], data + (rest - text), size - (size_t)(rest - text));
                check_form(data + (rest - text), size - (size_t)(rest - text));
        }
        return 0;
}
