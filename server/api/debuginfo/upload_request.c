/* SPDX-License-Identifier: Apache-2.0 */
#include "server/api/debuginfo/upload_request.h"

#include "server/core/receive_upload.h"

static unsigned get_refusal_status(enum refusal why)
{
        switch (why) {
        case REFUSED_BUILD_ID:
        case REFUSED_NOT_BETTER:
        case REFUSED_OFFSET:
                return 409;
        case REFUSED_TOO_BIG:
                return 413;
        default:
                return 400;
        }
}

static void refuse_upload(struct http_request *req, enum status st, const struct error *err)
{
        const enum refusal why = (enum refusal)err->reason;

        report_upload_failure(http_path(req), st, err);
        if (why != REFUSED_NOT)
                http_fail_code(req, get_refusal_status(why), refusal_name(why), "%s", err->text);
        else
                http_fail(req, st, err);
}

void upload_begin(struct http_request *req, const struct object_claim *claim)
{
        const struct upload_sender from = { http_token_name(req), http_peer_number(req) };
        struct receiving_upload *r;
        struct error err;
        enum status st = receive_upload_begin(get_request_space(req), claim, &from, &r, &err);

        if (st)
                refuse_upload(req, st, &err);
        else
                http_set_state(req, r);
}

enum status upload_chunk(struct http_request *req, const void *data, size_t *n)
{
        struct object_upload *u = receive_upload_get(http_state(req));
        uint64_t before = object_upload_get_size(u);
        struct error err;
        enum status st = object_upload_append_some(u, data, n, &err);

        http_add_unpacked(req, object_upload_get_size(u) - before);
        if (st)
                refuse_upload(req, st, &err);
        return st;
}

void upload_abandon(struct http_request *req)
{
        struct receiving_upload *r = http_state(req);

        http_set_state(req, NULL);
        if (r && !http_is_answered(req))
                count_broken_upload();
        receive_upload_abort(r);
}

enum upload_outcome upload_end(struct http_request *req, bool content_with_better, uint64_t *size_ret)
{
        struct receiving_upload *r = http_state(req);
        struct received_upload received;
        struct error err;
        enum status st;

        http_set_state(req, NULL);
        st = receive_upload_finish(get_request_space(req), r, content_with_better, &received, &err);
        *size_ret = received.size_bytes;
        if (st && err.reason == REFUSED_INCOMPLETE)
                return UPLOAD_INCOMPLETE;
        if (st) {
                refuse_upload(req, st, &err);
                return UPLOAD_ANSWERED;
        }
        return received.is_same ? UPLOAD_SAME : UPLOAD_STORED;
}
