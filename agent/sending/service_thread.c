/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sending/service_thread.h"

#include <assert.h>
#include <string.h>
#include <time.h>

#include "common/limits.h"

enum status service_thread_init(struct service_thread *t, struct http_client_options *o, struct error *err)
{
        enum status st;

        assert(!t->client && !t->is_started);
        o->stop = &t->stop;
        st = http_client_create(o, &t->client, err);
        if (st)
                return st;
        pthread_mutex_init(&t->lock, NULL);
        pthread_cond_init(&t->changed, NULL);
        return ST_OK;
}

enum status service_thread_start(struct service_thread *t, const char *name, void *(*run)(void *), void *arg,
                                 struct error *err)
{
        int e;

        assert(!t->is_started && strlen(name) < 16);
        e = pthread_create(&t->thread, NULL, run, arg);
        if (e)
                return error_os(err, e, "cannot start the thread '%s'", name);
        pthread_setname_np(t->thread, name);
        t->is_started = true;
        return ST_OK;
}

bool service_thread_stop(struct service_thread *t)
{
        struct timespec until;

        if (!t->is_started)
                return true;
        pthread_mutex_lock(&t->lock);
        atomic_store(&t->stop, true);
        pthread_cond_broadcast(&t->changed);
        pthread_mutex_unlock(&t->lock);
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += LIMIT_AGENT_THREAD_WAIT_S;
        if (pthread_clockjoin_np(t->thread, NULL, CLOCK_MONOTONIC, &until))
                return false;
        t->is_started = false;
        return true;
}

void service_thread_deinit(struct service_thread *t)
{
        assert(!t->is_started);
        pthread_cond_destroy(&t->changed);
        pthread_mutex_destroy(&t->lock);
        http_client_destroy(t->client);
}
