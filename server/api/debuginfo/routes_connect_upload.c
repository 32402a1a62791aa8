/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debuginfo uploads of Pyroscope's agents and profilecli: two unary Connect calls, in JSON or protobuf, around a plain
 * POST of the file. docs/formats/upload-connect.md
 */
#include <stddef.h>
#include <string.h>

#include "profile-formats/proto/connect_upload.pb-c.h"
#include "server/api/debuginfo/upload_request.h"
#include "server/core/route_tables.h"
#include "server/protocol/connect_call.h"
#include "server/protocol/connect_unary.h"

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

static bool parse_gnu_build_id(struct http_request *req, const char *text, struct build_id *ret)
{
        if (build_id_from_hex(ret, text, strlen(text)))
                return true;
        http_fail_code(req, 400, "build_id", "gnu_build_id '%.130s' is not a build-id", text);
        return false;
}

static void answer_should(const struct connect_unary *call, bool should, const char *reason)
{
        ConnectUpload__ShouldInitiateUploadResponse response = CONNECT_UPLOAD__SHOULD_INITIATE_UPLOAD_RESPONSE__INIT;

        response.should_initiate_upload = should;
        response.reason = (char *)reason;
        connect_unary_respond(call, &response.base);
}

/* The client's metadata of the file; a name that is too long is omitted. */
static struct upload_hint make_upload_hint(const ConnectUpload__FileMetadata *file, const struct build_id *id)
{
        struct upload_hint hint = { .build_id = *id, .name = "" };

        if (strlen(file->otel_file_id) != 32 || !build_id_from_hex(&hint.htlhash, file->otel_file_id, 32))
                hint.htlhash.size = 0;
        if (strlen(file->name) < sizeof hint.name)
                memcpy(hint.name, file->name, strlen(file->name) + 1);
        return hint;
}

/*
 * The quality of the file is unknown before it is sent. It is requested unless a symbol table or better is stored,
 * because most programs on hosts have at best a symbol table.
 */
static void should_initiate_upload(struct http_request *req)
{
        const ConnectUpload__ShouldInitiateUploadRequest *request;
        _cleanup_connect_unary_ struct connect_unary call = { 0 };
        struct object_offer offer;
        struct upload_hint hint;
        struct debuginfo_space *s = get_request_space(req);
        struct build_id id;
        struct error err;
        enum status st;

        if (!connect_unary_begin(req, &connect_upload__should_initiate_upload_request__descriptor, &call))
                return;
        request = call.message;
        if (!request->file || !*request->file->gnu_build_id) {
                answer_should(&call, false, "the file has no gnu_build_id, which uploads need");
                return;
        }
        if (!parse_gnu_build_id(req, request->file->gnu_build_id, &id))
                return;
        offer = (struct object_offer){ id, OBJECT_DEBUGINFO, .quality = QUALITY_SYMTAB };
        st = debuginfo_store_assess_offers(s->objects, &offer, 1, &err);
        if (st) {
                http_fail(req, st, &err);
                return;
        }
        if (offer.is_wanted) {
                hint = make_upload_hint(request->file, &id);
                upload_hints_put(&s->upload_hints, &hint);
        }
        answer_should(&call, offer.is_wanted, offer.reason);
}

static void upload_file_begin(struct http_request *req)
{
        const char *encoding = http_header(req, "Content-Encoding");
        struct object_claim claim = { .kind = OBJECT_DEBUGINFO,
                                      .source = SOURCE_UPLOAD,
                                      .token = http_token_name(req) };
        struct upload_hint file;
        struct debuginfo_space *s = get_request_space(req);

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
        upload_begin(req, &claim);
}

static void upload_file_end(struct http_request *req)
{
        uint64_t size;

        if (upload_end(req, true, &size) != UPLOAD_ANSWERED)
                http_respond(req, 200, "application/json", "{}", 2);
}

static void upload_finished(struct http_request *req)
{
        ConnectUpload__UploadFinishedResponse response = CONNECT_UPLOAD__UPLOAD_FINISHED_RESPONSE__INIT;
        const ConnectUpload__UploadFinishedRequest *request;
        _cleanup_connect_unary_ struct connect_unary call = { 0 };
        struct stored_object object;
        struct debuginfo_space *s = get_request_space(req);
        struct build_id id, owner;
        struct error err;
        enum status st;

        if (!connect_unary_begin(req, &connect_upload__upload_finished_request__descriptor, &call))
                return;
        request = call.message;
        if (!parse_gnu_build_id(req, request->gnu_build_id, &id))
                return;
        st = debuginfo_store_resolve_alias(s->objects, &id, &owner, &err);
        if (!st)
                st = debuginfo_store_find(s->objects, &owner, OBJECT_DEBUGINFO, &object, &err);
        if (st == ST_NOT_FOUND)
                http_fail_code(req, 404, "not_found", "no debuginfo is stored under build-id %.130s",
                               request->gnu_build_id);
        else if (st)
                http_fail(req, st, &err);
        else
                connect_unary_respond(&call, &response.base);
}

static const struct http_route routes[] = {
        { ROUTE("POST", SERVICE "ShouldInitiateUpload", SCOPE_UPLOAD, TENANCY_SPACE), .pool = POOL_UPLOAD,
          .max_body = KiB(64), .handle = should_initiate_upload, .put_error = connect_put_error },
        { ROUTE("POST", SERVICE "Upload/{id}", SCOPE_UPLOAD, TENANCY_SPACE), .pool = POOL_UPLOAD,
          .begin = upload_file_begin, .chunk = upload_chunk, .handle = upload_file_end, .abandon = upload_abandon,
          .writes = true, .put_error = connect_put_error },
        { ROUTE("POST", SERVICE "UploadFinished", SCOPE_UPLOAD, TENANCY_SPACE), .pool = POOL_UPLOAD,
          .max_body = KiB(64), .handle = upload_finished, .put_error = connect_put_error },
};
const struct route_table connect_upload_routes = ROUTE_TABLE(ROLE_DEBUGINFOD, routes);
