/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server_internal.h"

static struct pool_task *pop(struct handler_pool *p)
{
        struct pool_task *task;

        pthread_mutex_lock(&p->lock);
        while (STAILQ_EMPTY(&p->queue) && !p->stop)
                pthread_cond_wait(&p->work, &p->lock);
        task = STAILQ_FIRST(&p->queue);
        if (task)
                STAILQ_REMOVE_HEAD(&p->queue, next);
        pthread_mutex_unlock(&p->lock);
        return task;
}

static void *serve(void *arg)
{
        struct handler_pool *p = arg;
        struct pool_task *task;

        while ((task = pop(p)))
                task->run(task);
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

bool handler_pool_push(struct handler_pool *p, struct pool_task *task)
{
        bool open;

        pthread_mutex_lock(&p->lock);
        open = !p->stop;
        if (open) {
                STAILQ_INSERT_TAIL(&p->queue, task, next);
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
