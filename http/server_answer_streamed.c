/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Responses of unknown size, generated while they are sent.
 *
 * Problem: generating a response would block a byte thread and needs more memory than a response may hold; sending
 * takes as long as the client reads, and no pool thread may wait for that.
 *
 * Model: double buffering. The byte thread sends `sending`; a pool task fills `waiting`. At the end of `sending` the
 * byte thread swaps the two and submits the next task; if `waiting` is not ready, the connection is suspended until the
 * task resumes it.
 *
 *  1. A connection is suspended only while a task is queued or running, so it is
 *     always resumed.
 *  2. `waiting`, `state` and `compressor` belong to the task while making is true,
 *     otherwise to the byte thread.
 *  3. The last of the two (response, task) frees everything: a client may disconnect while a task runs.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/program/log.h"
#include "http/http_server_internal.h"

#define CHUNK_BYTES KiB(64)
#define PACK_LEAST_BYTES 1024

struct pieces {
        struct pool_task task; /* first */
        struct MHD_Connection *connection;
        struct handler_pool *pool;
        http_make_piece *make;
        void (*close)(void *state);
        void *state;
        struct stream_compressor *compressor; /* NULL: not compressed */
        struct buf plain, waiting, sending;
        size_t sent; /* bytes of `sending` already sent */
        int64_t deadline_ns;
        struct cancel_flag *cancel;
        char request_id[REQUEST_ID_SIZE];
        pthread_mutex_t lock; /* protects the members below */
        unsigned references;
        bool making, ended, failed, suspended;
};

static void pieces_destroy(struct pieces *p)
{
        if (p->close)
                p->close(p->state);
        stream_compressor_destroy(p->compressor);
        cancel_flag_unref(p->cancel);
        buf_deinit(&p->plain);
        buf_deinit(&p->waiting);
        buf_deinit(&p->sending);
        pthread_mutex_destroy(&p->lock);
        free(p);
}

static void pieces_release(void *context)
{
        struct pieces *p = context;
        bool last;

        pthread_mutex_lock(&p->lock);
        assert(p->references > 0);
        last = --p->references == 0;
        pthread_mutex_unlock(&p->lock);
        if (last)
                pieces_destroy(p);
}

/* Append the next piece to `to`, which is empty; it is empty afterwards only at the end. */
static enum status make_next_piece(struct pieces *p, struct buf *to, bool *end, struct error *err)
{
        enum status st = ST_OK;

        *end = false;
        while (!st && !*end && to->size == 0) {
                struct buf *made = p->compressor ? &p->plain : to;

                buf_clear(made);
                st = p->make(p->state, made, end, err);
                if (!st)
                        st = buf_status(made, err, "a piece of the answer");
                if (!st && p->compressor && (made->size || *end))
                        st = stream_compressor_add(p->compressor, made->data, made->size, *end, to, err);
        }
        return st;
}

static void run_piece_task(struct pool_task *task)
{
        struct pieces *p = (struct pieces *)task;
        struct error err;
        bool end = false, is_cancelled = atomic_load(&p->cancel->value);
        enum status st;

        log_set_request(p->request_id);
        st = is_cancelled ? ST_TIMEOUT : make_next_piece(p, &p->waiting, &end, &err);
        if (st && !is_cancelled && !atomic_load(&p->cancel->value))
                log_error("http", "a response was cut off: %s", err.text);
        log_set_request(NULL);
        pthread_mutex_lock(&p->lock);
        p->making = false;
        p->ended = end;
        p->failed = st != ST_OK;
        if (p->suspended)
                MHD_resume_connection(p->connection);
        p->suspended = false;
        pthread_mutex_unlock(&p->lock);
        pieces_release(p);
}

/* Caller holds p->lock. */
static void submit_piece_task(struct pieces *p)
{
        assert(!p->making);
        buf_clear(&p->waiting);
        p->making = true;
        p->references++;
        if (handler_pool_push(p->pool, &p->task))
                return;
        p->references--;
        p->making = false;
        p->failed = true;
}

static void swap_waiting_piece(struct pieces *p)
{
        struct buf sent = p->sending;

        p->sending = p->waiting;
        p->waiting = sent;
        p->sent = 0;
        buf_clear(&p->waiting);
}

/* All of `sending` was sent: start the next piece. Returns 1 if there is one, else the result for libmicrohttpd. */
static ssize_t start_next_piece(struct pieces *p)
{
        ssize_t result = 1;

        pthread_mutex_lock(&p->lock);
        if (p->making) {
                p->suspended = true;
                MHD_suspend_connection(p->connection);
                result = 0;
        } else if (p->failed || monotonic_ns() > p->deadline_ns) {
                result = MHD_CONTENT_READER_END_WITH_ERROR;
        } else {
                swap_waiting_piece(p);
                if (p->sending.size == 0)
                        result = MHD_CONTENT_READER_END_OF_STREAM;
                else if (!p->ended)
                        submit_piece_task(p);
        }
        pthread_mutex_unlock(&p->lock);
        if (result == MHD_CONTENT_READER_END_WITH_ERROR)
                reset_tcp_connection(p->connection);
        return result;
}

static ssize_t pieces_read(void *context, uint64_t at, char *to, size_t n)
{
        struct pieces *p = context;
        size_t left = p->sending.size - p->sent;

        (void)at;
        if (left == 0) {
                ssize_t result = start_next_piece(p);

                if (result != 1)
                        return result;
                left = p->sending.size;
        }
        if (n > left)
                n = left;
        memcpy(to, p->sending.data + p->sent, n);
        p->sent += n;
        return (ssize_t)n;
}

static struct pieces *pieces_create(struct http_request *req, size_t piece_max, http_make_piece *make,
                                    void (*close_state)(void *state), void *state)
{
        struct pieces *p = calloc(1, sizeof *p);

        if (!p) {
                if (close_state)
                        close_state(state);
                return NULL;
        }
        *p = (struct pieces){ .task.run = run_piece_task,
                              .task.lane = req->task.lane,
                              .task.sender = req->task.sender,
                              .connection = req->connection,
                              .pool = &req->server->pools[req->route->pool],
                              .make = make,
                              .close = close_state,
                              .state = state,
                              .deadline_ns = monotonic_ns() + LIMIT_HTTP_STREAM_S * 1000000000ll,
                              .cancel = cancel_flag_ref(req->cancel),
                              .references = 1 };
        memcpy(p->request_id, req->id, sizeof p->request_id);
        pthread_mutex_init(&p->lock, NULL);
        buf_init_budget(&p->plain, piece_max, MEMORY_ANSWERS);
        buf_init_budget(&p->waiting, piece_max, MEMORY_ANSWERS);
        buf_init_budget(&p->sending, piece_max, MEMORY_ANSWERS);
        return p;
}

static const char *compression_name(enum compression compression)
{
        return compression == COMPRESSION_GZIP ? "gzip" : "zstd";
}

static enum status pack_first_piece(struct http_request *req, struct pieces *p, const char *content_type, bool end,
                                    struct error *err)
{
        enum compression compression = choose_compression(http_header(req, "Accept-Encoding"));
        enum status st;

        if (http_is_type(content_type, "application/octet-stream"))
                return ST_OK;
        http_set_header(req, "Vary", "Accept-Encoding");
        if (compression == COMPRESSION_NONE || (end && p->sending.size < PACK_LEAST_BYTES))
                return ST_OK;
        st = stream_compressor_create(compression, &p->compressor, err);
        if (!st)
                st = stream_compressor_add(p->compressor, p->sending.data, p->sending.size, end, &p->waiting, err);
        if (st)
                return st;
        http_set_header(req, "Content-Encoding", compression_name(compression));
        swap_waiting_piece(p);
        return ST_OK;
}

void http_respond_pieces(struct http_request *req, const char *content_type, size_t piece_max, http_make_piece *make,
                         void (*close_state)(void *state), void *state)
{
        struct pieces *p = pieces_create(req, piece_max, make, close_state, state);
        struct MHD_Response *response;
        struct error err;
        enum status st;
        bool end;

        if (!p) {
                http_fail(req, ST_NO_MEMORY, NULL);
                return;
        }
        st = make_next_piece(p, &p->sending, &end, &err);
        if (!st)
                st = pack_first_piece(req, p, content_type, end, &err);
        if (st) {
                pieces_destroy(p);
                http_fail(req, st, &err);
                return;
        }
        if (end) {
                http_respond_buf(req, 200, content_type, &p->sending);
                pieces_destroy(p);
                return;
        }
        atomic_store(&p->cancel->value, false); /* the response has its own time limit */
        req->answer_expires_ns = p->deadline_ns;
        submit_piece_task(p);
        response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, CHUNK_BYTES, pieces_read, p, pieces_release);
        request_set_response(req, 200, content_type, response);
        if (!response)
                pieces_release(p);
}

void http_respond_packed(struct http_request *req, unsigned code, const char *content_type, struct buf *body)
{
        enum compression compression = choose_compression(http_header(req, "Accept-Encoding"));
        struct stream_compressor *compressor = NULL;
        struct buf packed;
        struct error err;
        enum status st;

        http_set_header(req, "Vary", "Accept-Encoding");
        if (body->failed || compression == COMPRESSION_NONE || body->size < PACK_LEAST_BYTES) {
                http_respond_buf(req, code, content_type, body);
                return;
        }
        buf_init_budget(&packed, LIMIT_RESPONSE_BYTES, MEMORY_ANSWERS);
        st = stream_compressor_create(compression, &compressor, &err);
        if (!st)
                st = stream_compressor_add(compressor, body->data, body->size, true, &packed, &err);
        stream_compressor_destroy(compressor);
        buf_deinit(body);
        if (st) {
                buf_deinit(&packed);
                http_fail(req, st, &err);
                return;
        }
        http_set_header(req, "Content-Encoding", compression_name(compression));
        http_respond_buf(req, code, content_type, &packed);
}
