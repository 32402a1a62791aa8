/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server_internal.h"

static struct http_request *pop(struct handler_pool *p)
{
        struct http_request *req;

        pthread_mutex_lock(&p->lock);
        while (STAILQ_EMPTY(&p->queue) && !p->stop)
                pthread_cond_wait(&p->work, &p->lock);
        req = STAILQ_FIRST(&p->queue);
        if (req)
                STAILQ_REMOVE_HEAD(&p->queue, next);
        pthread_mutex_unlock(&p->lock);
        return req;
}

static void run(struct http_request *req)
{
        struct error err;
        enum status st = req->route->chunk ? ST_OK : request_unpack_body(req, &err);

        req->stream_open = false;
        if (st)
                http_fail(req, st, &err);
        else
                req->route->handle(req, req->server->context);
        if (!req->answered)
                http_fail_code(req, 500, "internal", "no answer was made");
        MHD_resume_connection(req->connection); /* from here on the request is the byte thread's */
}

static void *serve(void *arg)
{
        struct handler_pool *p = arg;
        struct http_request *req;

        while ((req = pop(p)))
                run(req);
        return NULL;
}

enum status handler_pool_start(struct handler_pool *p, unsigned threads, const char *name, struct error *err)
{
        STAILQ_INIT(&p->queue);
        pthread_mutex_init(&p->lock, NULL);
        pthread_cond_init(&p->work, NULL);
        p->stop = false;
        p->thread_count = 0;
        p->threads = calloc(threads, sizeof *p->threads);
        if (!p->threads)
                return error_no_memory(err);
        for (; p->thread_count < threads; p->thread_count++) {
                int failed = pthread_create(&p->threads[p->thread_count], NULL, serve, p);

                if (failed)
                        return error_os(err, failed, "cannot start a thread");
                pthread_setname_np(p->threads[p->thread_count], name);
        }
        return ST_OK;
}

bool handler_pool_push(struct handler_pool *p, struct http_request *req)
{
        bool open;

        pthread_mutex_lock(&p->lock);
        open = !p->stop;
        if (open) {
                STAILQ_INSERT_TAIL(&p->queue, req, next);
                pthread_cond_signal(&p->work);
        }
        pthread_mutex_unlock(&p->lock);
        return open;
}

void handler_pool_stop(struct handler_pool *p)
{
        if (!p->threads)
                return;
        pthread_mutex_lock(&p->lock);
        p->stop = true;
        pthread_cond_broadcast(&p->work);
        pthread_mutex_unlock(&p->lock);
        for (unsigned i = 0; i < p->thread_count; i++)
                pthread_join(p->threads[i], NULL);
        p->thread_count = 0;
}

void handler_pool_deinit(struct handler_pool *p)
{
        if (!p->threads)
                return;
        free(p->threads);
        p->threads = NULL;
        pthread_cond_destroy(&p->work);
        pthread_mutex_destroy(&p->lock);
}
