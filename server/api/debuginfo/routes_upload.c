/* SPDX-License-Identifier: Apache-2.0 */
/* Debuginfo uploads: offer, then send. docs/formats/upload.md */
#include <inttypes.h>
#include <string.h>

#include "common/hash/sha256.h"
#include "common/json/json_out.h"
#include "common/json/json_value.h"
#include "common/text/number_text.h"
#include "server/api/debuginfo/upload_request.h"
#include "server/core/receive_upload.h"
#include "server/core/route_tables.h"
#include "server/protocol/respond.h"

/* ---- offers: which files are wanted ---- */

#define WORD_BYTES 256 /* of a build-id, a kind or a quality in a request */

static enum status read_offer(const struct json_value *file, struct object_offer *ret, struct error *err)
{
        char id_text[WORD_BYTES], kind_text[WORD_BYTES], quality_text[WORD_BYTES];
        uint64_t size = json_value_uint(file, "size", 0);

        if (!json_value_text(file, "build_id", id_text, sizeof id_text) ||
            !json_value_text(file, "kind", kind_text, sizeof kind_text) ||
            !json_value_text(file, "quality", quality_text, sizeof quality_text) || size == UINT64_MAX)
                return error_set(err, ST_BAD_DATA,
                                 "each of 'files' needs build_id, kind and quality as text, and size as a number");
        if (!build_id_from_hex(&ret->build_id, id_text, strlen(id_text)))
                return error_set(err, ST_BAD_DATA, "'%.130s' is not a build-id", id_text);
        if (!symbol_quality_parse(quality_text, &ret->quality))
                return error_set(err, ST_BAD_DATA, "'%.40s' is not a quality", quality_text);
        if (size > get_max_upload_bytes())
                ret->reason = "too_big";
        else if (!object_kind_parse(kind_text, &ret->kind))
                ret->reason = "unsupported_kind";
        return ST_OK;
}

/* Answers repeat the build-id and the kind as received. */
static void write_offer_answers(const struct json_value *files, const struct object_offer *offers, struct buf *body)
{
        char text[WORD_BYTES];
        struct json_value file;
        struct json_scan items;
        struct json_out out;

        json_out_init(&out, body);
        json_out_object(&out, NULL);
        json_out_array(&out, "files");
        json_value_open_array(files, &items);
        for (size_t i = 0; json_value_next(&items, &file); i++) {
                json_out_object(&out, NULL);
                json_out_str(&out, "build_id", json_value_text(&file, "build_id", text, sizeof text));
                json_out_str(&out, "kind", json_value_text(&file, "kind", text, sizeof text));
                json_out_bool(&out, "want", offers[i].is_wanted);
                json_out_str(&out, "reason", offers[i].reason);
                json_out_object_end(&out);
        }
        json_out_array_end(&out);
        json_out_object_end(&out);
}

static enum status assess_wanted_files(struct debuginfo_space *s, const struct json_value *request, struct buf *body,
                                       struct error *err)
{
        _cleanup_free_ struct object_offer *offers = NULL;
        struct json_value files, file;
        struct json_scan items;
        enum status st = ST_OK;
        size_t count, i = 0;

        if (!json_value_member(request, "files", &files) || !json_value_open_array(&files, &items))
                return error_set(err, ST_BAD_DATA, "the body has no array 'files'");
        count = json_value_count(&files, LIMIT_WANT_FILES);
        if (count > LIMIT_WANT_FILES)
                return error_set(err, ST_TOO_BIG, "'files' has more than %d entries; split them into several requests",
                                 LIMIT_WANT_FILES);
        offers = calloc(count + 1, sizeof *offers);
        if (!offers)
                return error_no_memory(err);
        while (!st && json_value_next(&items, &file))
                st = file.data[0] == '{' ? read_offer(&file, &offers[i++], err)
                                         : error_set(err, ST_BAD_DATA, "'files' holds something that is not an object");
        if (!st)
                st = debuginfo_store_assess_offers(s->objects, offers, count, err);
        if (!st)
                write_offer_answers(&files, offers, body);
        return st;
}

static void handle_want(struct http_request *req)
{
        struct json_value request;
        struct buf body;
        struct error err;
        const uint8_t *data;
        size_t n;
        enum status st;

        data = http_body(req, &n);
        st = json_value_parse(data, n, &request, &err);
        if (st) {
                http_fail(req, st, &err);
                return;
        }
        buf_init_budget(&body, LIMIT_RESPONSE_BYTES, MEMORY_ANSWERS);
        st = assess_wanted_files(get_request_space(req), &request, &body, &err);
        respond_result(req, st, &body, &err);
}

/* ---- uploads ---- */

/* Read the claim from path and headers; responds and returns false when they are malformed. */
static bool read_claim(struct http_request *req, struct object_claim *claim)
{
        const char *size = http_header(req, "X-Cairn-Size"), *sha = http_header(req, "X-Cairn-SHA256");
        const char *encoding = http_header(req, "Content-Encoding"), *force = http_query(req, "force");
        const char *offset = http_header(req, "X-Cairn-Offset");
        const char *kind = http_path_part(req, "kind"), *htlhash = http_query(req, "htlhash"),
                   *quality = http_query(req, "quality");

        *claim = (struct object_claim){ .source = SOURCE_UPLOAD,
                                        .name = http_query(req, "name"),
                                        .tag = http_query(req, "tag"),
                                        .token = http_token_name(req) };
        if (!get_route_build_id(req, &claim->build_id))
                return false;
        if (!object_kind_parse(kind, &claim->kind)) {
                http_fail_code(req, 400, "unsupported_kind", "'%.40s' is not supported; send " OBJECT_KIND_NAMES, kind);
                return false;
        }
        if (claim->tag && !object_tag_is_valid(claim->tag)) {
                http_fail_code(req, 400, "usage", "'%.80s' is not a tag: at most %d letters, digits and ._-/:@+",
                               claim->tag, OBJECT_TAG_SIZE - 1);
                return false;
        }
        claim->has_quality = quality && symbol_quality_parse(quality, &claim->quality);
        if (htlhash && (strlen(htlhash) != 32 || !build_id_from_hex(&claim->htlhash, htlhash, 32))) {
                http_fail_code(req, 400, "usage", "htlhash is 32 hexadecimal digits");
                return false;
        }
        if (!size || !parse_uint(size, &claim->size_bytes) || claim->size_bytes == 0 || !sha ||
            !sha256_parse(sha, claim->sha256)) {
                http_fail_code(req, 400, "usage",
                               "the headers X-Cairn-Size (bytes) and X-Cairn-SHA256 (64 hexadecimal digits) of the "
                               "unpacked file are needed");
                return false;
        }
        if (claim->size_bytes > get_max_upload_bytes()) {
                http_fail_code(req, 413, "too_big", "the object has more than %" PRIu64 " bytes",
                               get_max_upload_bytes());
                return false;
        }
        claim->is_zstd = encoding && strcasecmp(encoding, "zstd") == 0;
        if (encoding && !claim->is_zstd && strcasecmp(encoding, "identity") != 0) {
                http_fail_code(req, 415, "encoding", "Content-Encoding '%.40s' is not supported; send zstd", encoding);
                return false;
        }
        claim->force = force && strcmp(force, "1") == 0;
        claim->is_resumable = offset != NULL;
        if (offset && (!parse_uint(offset, &claim->offset) || claim->offset > claim->size_bytes)) {
                http_fail_code(req, 400, "usage", "X-Cairn-Offset must be the number of unpacked bytes already sent");
                return false;
        }
        return true;
}

static void send_begin(struct http_request *req)
{
        struct object_claim claim;

        if (read_claim(req, &claim))
                upload_begin(req, &claim);
}

static void answer_offset(struct http_request *req, unsigned code, uint64_t offset)
{
        char text[64];
        int n = snprintf(text, sizeof text, "{\"state\":\"partial\",\"offset\":%" PRIu64 "}\n", offset);

        http_respond(req, code, "application/json", text, (size_t)n);
}

/* Responds with the number of bytes stored of an interrupted upload of the content with this hash. */
static void handle_partial(struct http_request *req)
{
        const char *kind = http_path_part(req, "kind"), *hash = http_query(req, "sha256");
        struct object_claim claim = { 0 };
        struct debuginfo_space *s = get_request_space(req);
        uint64_t offset;
        struct error err;
        enum status st;

        if (!get_route_build_id(req, &claim.build_id))
                return;
        if (!object_kind_parse(kind, &claim.kind) || !hash || !sha256_parse(hash, claim.sha256)) {
                http_fail_code(req, 400, "usage", "the request needs the kind and ?sha256= of the unpacked file");
                return;
        }
        st = object_upload_find_offset(s->objects, &claim, &offset, &err);
        if (st)
                http_fail(req, st, &err);
        else
                answer_offset(req, 200, offset);
}

static void send_end(struct http_request *req)
{
        static const char stored_text[] = "{\"state\":\"stored\"}\n", same_text[] = "{\"state\":\"same\"}\n";
        uint64_t size;

        switch (upload_end(req, false, &size)) {
        case UPLOAD_ANSWERED:
                break;
        case UPLOAD_INCOMPLETE:
                answer_offset(req, 202, size);
                break;
        case UPLOAD_SAME:
                http_respond(req, 200, "application/json", same_text, sizeof same_text - 1);
                break;
        case UPLOAD_STORED:
                http_respond(req, 201, "application/json", stored_text, sizeof stored_text - 1);
        }
}

static const struct http_route routes[] = {
        { ROUTE("POST", "/api/v1/debuginfo/want", SCOPE_UPLOAD, TENANCY_SPACE), .pool = POOL_UPLOAD,
          .max_body = LIMIT_HTTP_JSON_BYTES, .body_type = "application/json", .handle = handle_want },
        { ROUTE("GET", "/api/v1/debuginfo/{id}/{kind}/partial", SCOPE_UPLOAD, TENANCY_SPACE), .pool = POOL_UPLOAD,
          .handle = handle_partial },
        { ROUTE("PUT", "/api/v1/debuginfo/{id}/{kind}", SCOPE_UPLOAD, TENANCY_SPACE), .pool = POOL_UPLOAD,
          .begin = send_begin, .chunk = upload_chunk, .handle = send_end, .abandon = upload_abandon, .writes = true },
};
const struct route_table upload_routes = ROUTE_TABLE(ROLE_DEBUGINFOD, routes);
