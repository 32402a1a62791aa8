/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An answer that is made while it is sent.
 *
 * Problem: making takes time that byte threads don't have, and memory that no
 * answer may have whole; sending takes as long as the reader likes, and no
 * pool thread may wait for that. Model: two pieces. The byte thread sends
 * `sending`; a task of the pool makes `waiting`. When the byte thread has come
 * to the end of `sending`, it takes the other and orders the next; when that is
 * not there yet, the connection sleeps until the task wakes it.
 *
 *  1. A connection is suspended only while a task is queued or runs, so it is
 *     always woken.
 *  2. `waiting`, `state` and `packer` belong to the task while making is true,
 *     else to the byte thread.
 *  3. The last of the two (the response, the task) frees everything: a client
 *     may leave in the middle of a task.
 */
#include <inttypes.h>

#include "common/clock.h"
#include "common/log.h"
#include "http/server_internal.h"

#define CHUNK_BYTES KiB(64)
#define PACK_LEAST_BYTES 1024

struct pieces {
        struct pool_task task; /* first */
        struct MHD_Connection *connection;
        struct handler_pool *pool;
        http_make_piece *make;
        void (*close)(void *state);
        void *state;
        struct packer *packer; /* NULL: as it is */
        struct buf plain, waiting, sending;
        size_t sent;           /* of sending */
        int64_t deadline_ns;
        pthread_mutex_t lock;  /* of what follows */
        unsigned references;
        bool making, ended, failed, suspended;
};

static void pieces_destroy(struct pieces *p)
{
        if (p->close)
                p->close(p->state);
        packer_destroy(p->packer);
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
        last = --p->references == 0;
        pthread_mutex_unlock(&p->lock);
        if (last)
                pieces_destroy(p);
}

/* The next bytes into `to`, which is empty; more than none unless it is the end. */
static enum status make_piece(struct pieces *p, struct buf *to, bool *end, struct error *err)
{
        enum status st = ST_OK;

        *end = false;
        while (!st && !*end && to->size == 0) {
                struct buf *made = p->packer ? &p->plain : to;

                buf_clear(made);
                st = p->make(p->state, made, end, err);
                if (!st)
                        st = buf_status(made, err, "a piece of the answer");
                if (!st && p->packer && (made->size || *end))
                        st = packer_add(p->packer, made->data, made->size, *end, to, err);
        }
        return st;
}

static void run_make(struct pool_task *task)
{
        struct pieces *p = (struct pieces *)task;
        struct error err;
        bool end;
        enum status st = make_piece(p, &p->waiting, &end, &err);

        if (st)
                log_error("http", "an answer ends in the middle: %s", err.text);
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

/* Under the lock. */
static void order_next(struct pieces *p)
{
        buf_clear(&p->waiting);
        p->making = true;
        p->references++;
        if (handler_pool_push(p->pool, &p->task))
                return;
        p->references--;
        p->making = false;
        p->failed = true;
}

static void take_waiting(struct pieces *p)
{
        struct buf sent = p->sending;

        p->sending = p->waiting;
        p->waiting = sent;
        p->sent = 0;
        buf_clear(&p->waiting);
}

/* When all of `sending` is sent. 1: there is more; else what the reader of a response says. */
static ssize_t next_piece(struct pieces *p)
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
                take_waiting(p);
                if (p->sending.size == 0)
                        result = MHD_CONTENT_READER_END_OF_STREAM;
                else if (!p->ended)
                        order_next(p);
        }
        pthread_mutex_unlock(&p->lock);
        if (result == MHD_CONTENT_READER_END_WITH_ERROR)
                connection_reset(p->connection);
        return result;
}

static ssize_t pieces_read(void *context, uint64_t at, char *to, size_t n)
{
        struct pieces *p = context;
        size_t left = p->sending.size - p->sent;

        (void)at;
        if (left == 0) {
                ssize_t result = next_piece(p);

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
        *p = (struct pieces){ .task.run = run_make,
                              .connection = req->connection,
                              .pool = &req->server->pools[req->route->pool],
                              .make = make,
                              .close = close_state,
                              .state = state,
                              .deadline_ns = monotonic_ns() + LIMIT_HTTP_STREAM_S * 1000000000ll,
                              .references = 1 };
        pthread_mutex_init(&p->lock, NULL);
        buf_init_budget(&p->plain, piece_max, MEMORY_ANSWERS);
        buf_init_budget(&p->waiting, piece_max, MEMORY_ANSWERS);
        buf_init_budget(&p->sending, piece_max, MEMORY_ANSWERS);
        return p;
}

static const char *packing_name(enum packing packing)
{
        return packing == PACKING_GZIP ? "gzip" : "zstd";
}

static enum status pack_first(struct http_request *req, struct pieces *p, const char *content_type, bool end,
                              struct error *err)
{
        enum packing packing = accepted_packing(http_header(req, "Accept-Encoding"));
        enum status st;

        if (http_is_type(content_type, "application/octet-stream"))
                return ST_OK;
        http_set_header(req, "Vary", "Accept-Encoding");
        if (packing == PACKING_NONE || (end && p->sending.size < PACK_LEAST_BYTES))
                return ST_OK;
        st = packer_create(packing, &p->packer, err);
        if (!st)
                st = packer_add(p->packer, p->sending.data, p->sending.size, end, &p->waiting, err);
        if (st)
                return st;
        http_set_header(req, "Content-Encoding", packing_name(packing));
        take_waiting(p);
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
        st = make_piece(p, &p->sending, &end, &err);
        if (!st)
                st = pack_first(req, p, content_type, end, &err);
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
        order_next(p);
        response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, CHUNK_BYTES, pieces_read, p, pieces_release);
        answer_set(req, 200, content_type, response);
        if (!response)
                pieces_release(p);
}
