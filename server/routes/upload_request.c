/* SPDX-License-Identifier: Apache-2.0 */
#include "server/routes/upload_request.h"

#include <pthread.h>
#include <string.h>

#include "common/hash.h"
#include "common/limits.h"
#include "common/metrics.h"

static struct metric stored_objects =
        METRIC_COUNTER("cairn_uploads_total", "Uploads that ended.", "outcome=\"stored\"");
static struct metric same_objects = METRIC_COUNTER("cairn_uploads_total", "Uploads that ended.", "outcome=\"same\"");
static struct metric refused_objects =
        METRIC_COUNTER("cairn_uploads_total", "Uploads that ended.", "outcome=\"refused\"");
static struct metric broken_objects =
        METRIC_COUNTER("cairn_uploads_total", "Uploads that ended.", "outcome=\"broken_off\"");

/* Uploads in progress, and whose they are. */
static struct {
        pthread_mutex_t lock;
        uint64_t clients[LIMIT_UPLOADS];
        unsigned count;
} receiving = { .lock = PTHREAD_MUTEX_INITIALIZER };
static struct metric receiving_metric = METRIC_GAUGE("cairn_uploads_receiving", "Uploads in progress.", "");

struct receiving_upload {
        struct object_upload *upload;
        uint64_t client;
};

/* A token at an address. */
static uint64_t client_of(const struct http_request *req)
{
        const char *name = http_token_name(req);
        struct hash128 h = hash_bytes128(name, strlen(name));
        uint64_t token;

        memcpy(&token, h.bytes, sizeof token);
        return token ^ http_peer_number(req);
}

static enum status enter_receiving(uint64_t client, struct error *err)
{
        unsigned own = 0;
        enum status st = ST_OK;

        pthread_mutex_lock(&receiving.lock);
        for (unsigned i = 0; i < receiving.count; i++)
                own += receiving.clients[i] == client;
        if (receiving.count == LIMIT_UPLOADS)
                st = error_set(err, ST_BUSY, "%u uploads are in progress, the most at one time; retry later",
                               LIMIT_UPLOADS);
        else if (own >= LIMIT_UPLOADS_PER_CLIENT)
                st = error_set(
                        err, ST_BUSY,
                        "%u uploads of this token and address are in progress, the most at one time; retry later",
                        LIMIT_UPLOADS_PER_CLIENT);
        else
                receiving.clients[receiving.count++] = client;
        pthread_mutex_unlock(&receiving.lock);
        if (!st)
                metric_add(&receiving_metric, 1);
        return st;
}

static void leave_receiving(uint64_t client)
{
        pthread_mutex_lock(&receiving.lock);
        for (unsigned i = 0; i < receiving.count; i++) {
                if (receiving.clients[i] != client)
                        continue;
                receiving.clients[i] = receiving.clients[--receiving.count];
                break;
        }
        pthread_mutex_unlock(&receiving.lock);
        metric_add(&receiving_metric, -1);
}

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

static void refuse_upload(struct http_request *req, enum status st, const struct error *err)
{
        const enum refusal why = (enum refusal)err->reason;

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
        struct receiving_upload *r = calloc(1, sizeof *r);
        struct error err;
        enum status st = r ? enter_receiving(r->client = client_of(req), &err) : error_no_memory(&err);

        if (!st) {
                st = object_upload_begin(s->objects, claim, &r->upload, &err);
                if (st)
                        leave_receiving(r->client);
        }
        if (!st) {
                http_set_state(req, r);
                return;
        }
        refuse_upload(req, st, &err);
        free(r);
}

/* The request's upload, detached from it; NULL if none. */
static struct object_upload *end_receiving(struct http_request *req)
{
        struct receiving_upload *r = http_state(req);
        struct object_upload *u = r ? r->upload : NULL;

        http_set_state(req, NULL);
        if (r)
                leave_receiving(r->client);
        free(r);
        return u;
}

enum status upload_chunk(struct http_request *req, void *context, const void *data, size_t *n)
{
        struct object_upload *u = ((struct receiving_upload *)http_state(req))->upload;
        uint64_t before = object_upload_get_size(u);
        struct error err;
        enum status st = object_upload_append_some(u, data, n, &err);

        (void)context;
        http_add_unpacked(req, object_upload_get_size(u) - before);
        if (st)
                refuse_upload(req, st, &err);
        return st;
}

void upload_abandon(struct http_request *req, void *context)
{
        (void)context;
        if (http_state(req) && !http_is_answered(req))
                metric_add(&broken_objects, 1);
        object_upload_abort(end_receiving(req));
}

/* @param fd the uploaded file, taken; -1 none. */
static void answer_stored(struct http_request *req, struct server *s, const struct stored_object *object, int fd)
{
        log_info("upload", "%s: %s of %llu bytes stored, %s", http_path_part(req, "id"), object_kind_name(object->kind),
                 (unsigned long long)object->size_bytes, symbol_quality_name(object->quality));
        indexer_enqueue_file(s->indexer, object, fd);
        gc_thread_count_arrival(s->gc_thread, object->stored_bytes);
}

enum upload_outcome upload_end(struct http_request *req, struct server *s, bool content_with_better, uint64_t *size_ret)
{
        struct object_upload *u = end_receiving(req);
        struct stored_object object;
        struct error err;
        bool same;
        int fd = -1;
        enum status st;

        *size_ret = object_upload_get_size(u);
        st = object_upload_finish_open(u, &object, &same, &fd, &err);
        if (st && err.reason == REFUSED_INCOMPLETE)
                return UPLOAD_INCOMPLETE;
        if (st && err.reason == REFUSED_NOT_BETTER && content_with_better)
                same = true;
        else if (st) {
                refuse_upload(req, st, &err);
                return UPLOAD_ANSWERED;
        }
        metric_add(same ? &same_objects : &stored_objects, 1);
        if (same)
                return UPLOAD_SAME;
        answer_stored(req, s, &object, fd);
        return UPLOAD_STORED;
}
