/* SPDX-License-Identifier: Apache-2.0 */
#include "http/service_thread.h"

#include <assert.h>
#include <string.h>

#include "common/clock.h"
#include "common/limits.h"
#include "common/threads/condition.h"

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

static void *run_service_thread(void *arg)
{
        struct service_thread *t = arg;
        void *result = t->run(t->arg);

        pthread_mutex_lock(&t->lock);
        t->has_ended = true;
        pthread_cond_broadcast(&t->changed);
        pthread_mutex_unlock(&t->lock);
        return result;
}

enum status service_thread_start(struct service_thread *t, const char *name, void *(*run)(void *), void *arg,
                                 struct error *err)
{
        int e;

        assert(!t->is_started && strlen(name) < 16);
        t->run = run;
        t->arg = arg;
        t->has_ended = false;
        e = pthread_create(&t->thread, NULL, run_service_thread, t);
        if (e)
                return error_os(err, e, "cannot start the thread '%s'", name);
        pthread_setname_np(t->thread, name);
        t->is_started = true;
        return ST_OK;
}

/* pthread_clockjoin_np() would be simpler, but the thread sanitizer of GCC 12 does not support it. */
bool service_thread_stop(struct service_thread *t)
{
        int64_t until = monotonic_ns() + LIMIT_AGENT_THREAD_WAIT_S * INT64_C(1000000000);
        bool has_ended;

        if (!t->is_started)
                return true;
        pthread_mutex_lock(&t->lock);
        atomic_store(&t->stop, true);
        pthread_cond_broadcast(&t->changed);
        while (!t->has_ended && condition_wait_until(&t->changed, &t->lock, until))
                ;
        has_ended = t->has_ended;
        pthread_mutex_unlock(&t->lock);
        if (!has_ended)
                return false;
        pthread_join(t->thread, NULL);
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
