/* SPDX-License-Identifier: Apache-2.0 */
#include "server/upload_stream.h"

#include "common/metrics.h"

static struct metric stored_objects = METRIC_COUNTER("cairn_uploads_total", "Uploads that ended.", "outcome=\"stored\"");
static struct metric same_objects = METRIC_COUNTER("cairn_uploads_total", "Uploads that ended.", "outcome=\"same\"");
static struct metric refused_objects = METRIC_COUNTER("cairn_uploads_total", "Uploads that ended.", "outcome=\"refused\"");
static struct metric broken_objects = METRIC_COUNTER("cairn_uploads_total", "Uploads that ended.", "outcome=\"broken_off\"");

static unsigned refusal_code(enum refusal why)
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

static void refuse(struct http_request *req, enum status st, enum refusal why, const struct error *err)
{
        if (why != REFUSED_NOT) {
                metric_add(&refused_objects, 1);
                http_fail_code(req, refusal_code(why), refusal_name(why), "%s", err->text);
                return;
        }
        metric_add(&broken_objects, 1);
        if (st == ST_OS || st == ST_NO_MEMORY)
                log_error("upload", "%s: %s", http_path(req), err->text);
        http_fail(req, st, err);
}

void upload_begin(struct http_request *req, struct server *s, const struct object_claim *claim)
{
        struct object_upload *u;
        enum refusal why;
        struct error err;
        enum status st = object_upload_begin(s->objects, claim, &u, &why, &err);

        if (st)
                refuse(req, st, why, &err);
        else
                http_set_state(req, u);
}

enum status upload_chunk(struct http_request *req, void *context, const void *data, size_t n)
{
        struct error err;
        enum refusal why;
        enum status st = object_upload_append(http_state(req), data, n, &why, &err);

        (void)context;
        if (st)
                refuse(req, st, why, &err);
        return st;
}

void upload_abandon(struct http_request *req, void *context)
{
        (void)context;
        if (http_state(req) && !http_answered(req))
                metric_add(&broken_objects, 1);
        object_upload_abort(http_state(req));
        http_set_state(req, NULL);
}

static void stored(struct http_request *req, struct server *s, const struct stored_object *object)
{
        log_info("upload", "%s: %s of %llu bytes stored, %s", http_path_part(req, "id"), object_kind_name(object->kind),
                 (unsigned long long)object->size_bytes, symbol_quality_name(object->quality));
        indexer_add(s->indexer, &object->build_id, object->kind);
        collector_arrived(s->collector, object->stored_bytes);
}

enum upload_outcome upload_end(struct http_request *req, struct server *s, bool content_with_better, uint64_t *size_ret)
{
        struct object_upload *u = http_state(req);
        struct stored_object object;
        struct error err;
        enum refusal why;
        bool same;
        enum status st;

        http_set_state(req, NULL);
        *size_ret = object_upload_size(u);
        st = object_upload_finish(u, &object, &same, &why, &err);
        if (st && why == REFUSED_INCOMPLETE)
                return UPLOAD_INCOMPLETE;
        if (st && why == REFUSED_NOT_BETTER && content_with_better)
                same = true;
        else if (st) {
                refuse(req, st, why, &err);
                return UPLOAD_ANSWERED;
        }
        metric_add(same ? &same_objects : &stored_objects, 1);
        if (same)
                return UPLOAD_SAME;
        stored(req, s, &object);
        return UPLOAD_STORED;
}
