/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parca.debuginfo.v1alpha1.DebuginfoService: uploads of parca-agent and parca-debuginfo. docs/formats/parca.md
 *
 * The service keeps no state between the calls of an upload: InitiateUpload encodes the parameters that Upload needs in
 * the upload id, which the client sends back.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile-formats/proto/parca_debuginfo.pb-c.h"
#include "server/core/receive_upload.h"
#include "server/protocol/grpc_unary.h"
#include "server/protocol/parca_methods.h"

#define REQUEST_MEMORY_BYTES KiB(64) /* decoded from a message of at most a few KiB */
#define UPLOAD_ID_BYTES 192
#define HTLHASH_HEX 32

enum parca_type { PARCA_DEBUGINFO = 0, PARCA_EXECUTABLE = 1, PARCA_SOURCES = 2, PARCA_SOURCE_MAP = 3 };
enum parca_id_type { PARCA_ID_UNKNOWN = 0, PARCA_ID_GNU = 1, PARCA_ID_HASH = 2, PARCA_ID_GO = 3 };
#define UPLOAD_STRATEGY_GRPC 1

/* ---- file type and build-id of a request ---- */

static bool check_parca_type(struct grpc_call *call, int32_t type, enum object_kind *ret)
{
        if (type == PARCA_SOURCES)
                grpc_call_fail(call, GRPC_UNIMPLEMENTED, 0,
                               "source archives of Parca are unsupported; send sources with cairn-upload --sources");
        else if (type != PARCA_DEBUGINFO && type != PARCA_EXECUTABLE)
                grpc_call_fail(call, GRPC_UNIMPLEMENTED, 0,
                               "files of Parca's type %" PRId32 " are not stored; debuginfo and executables are", type);
        else
                *ret = type == PARCA_EXECUTABLE ? OBJECT_EXECUTABLE : OBJECT_DEBUGINFO;
        return type == PARCA_DEBUGINFO || type == PARCA_EXECUTABLE;
}

static bool parse_parca_id(const char *text, int32_t id_type, struct build_id *ret)
{
        size_t n = strlen(text);

        if (id_type == PARCA_ID_HASH && n != HTLHASH_HEX)
                return false;
        if (build_id_from_hex(ret, text, n))
                return true;
        return (id_type == PARCA_ID_GO || (id_type == PARCA_ID_UNKNOWN && strchr(text, '/'))) &&
               build_id_from_go(ret, text, n);
}

static bool read_parca_id(struct grpc_call *call, const char *text, int32_t id_type, struct build_id *ret)
{
        if (parse_parca_id(text, id_type, ret))
                return true;
        grpc_call_fail(call, GRPC_INVALID_ARGUMENT, 0, "build_id '%.130s' is not a build-id", text);
        return false;
}

/*
 * The quality of a file is unknown before it is sent, so it is assumed by client. parca-agent sends the type of the id;
 * it offers all programs of its host after each start, and most have at best a symbol table. parca-debuginfo does not
 * send the type; it is run on a file that has debug information.
 */
static bool assess_parca_offer(struct grpc_call *call, struct object_offer *offer, int32_t id_type)
{
        struct error err;
        enum status st;

        offer->quality = id_type == PARCA_ID_UNKNOWN ? QUALITY_DWARF : QUALITY_SYMTAB;
        st = debuginfo_store_assess_offers(get_call_space(call)->objects, offer, 1, &err);
        if (st)
                grpc_call_fail_status(call, st, &err);
        return !st;
}

static const char *explain_parca_offer(const struct object_offer *offer, bool force)
{
        if (offer->is_wanted)
                return strcmp(offer->reason, "unknown") == 0 ? "nothing is stored under this build-id"
                                                             : "the file stored under this build-id may be worse";
        return force ? "the file stored under this build-id is as good or better; force replaces it"
                     : "the file stored under this build-id is as good or better";
}

void handle_parca_should_upload(struct grpc_call *call, void *context)
{
        ParcaDebuginfo__ShouldInitiateUploadResponse answer = PARCA_DEBUGINFO__SHOULD_INITIATE_UPLOAD_RESPONSE__INIT;
        const ParcaDebuginfo__ShouldInitiateUploadRequest *request;
        _cleanup_arena_ struct arena memory;
        struct object_offer offer = { 0 };

        (void)context;
        arena_init_budget(&memory, REQUEST_MEMORY_BYTES, MEMORY_UPLOADS);
        request = grpc_call_decode(call, &parca_debuginfo__should_initiate_upload_request__descriptor, &memory);
        if (!request || !check_parca_type(call, request->type, &offer.kind) ||
            !read_parca_id(call, request->build_id, request->build_id_type, &offer.build_id) ||
            !assess_parca_offer(call, &offer, request->build_id_type))
                return;
        answer.should_initiate_upload = offer.is_wanted || request->force;
        answer.reason = (char *)explain_parca_offer(&offer, request->force);
        grpc_call_reply_message(call, &answer.base);
}

/* ---- the upload id: "cairn1-SIZE-ID_TYPE-FORCE-HTLHASH", the last one may be empty ---- */

static bool is_htlhash(const char *text, struct build_id *ret)
{
        return strlen(text) == HTLHASH_HEX && build_id_from_hex(ret, text, HTLHASH_HEX);
}

/* parca-agent's hash is the htlhash of the program on its host, by which profiles may identify it. */
static void format_upload_id(const ParcaDebuginfo__InitiateUploadRequest *request, char ret[static UPLOAD_ID_BYTES])
{
        struct build_id htlhash = { 0 };
        char hex[BUILD_ID_HEX_MAX] = "";

        if (is_htlhash(request->hash, &htlhash))
                build_id_hex(&htlhash, hex);
        snprintf(ret, UPLOAD_ID_BYTES, "cairn1-%" PRIi64 "-%d-%d-%s", request->size,
                 request->build_id_type >= 0 && request->build_id_type <= PARCA_ID_GO ? (int)request->build_id_type : 0,
                 request->force ? 1 : 0, hex);
}

static bool parse_upload_id(const ParcaDebuginfo__UploadInfo *info, struct object_claim *claim)
{
        unsigned id_type, force;
        int used = 0;
        struct build_id id;

        if (sscanf(info->upload_id, "cairn1-%19" SCNu64 "-%1u-%1u-%n", &claim->size_bytes, &id_type, &force, &used) !=
                    3 ||
            !used || !parse_parca_id(info->build_id, (int32_t)id_type, &id))
                return false;
        claim->force = force == 1;
        if (info->upload_id[used] && !is_htlhash(info->upload_id + used, &claim->htlhash))
                return false;
        if (id_type == PARCA_ID_HASH)
                claim->htlhash = id;
        else
                claim->build_id = id;
        return true;
}

void handle_parca_initiate_upload(struct grpc_call *call, void *context)
{
        ParcaDebuginfo__InitiateUploadResponse answer = PARCA_DEBUGINFO__INITIATE_UPLOAD_RESPONSE__INIT;
        ParcaDebuginfo__UploadInstructions instructions = PARCA_DEBUGINFO__UPLOAD_INSTRUCTIONS__INIT;
        const ParcaDebuginfo__InitiateUploadRequest *request;
        _cleanup_arena_ struct arena memory;
        struct object_offer offer = { 0 };
        char upload_id[UPLOAD_ID_BYTES];

        (void)context;
        arena_init_budget(&memory, REQUEST_MEMORY_BYTES, MEMORY_UPLOADS);
        request = grpc_call_decode(call, &parca_debuginfo__initiate_upload_request__descriptor, &memory);
        if (!request || !check_parca_type(call, request->type, &offer.kind) ||
            !read_parca_id(call, request->build_id, request->build_id_type, &offer.build_id))
                return;
        if (request->size <= 0 || (uint64_t)request->size > get_max_upload_bytes()) {
                grpc_call_fail(call, GRPC_INVALID_ARGUMENT, 0, "size is %" PRId64 "; files have 1 to %" PRIu64 " bytes",
                               request->size, get_max_upload_bytes());
                return;
        }
        if (!assess_parca_offer(call, &offer, request->build_id_type))
                return;
        if (!offer.is_wanted && !request->force) {
                grpc_call_fail(call, GRPC_FAILED_PRECONDITION, 0, "%s", explain_parca_offer(&offer, false));
                return;
        }
        format_upload_id(request, upload_id);
        instructions.build_id = request->build_id;
        instructions.upload_id = upload_id;
        instructions.upload_strategy = UPLOAD_STRATEGY_GRPC;
        instructions.type = request->type;
        answer.upload_instructions = &instructions;
        grpc_call_reply_message(call, &answer.base);
}

/* ---- the file ---- */

struct parca_upload {
        struct receiving_upload *receiving;
        char build_id[2 * BUILD_ID_MAX + 128]; /* as received, truncated */
        bool is_counted;                       /* its end is in the metric */
};

static enum grpc_code get_refusal_code(enum refusal why)
{
        return why == REFUSED_BUILD_ID ? GRPC_FAILED_PRECONDITION : GRPC_INVALID_ARGUMENT;
}

static void refuse_parca_upload(struct grpc_call *call, enum status st, const struct error *err)
{
        const enum refusal why = (enum refusal)err->reason;
        struct parca_upload *u = grpc_call_state(call);

        if (u)
                u->is_counted = true;
        report_upload_failure(grpc_call_path(call), st, err);
        if (why != REFUSED_NOT)
                grpc_call_fail(call, get_refusal_code(why), 0, "%s", err->text);
        else
                grpc_call_fail_status(call, st, err);
}

static void begin_parca_upload(struct grpc_call *call, const ParcaDebuginfo__UploadInfo *info)
{
        const struct upload_sender from = { grpc_call_token_name(call), grpc_call_peer_number(call) };
        struct object_claim claim = { .source = SOURCE_UPLOAD, .token = grpc_call_token_name(call) };
        struct parca_upload *u;
        struct error err;
        enum status st;

        if (!check_parca_type(call, info->type, &claim.kind))
                return;
        if (!parse_upload_id(info, &claim)) {
                grpc_call_fail(call, GRPC_FAILED_PRECONDITION, 0,
                               "upload_id '%.130s' was not issued by InitiateUpload for this build-id",
                               info->upload_id);
                return;
        }
        u = calloc(1, sizeof *u);
        st = u ? receive_upload_begin(get_call_space(call), &claim, &from, &u->receiving, &err) : error_no_memory(&err);
        if (st) {
                free(u);
                refuse_parca_upload(call, st, &err);
                return;
        }
        snprintf(u->build_id, sizeof u->build_id, "%s", info->build_id);
        grpc_call_set_state(call, u);
}

void receive_parca_upload(struct grpc_call *call, void *context)
{
        struct parca_upload *u = grpc_call_state(call);
        const ParcaDebuginfo__UploadRequest *request;
        _cleanup_arena_ struct arena memory;
        struct error err;
        enum status st;

        (void)context;
        arena_init_budget(&memory, LIMIT_UPLOAD_MESSAGE_BYTES + REQUEST_MEMORY_BYTES, MEMORY_UPLOADS);
        request = grpc_call_decode(call, &parca_debuginfo__upload_request__descriptor, &memory);
        if (!request)
                return;
        if (!u == !request->info)
                grpc_call_fail(call, GRPC_INVALID_ARGUMENT, 0,
                               "the first message of an upload must have info, and no other may");
        else if (!u)
                begin_parca_upload(call, request->info);
        else {
                st = object_upload_append(receive_upload_get(u->receiving), request->chunk_data.data,
                                          request->chunk_data.len, &err);
                if (st)
                        refuse_parca_upload(call, st, &err);
        }
}

void finish_parca_upload(struct grpc_call *call, void *context)
{
        ParcaDebuginfo__UploadResponse answer = PARCA_DEBUGINFO__UPLOAD_RESPONSE__INIT;
        struct parca_upload *u = grpc_call_state(call);
        struct received_upload received;
        struct error err;
        enum status st;

        (void)context;
        if (!u) {
                grpc_call_fail(call, GRPC_INVALID_ARGUMENT, 0, "the upload has no message");
                return;
        }
        st = receive_upload_finish(get_call_space(call), u->receiving, true, &received, &err);
        if (st) {
                refuse_parca_upload(call, st, &err);
        } else {
                answer.build_id = u->build_id;
                answer.size = received.size_bytes;
                grpc_call_reply_message(call, &answer.base);
        }
        free(u);
}

void abandon_parca_upload(struct grpc_call *call, void *context)
{
        struct parca_upload *u = grpc_call_state(call);

        (void)context;
        if (!u->is_counted) /* cancelled, too slow, or without a thread */
                count_broken_upload();
        receive_upload_abort(u->receiving);
        free(u);
}

/* Upload has already stored the file: this call only checks that it exists. */
void handle_parca_mark_finished(struct grpc_call *call, void *context)
{
        ParcaDebuginfo__MarkUploadFinishedResponse answer = PARCA_DEBUGINFO__MARK_UPLOAD_FINISHED_RESPONSE__INIT;
        const ParcaDebuginfo__MarkUploadFinishedRequest *request;
        _cleanup_arena_ struct arena memory;
        struct stored_object object;
        struct debuginfo_space *s = get_call_space(call);
        struct build_id id, owner;
        enum object_kind kind;
        struct error err;
        enum status st;

        (void)context;
        arena_init_budget(&memory, REQUEST_MEMORY_BYTES, MEMORY_UPLOADS);
        request = grpc_call_decode(call, &parca_debuginfo__mark_upload_finished_request__descriptor, &memory);
        if (!request || !check_parca_type(call, request->type, &kind) ||
            !read_parca_id(call, request->build_id, PARCA_ID_UNKNOWN, &id))
                return;
        st = debuginfo_store_resolve_alias(s->objects, &id, &owner, &err);
        if (!st)
                st = debuginfo_store_find(s->objects, &owner, kind, &object, &err);
        if (st == ST_NOT_FOUND)
                grpc_call_fail(call, GRPC_NOT_FOUND, 0, "no file is stored under build-id %.130s", request->build_id);
        else if (st)
                grpc_call_fail_status(call, st, &err);
        else
                grpc_call_reply_message(call, &answer.base);
}
