/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/receive_upload.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
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

static struct histogram duration =
        HISTOGRAM("cairn_upload_duration_seconds",
                  "Time from the start of an upload until its object is verified and stored.", "");

/* Uploads in progress, with their clients. */
static struct {
        pthread_mutex_t lock;
        uint64_t clients[LIMIT_UPLOADS_MOST];
        unsigned count, max;
} receiving = { .lock = PTHREAD_MUTEX_INITIALIZER, .max = LIMIT_UPLOADS };
static _Atomic uint64_t max_object_bytes = LIMIT_OBJECT_BYTES;
static struct metric receiving_metric = METRIC_GAUGE("cairn_uploads_receiving", "Uploads in progress.", "");

struct receiving_upload {
        struct object_upload *upload;
        uint64_t client;
        int64_t began_ns;
};

void register_upload_duration(void)
{
        metric_register(&duration.metric);
}

void set_upload_limits(uint64_t object_bytes, uint64_t uploads)
{
        atomic_store(&max_object_bytes,
                     object_bytes && object_bytes < LIMIT_OBJECT_BYTES ? object_bytes : LIMIT_OBJECT_BYTES);
        pthread_mutex_lock(&receiving.lock);
        receiving.max = !uploads                       ? LIMIT_UPLOADS
                        : uploads < LIMIT_UPLOADS_MOST ? (unsigned)uploads
                                                       : LIMIT_UPLOADS_MOST;
        pthread_mutex_unlock(&receiving.lock);
}

uint64_t get_max_upload_bytes(void)
{
        return atomic_load(&max_object_bytes);
}

static uint64_t compute_client_number(const struct upload_sender *from)
{
        struct hash128 h = hash_bytes128(from->token_name, strlen(from->token_name));
        uint64_t token;

        memcpy(&token, h.bytes, sizeof token);
        return token ^ from->peer_number;
}

static enum status enter_receiving(uint64_t client, struct error *err)
{
        unsigned own = 0, own_max;
        enum status st = ST_OK;

        pthread_mutex_lock(&receiving.lock);
        own_max = (receiving.max + 3) / 4;
        for (unsigned i = 0; i < receiving.count; i++)
                own += receiving.clients[i] == client;
        if (receiving.count >= receiving.max)
                st = error_set(err, ST_BUSY, "%u uploads are in progress, the maximum (--max-uploads); retry later",
                               receiving.max);
        else if (own >= own_max)
                st = error_set(err, ST_BUSY,
                               "%u uploads of this token and address are in progress, the maximum; retry later",
                               own_max);
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

void report_upload_failure(const char *path, enum status st, const struct error *err)
{
        if (err->reason != REFUSED_NOT) {
                metric_add(&refused_objects, 1);
                return;
        }
        metric_add(&broken_objects, 1);
        if (st == ST_OS || st == ST_NO_MEMORY)
                log_error("upload", "%s: %s", path, err->text);
}

void count_broken_upload(void)
{
        metric_add(&broken_objects, 1);
}

enum status receive_upload_begin(struct debuginfo_space *s, const struct object_claim *claim,
                                 const struct upload_sender *from, struct receiving_upload **ret, struct error *err)
{
        _cleanup_free_ struct receiving_upload *r = calloc(1, sizeof *r);
        struct object_claim limited = *claim;
        enum status st;

        if (!r)
                return error_no_memory(err);
        limited.max_bytes = get_max_upload_bytes();
        r->began_ns = monotonic_ns();
        r->client = compute_client_number(from);
        st = enter_receiving(r->client, err);
        if (st)
                return st;
        st = object_upload_begin(s->objects, &limited, &r->upload, err);
        if (st) {
                leave_receiving(r->client);
                return st;
        }
        *ret = steal_ptr(r);
        return ST_OK;
}

struct object_upload *receive_upload_get(struct receiving_upload *r)
{
        return r->upload;
}

/* Remove the upload from those in progress and return it. */
static struct object_upload *end_receiving(struct receiving_upload *r)
{
        struct object_upload *u = r ? r->upload : NULL;

        if (r)
                leave_receiving(r->client);
        free(r);
        return u;
}

void receive_upload_abort(struct receiving_upload *r)
{
        object_upload_abort(end_receiving(r));
}

/* @param fd  the uploaded file, taken; -1: none. */
static void index_received(struct debuginfo_space *s, const struct stored_object *object, int fd)
{
        char hex[BUILD_ID_HEX_MAX];

        log_info("upload", "%s: %s of %llu bytes stored, %s", build_id_hex(&object->build_id, hex),
                 object_kind_name(object->kind), (unsigned long long)object->size_bytes,
                 symbol_quality_name(object->quality));
        if (s->indexer) { /* else nodes with the role symbolize find it in the table of objects */
                indexer_enqueue_file(s->indexer, object, fd);
                gc_thread_count_arrival(s->gc_thread, object->stored_bytes);
        } else if (fd >= 0) {
                close(fd);
        }
}

enum status receive_upload_finish(struct debuginfo_space *s, struct receiving_upload *r, bool content_with_better,
                                  struct received_upload *ret, struct error *err)
{
        int64_t began_ns = r->began_ns;
        struct object_upload *u = end_receiving(r);
        struct stored_object object;
        bool same;
        int fd = -1;
        enum status st;

        *ret = (struct received_upload){ .size_bytes = object_upload_get_size(u) };
        st = object_upload_finish_open(u, &object, &same, &fd, err);
        if (st && err->reason == REFUSED_NOT_BETTER && content_with_better)
                same = true;
        else if (st)
                return st;
        metric_add(same ? &same_objects : &stored_objects, 1);
        ret->is_same = same;
        if (!same)
                histogram_observe(&duration, monotonic_ns() - began_ns);
        if (!same)
                index_received(s, &object, fd);
        return ST_OK;
}
