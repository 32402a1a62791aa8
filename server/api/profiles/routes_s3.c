/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables as a read-only S3 bucket for DuckDB's httpfs, delta-rs, pyarrow and Spark (docs/formats/s3.md).
 */
#include <inttypes.h>
#include <string.h>

#include "common/text/number_text.h"
#include "common/text/xml_text.h"
#include "server/api/profiles/s3_list.h"
#include "server/api/profiles/table_files.h"
#include "server/core/route_tables.h"

/* ---- errors ---- */

static const char *get_s3_code(unsigned code)
{
        switch (code) {
        case 400:
                return "InvalidArgument";
        case 401:
        case 403:
                return "AccessDenied";
        case 404:
                return "NoSuchKey";
        case 405:
                return "MethodNotAllowed";
        case 412:
                return "PreconditionFailed";
        case 416:
                return "InvalidRange";
        case 429:
        case 503:
        case 504:
                return "SlowDown";
        case 501:
                return "NotImplemented";
        default:
                return "InternalError";
        }
}

static const char *write_s3_error(struct buf *to, const char *type, unsigned code, const char *text)
{
        (void)type;
        buf_printf(to, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>%s</Code><Message>",
                   get_s3_code(code));
        xml_append_text(to, text);
        buf_append_str(to, "</Message></Error>\n");
        return "application/xml";
}

static void set_request_id(struct http_request *req)
{
        static _Atomic uint64_t last;
        char text[24];

        snprintf(text, sizeof text, "%016" PRIX64, atomic_fetch_add(&last, 1) + 1);
        http_set_header(req, "x-amz-request-id", text);
}

static void respond_xml(struct http_request *req, struct buf *body)
{
        http_respond_buf(req, 200, "application/xml", body);
}

/* ---- the bucket ---- */

static const char *get_param(struct http_request *req, const char *name)
{
        const char *value = http_query(req, name);

        return value ? value : "";
}

/* @return false when the request was answered. */
static bool parse_list_request(struct http_request *req, struct s3_list_request *ret,
                               char key[static S3_KEY_BYTES_MAX + 1])
{
        const char *max_keys = get_param(req, "max-keys"), *encoding = get_param(req, "encoding-type");
        struct s3_list_request r = { .prefix = get_param(req, "prefix"),
                                     .delimiter = get_param(req, "delimiter"),
                                     .requested_start_after = get_param(req, "start-after"),
                                     .token = get_param(req, "continuation-token"),
                                     .max_keys = S3_KEYS_MAX,
                                     .encodes_url = strcmp(encoding, "url") == 0 };

        r.start_after = *r.token ? key : r.requested_start_after;
        if (strlen(r.prefix) > S3_KEY_BYTES_MAX || strlen(r.delimiter) > S3_KEY_BYTES_MAX ||
            strlen(r.requested_start_after) > S3_KEY_BYTES_MAX)
                http_fail_code(req, 400, "usage", "prefix, delimiter or start-after is longer than %d bytes",
                               S3_KEY_BYTES_MAX);
        else if (*max_keys && !parse_uint(max_keys, &r.max_keys))
                http_fail_code(req, 400, "usage", "max-keys '%.20s' is not a number", max_keys);
        else if (*encoding && !r.encodes_url)
                http_fail_code(req, 400, "usage", "encoding-type '%.20s' is not 'url'", encoding);
        else if (*r.token && !parse_s3_token(r.token, key))
                http_fail_code(req, 400, "usage", "the continuation-token was not issued by this service");
        if (http_is_answered(req))
                return false;
        if (r.max_keys > S3_KEYS_MAX)
                r.max_keys = S3_KEYS_MAX;
        *ret = r;
        return true;
}

static void handle_s3_list(struct http_request *req)
{
        char key[S3_KEY_BYTES_MAX + 1];
        struct s3_list_request request;
        struct error err;
        struct buf body;
        enum status st;

        if (!parse_list_request(req, &request, key))
                return;
        buf_init_budget(&body, LIMIT_RESPONSE_BYTES, MEMORY_ANSWERS);
        st = write_s3_list(get_request_tenant(req), &request, &body, &err);
        if (!st) {
                respond_xml(req, &body);
                return;
        }
        buf_deinit(&body);
        http_fail(req, st, &err);
}

static void handle_s3_bucket(struct http_request *req)
{
        struct buf body;

        set_request_id(req);
        http_set_header(req, "x-amz-bucket-region", "us-east-1");
        if (strcmp(http_method(req), "HEAD") == 0) {
                http_respond(req, 200, "application/xml", "", 0);
        } else if (strcmp(get_param(req, "list-type"), "2") == 0) {
                handle_s3_list(req);
        } else if (http_query(req, "location")) {
                buf_init(&body, KiB(1));
                buf_append_str(&body, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<LocationConstraint "
                                      "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"/>\n");
                respond_xml(req, &body);
        } else {
                http_fail_code(req, 501, "unsupported", "a bucket supports only ?list-type=2 and ?location");
        }
}

/* ---- objects ---- */

static void handle_s3_object(struct http_request *req)
{
        const char *key = http_path_part(req, "key"), *slash = strchr(key, '/');
        _cleanup_free_ char *table = slash ? strndup(key, (size_t)(slash - key)) : NULL;
        struct table_file f;
        struct error err;

        set_request_id(req);
        if (slash && !table)
                http_fail(req, ST_NO_MEMORY, NULL);
        else if (http_query(req, "partNumber") || http_query(req, "versionId"))
                http_fail_code(req, 501, "unsupported", "objects have neither parts nor versions");
        else if (!slash)
                http_fail_code(req, 404, "not_found", "'%.200s' does not exist", http_path(req));
        else if (open_table_file(get_request_tenant(req), table, slash + 1, &f, &err))
                http_fail(req, err.code, &err);
        else
                http_respond_file(req, "application/octet-stream", f.fd, f.etag);
}

/* ---- writing ---- */

static void refuse_write(struct http_request *req)
{
        set_request_id(req);
        http_fail_code(req, 403, "read_only", "this bucket is read-only: only the service writes the tables");
}

static enum status refuse_bytes(struct http_request *req, const void *data, size_t *n)
{
        (void)req;
        (void)data;
        (void)n;
        return ST_USAGE; /* unreachable: begin has responded */
}

static const struct http_route routes[] = {
        { ROUTE("GET", "/cairn", SCOPE_READ, TENANCY_OWN), .cacheable = true, .handle = handle_s3_bucket,
          .put_error = write_s3_error },
        { ROUTE("GET", "/cairn/", SCOPE_READ, TENANCY_OWN), .cacheable = true, .handle = handle_s3_bucket,
          .put_error = write_s3_error },
        { ROUTE("GET", "/cairn/{key...}", SCOPE_READ, TENANCY_OWN), .cacheable = true, .handle = handle_s3_object,
          .put_error = write_s3_error },
        { ROUTE("PUT", "/cairn/{key...}", SCOPE_READ, TENANCY_OWN), .begin = refuse_write, .chunk = refuse_bytes,
          .handle = refuse_write, .put_error = write_s3_error },
        { ROUTE("POST", "/cairn/{key...}", SCOPE_READ, TENANCY_OWN), .begin = refuse_write, .chunk = refuse_bytes,
          .handle = refuse_write, .put_error = write_s3_error },
        { ROUTE("DELETE", "/cairn/{key...}", SCOPE_READ, TENANCY_OWN), .begin = refuse_write, .chunk = refuse_bytes,
          .handle = refuse_write, .put_error = write_s3_error },
};
const struct route_table s3_routes = ROUTE_TABLE(ROLE_QUERY, routes);
