/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debuginfo uploads of Pyroscope's agents and profilecli: two unary Connect calls, in JSON or protobuf, around a plain
 * POST of the file. docs/formats/upload-connect.md
 */
#include <stddef.h>
#include <string.h>

#include "common/buf.h"
#include "common/json_out.h"
#include "profile-formats/proto/connect_upload.pb-c.h"
#include "profile-formats/proto_message.h"
#include "server/routes/connect_call.h"
#include "server/routes/connect_question.h"
#include "server/routes/upload_request.h"

/* ---- hints: sent before an upload, which itself carries the build-id only ---- */

static struct upload_hint *find_upload_hint(struct upload_hints *a, const struct build_id *id)
{
        for (size_t i = 0; i < UPLOAD_HINTS_MAX; i++)
                if (a->hints[i].build_id.size && build_id_equal(&a->hints[i].build_id, id))
                        return &a->hints[i];
        return NULL;
}

static void upload_hints_put(struct upload_hints *a, const struct upload_hint *file)
{
        struct upload_hint *at;

        pthread_mutex_lock(&a->lock);
        at = find_upload_hint(a, &file->build_id);
        if (!at) {
                at = &a->hints[a->next];
                a->next = (a->next + 1) % UPLOAD_HINTS_MAX;
        }
        *at = *file;
        pthread_mutex_unlock(&a->lock);
}

static void upload_hints_get(struct upload_hints *a, const struct build_id *id, struct upload_hint *ret)
{
        const struct upload_hint *found;

        pthread_mutex_lock(&a->lock);
        found = find_upload_hint(a, id);
        *ret = found ? *found : (struct upload_hint){ .build_id = *id };
        pthread_mutex_unlock(&a->lock);
}

/* ---- routes ---- */

#define SERVICE "/debuginfo.v1alpha1.DebuginfoService/"

/* Answers and returns false when the request cannot be read. */
static bool read_connect_request(struct http_request *req, bool has_file, struct connect_question *q,
                                 enum connect_codec *codec_ret)
{
        const uint8_t *body;
        struct error err;
        size_t n;
        enum status st;

        if (!connect_read_codec(req, codec_ret))
                return false;
        body = http_body(req, &n);
        st = connect_question_read(body, n, *codec_ret == CONNECT_PROTO, has_file, q, &err);
        if (st)
                http_fail(req, st, &err);
        return !st;
}

static bool parse_gnu_build_id(struct http_request *req, const char *text, struct build_id *ret)
{
        if (build_id_from_hex(ret, text, strlen(text)))
                return true;
        http_fail_code(req, 400, "build_id", "gnu_build_id '%.130s' is not a build-id", text);
        return false;
}

static void answer_should(struct http_request *req, enum connect_codec codec, bool should, const char *reason)
{
        struct json_out j;
        struct buf body;

        buf_init(&body, KiB(4));
        if (codec == CONNECT_PROTO) {
                ConnectUpload__ShouldInitiateUploadResponse response =
                        CONNECT_UPLOAD__SHOULD_INITIATE_UPLOAD_RESPONSE__INIT;

                response.should_initiate_upload = should;
                response.reason = (char *)reason;
                proto_message_append(&body, &response.base);
        } else {
                json_out_init(&j, &body);
                json_out_object(&j, NULL);
                json_out_bool(&j, "shouldInitiateUpload", should);
                json_out_str(&j, "reason", reason);
                json_out_object_end(&j);
        }
        http_respond_buf(req, 200, connect_media_type(codec), &body);
}

/*
 * The quality of the file is unknown before it is sent. It is requested unless a symbol table or better is stored: most
 * programs on hosts have less.
 */
static void should_initiate_upload(struct http_request *req, void *context)
{
        struct upload_hint file = { .name = "" };
        struct server *s = context;
        struct object_offer question;
        struct connect_question q;
        struct error err;
        enum connect_codec codec;
        enum status st;

        if (!read_connect_request(req, true, &q, &codec))
                return;
        if (!*q.gnu_id) {
                answer_should(req, codec, false, "the file has no gnu_build_id, which uploads go by");
                return;
        }
        if (!parse_gnu_build_id(req, q.gnu_id, &file.build_id))
                return;
        question = (struct object_offer){ file.build_id, OBJECT_DEBUGINFO, .quality = QUALITY_SYMTAB };
        st = debuginfo_store_assess_offers(s->objects, &question, 1, &err);
        if (st) {
                http_fail(req, st, &err);
                return;
        }
        if (question.is_wanted) {
                if (strlen(q.otel_id) != 32 || !build_id_from_hex(&file.htlhash, q.otel_id, 32))
                        file.htlhash.size = 0;
                memcpy(file.name, q.name, sizeof file.name);
                upload_hints_put(&s->upload_hints, &file);
        }
        answer_should(req, codec, question.is_wanted, question.reason);
}

static void upload_file_begin(struct http_request *req, void *context)
{
        const char *encoding = http_header(req, "Content-Encoding");
        struct object_claim claim = { .kind = OBJECT_DEBUGINFO,
                                      .source = SOURCE_UPLOAD,
                                      .token = http_token_name(req) };
        struct upload_hint file;
        struct server *s = context;

        if (!parse_gnu_build_id(req, http_path_part(req, "id"), &claim.build_id))
                return;
        claim.is_zstd = encoding && strcasecmp(encoding, "zstd") == 0;
        if (encoding && !claim.is_zstd && strcasecmp(encoding, "identity") != 0) {
                http_fail_code(req, 415, "encoding", "Content-Encoding '%.40s' is not supported", encoding);
                return;
        }
        upload_hints_get(&s->upload_hints, &claim.build_id, &file);
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
        enum connect_codec codec;
        enum status st;

        if (!read_connect_request(req, false, &q, &codec) || !parse_gnu_build_id(req, q.gnu_id, &id))
                return;
        st = debuginfo_store_resolve_alias(s->objects, &id, &owner, &err);
        if (!st)
                st = debuginfo_store_find(s->objects, &owner, OBJECT_DEBUGINFO, &object, &err);
        if (st == ST_NOT_FOUND)
                http_fail_code(req, 404, "not_found", "no upload of build-id %.130s was taken", q.gnu_id);
        else if (st)
                http_fail(req, st, &err);
        else
                connect_respond_empty(req, codec);
}

static const struct http_route routes[] = {
        { .pool = POOL_UPLOAD,
          .method = "POST",
          .path = SERVICE "ShouldInitiateUpload",
          .scope = SCOPE_UPLOAD,
          .max_body = KiB(64),
          .handle = should_initiate_upload,
          .put_error = connect_put_error },
        { .pool = POOL_UPLOAD,
          .method = "POST",
          .path = SERVICE "Upload/{id}",
          .scope = SCOPE_UPLOAD,
          .begin = upload_file_begin,
          .chunk = upload_chunk,
          .handle = upload_file_end,
          .abandon = upload_abandon,
          .writes = true,
          .put_error = connect_put_error },
        { .pool = POOL_UPLOAD,
          .method = "POST",
          .path = SERVICE "UploadFinished",
          .scope = SCOPE_UPLOAD,
          .max_body = KiB(64),
          .handle = upload_finished,
          .put_error = connect_put_error },
};
const struct route_table connect_upload_routes = ROUTE_TABLE(routes);
