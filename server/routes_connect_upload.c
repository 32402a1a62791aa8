/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debuginfo uploads as Pyroscope's agents and profilecli make them: two unary
 * calls of Connect, in JSON or protobuf, around a plain POST of the file.
 * docs/formats/upload-connect.md
 */
#include <string.h>

#include "common/json_out.h"
#include "profile-formats/wire.h"
#include "server/connect_error.h"
#include "server/connect_question.h"
#include "server/upload_stream.h"

#define SERVICE "/debuginfo.v1alpha1.DebuginfoService/"

enum { SHOULD_ANSWER = 1, SHOULD_REASON = 2 };

/* Answers and returns false when the request cannot be read. @param proto_ret the codec of the request, and of the answer */
static bool read_question(struct http_request *req, bool has_file, struct connect_question *q, bool *proto_ret)
{
        const char *type = http_header(req, "Content-Type");
        const uint8_t *body;
        struct error err;
        size_t n;
        enum status st;

        *proto_ret = http_is_type(type, "application/proto");
        if (!*proto_ret && !http_is_type(type, "application/json")) {
                http_set_header(req, "Accept-Post", "application/json, application/proto");
                http_fail_code(req, 415, "encoding", "Content-Type '%.60s' is not taken here", type ? type : "(none)");
                return false;
        }
        body = http_body(req, &n);
        st = connect_question_read(body, n, *proto_ret, has_file, q, &err);
        if (st)
                http_fail(req, st, &err);
        return !st;
}

static bool parse_id(struct http_request *req, const char *text, struct build_id *ret)
{
        if (build_id_from_hex(ret, text, strlen(text)))
                return true;
        http_fail_code(req, 400, "build_id", "gnu_build_id '%.130s' is no build-id", text);
        return false;
}

static void answer_should(struct http_request *req, bool proto, bool should, const char *reason)
{
        struct json_out j;
        struct buf body;

        buf_init(&body, KiB(4));
        if (proto) {
                wire_put_uint(&body, SHOULD_ANSWER, should);
                wire_put_str(&body, SHOULD_REASON, reason);
        } else {
                json_out_init(&j, &body);
                json_out_object(&j, NULL);
                json_out_bool(&j, "shouldInitiateUpload", should);
                json_out_str(&j, "reason", reason);
                json_out_object_end(&j);
        }
        http_respond_buf(req, 200, proto ? "application/proto" : "application/json", &body);
}

/*
 * Nothing is known of the file's symbols before it comes. It is wanted unless a
 * symbol table or better is there: most programs on hosts have less.
 */
static void should_initiate_upload(struct http_request *req, void *context)
{
        struct announced_file file = { .name = "" };
        struct server *s = context;
        struct object_question question;
        struct connect_question q;
        struct error err;
        bool proto;
        enum status st;

        if (!read_question(req, true, &q, &proto))
                return;
        if (!*q.gnu_id) {
                answer_should(req, proto, false, "the file has no gnu_build_id, which uploads go by");
                return;
        }
        if (!parse_id(req, q.gnu_id, &file.build_id))
                return;
        question = (struct object_question){ file.build_id, OBJECT_DEBUGINFO, .quality = QUALITY_SYMTAB };
        st = debuginfo_store_want(s->objects, &question, 1, &err);
        if (st) {
                http_fail(req, st, &err);
                return;
        }
        if (question.is_wanted) {
                if (strlen(q.otel_id) != 32 || !build_id_from_hex(&file.htlhash, q.otel_id, 32))
                        file.htlhash.size = 0;
                memcpy(file.name, q.name, sizeof file.name);
                announced_put(&s->announced, &file);
        }
        answer_should(req, proto, question.is_wanted, question.reason);
}

static void upload_file_begin(struct http_request *req, void *context)
{
        const char *encoding = http_header(req, "Content-Encoding");
        struct object_claim claim = { .kind = OBJECT_DEBUGINFO, .source = SOURCE_UPLOAD, .token = http_token_name(req) };
        struct announced_file file;
        struct server *s = context;

        if (!parse_id(req, http_path_part(req, "id"), &claim.build_id))
                return;
        claim.is_zstd = encoding && strcasecmp(encoding, "zstd") == 0;
        if (encoding && !claim.is_zstd && strcasecmp(encoding, "identity") != 0) {
                http_fail_code(req, 415, "encoding", "Content-Encoding '%.40s' is not taken here", encoding);
                return;
        }
        announced_get(&s->announced, &claim.build_id, &file);
        claim.name = file.name;
        claim.htlhash = file.htlhash;
        upload_begin(req, s, &claim);
}

static void upload_file_end(struct http_request *req, void *context)
{
        uint64_t size;

        if (upload_end(req, context, true, &size) != UPLOAD_ANSWERED)
                http_respond(req, 200, "application/json", "{}", 2);
}

static void upload_finished(struct http_request *req, void *context)
{
        struct stored_object object;
        struct server *s = context;
        struct build_id id, owner;
        struct connect_question q;
        struct error err;
        bool proto;
        enum status st;

        if (!read_question(req, false, &q, &proto) || !parse_id(req, q.gnu_id, &id))
                return;
        st = debuginfo_store_resolve(s->objects, &id, &owner, &err);
        if (!st)
                st = debuginfo_store_find(s->objects, &owner, OBJECT_DEBUGINFO, &object, &err);
        if (st == ST_NOT_FOUND)
                http_fail_code(req, 404, "not_found", "no upload of build-id %.130s was taken", q.gnu_id);
        else if (st)
                http_fail(req, st, &err);
        else
                http_respond(req, 200, proto ? "application/proto" : "application/json", proto ? "" : "{}", proto ? 0 : 2);
}

static const struct http_route routes[] = {
        { .pool = POOL_UPLOAD, .method = "POST", .path = SERVICE "ShouldInitiateUpload", .scope = SCOPE_UPLOAD, .max_body = KiB(64),
          .handle = should_initiate_upload, .put_error = connect_put_error },
        { .pool = POOL_UPLOAD, .method = "POST", .path = SERVICE "Upload/{id}", .scope = SCOPE_UPLOAD, .begin = upload_file_begin,
          .chunk = upload_chunk, .handle = upload_file_end, .abandon = upload_abandon, .writes = true,
          .put_error = connect_put_error },
        { .pool = POOL_UPLOAD, .method = "POST", .path = SERVICE "UploadFinished", .scope = SCOPE_UPLOAD, .max_body = KiB(64),
          .handle = upload_finished, .put_error = connect_put_error },
};
const struct route_table connect_upload_routes = ROUTE_TABLE(routes);
