/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thread pools with bounded concurrency.
 *
 * A request starts only while fewer than `at_once` threads work. A thread that blocks on an upstream gives up its slot,
 * and another thread is started if none is free; otherwise two services that use each other as upstream would deadlock.
 * After its wait a thread continues immediately, since it may hold resources that working threads need. So for a short
 * time up to LIMIT_HTTP_WAITING more threads may work, and no new request starts until they are fewer again.
 */
#include "http/http_server_internal.h"

#include <sys/resource.h>
#include <unistd.h>

#include "common/hash/hash_table.h"
#include "common/threads/time_slice.h"
#include "common/threads/work_meter.h"

static struct metric waits = METRIC_GAUGE("cairn_http_waiting", "Requests waiting for an upstream or a worker.", "");
static _Thread_local struct handler_pool *pool_of_thread;
static _Thread_local struct pool_lane *lane_of_thread; /* lane and sender of the current task */
static _Thread_local struct pool_sender *sender_of_thread;

/* Metrics of one pool, unregistered with it. */
enum { THREADS, BUSY, QUEUED, REJECTED, POOL_METRICS };

static const struct metric metric_kinds[POOL_METRICS] = {
        [THREADS] = METRIC_GAUGE("cairn_http_pool_threads", "Maximum of concurrently handled requests of a pool.", ""),
        [BUSY] = METRIC_GAUGE("cairn_http_pool_busy", "Threads of a pool that handle a request.", ""),
        [QUEUED] = METRIC_GAUGE("cairn_http_pool_queue", "Requests queued for a thread of a pool.", ""),
        [REJECTED] = METRIC_COUNTER("cairn_http_pool_rejected_total",
                                    "Requests refused with 503 because a pool's queue was full.", ""),
};

static enum status register_pool_metrics(struct handler_pool *p, struct error *err)
{
        char *labels;

        p->metrics = calloc(1, sizeof metric_kinds);
        if (!p->metrics || asprintf(&labels, "pool=\"%s\"", p->options.name) < 0) {
                free(p->metrics);
                p->metrics = NULL;
                return error_no_memory(err);
        }
        for (unsigned i = 0; i < POOL_METRICS; i++) {
                const struct metric *kind = &metric_kinds[i];

                p->metrics[i].name = kind->name;
                p->metrics[i].help = kind->help;
                p->metrics[i].type = kind->type;
                p->metrics[i].labels = labels;
                metric_register(&p->metrics[i]);
        }
        metric_set(&p->metrics[THREADS], p->options.threads);
        return ST_OK;
}

static void unregister_pool_metrics(struct handler_pool *p)
{
        if (!p->metrics)
                return;
        for (unsigned i = 0; i < POOL_METRICS; i++)
                metric_unregister(&p->metrics[i]);
        free((void *)(uintptr_t)p->metrics[0].labels);
        free(p->metrics);
        p->metrics = NULL;
}

/* Caller holds p->lock. */
static void handler_pool_check(const struct handler_pool *p)
{
        assert(p->working + p->waiting <= p->thread_count);
        assert(p->waiting <= LIMIT_HTTP_WAITING);
        assert(p->working <= p->at_once + p->spare + LIMIT_HTTP_WAITING);
}

/* Caller holds p->lock. */
static void update_pool_metrics(struct handler_pool *p)
{
        handler_pool_check(p);
        metric_set(&p->metrics[BUSY], p->working);
        metric_set(&p->metrics[QUEUED], p->queued);
        if (!p->options.niceness) {
                work_meter_add_urgent_tasks((int64_t)p->working + p->queued - p->told_urgent);
                p->told_urgent = (int64_t)p->working + p->queued;
        }
}

/* ---- senders; callers hold p->lock ---- */

uint32_t pool_sender_number(const char *token, uint64_t address)
{
        return hash_table_hash(&address, sizeof address) ^ (token ? hash_table_hash(token, strlen(token)) : 0);
}

static struct pool_sender *find_lane_sender(struct pool_lane *lane, uint32_t number)
{
        struct pool_sender *s;

        TAILQ_FOREACH(s, &lane->senders, next)
        if (s->number == number)
                return s;
        s = calloc(1, sizeof *s);
        if (!s)
                return &lane->common;
        s->number = number;
        STAILQ_INIT(&s->queue);
        TAILQ_INSERT_TAIL(&lane->senders, s, next);
        return s;
}

static void forget_idle_sender(struct pool_lane *lane, struct pool_sender *s)
{
        if (s == &lane->common || s->queued || s->working || s->waiting)
                return;
        TAILQ_REMOVE(&lane->senders, s, next);
        free(s);
}

/* The next sender of a lane that may start a task; NULL: none. */
static struct pool_sender *find_ready_sender(const struct handler_pool *p, const struct pool_lane *lane)
{
        const bool spare_only = !p->stop && (p->working >= p->at_once || lane->working >= p->lane_most);
        struct pool_sender *s;

        if (!lane->queued || (lane->working >= p->lane_most + p->spare && !p->stop))
                return NULL;
        TAILQ_FOREACH(s, &lane->senders, next)
        if (s->queued && (!spare_only || !s->working))
                return s;
        return NULL;
}

/* Find the next lane, round-robin, and sender in it that may start a task. */
static bool find_ready_task(const struct handler_pool *p, struct pool_lane **lane_ret, struct pool_sender **sender_ret)
{
        if (!p->queued || (p->working >= p->at_once + p->spare && !p->stop))
                return false;
        for (unsigned i = 0; i < p->lane_count; i++) {
                struct pool_lane *lane = &p->lanes[(p->next_lane + i) % p->lane_count];
                struct pool_sender *s = find_ready_sender(p, lane);

                if (!s)
                        continue;
                *lane_ret = lane;
                *sender_ret = s;
                return true;
        }
        return false;
}

/* Remove its first task, and serve the others of the lane before it. */
static struct pool_task *start_sender_task(struct handler_pool *p, struct pool_lane *lane, struct pool_sender *s)
{
        struct pool_task *task = STAILQ_FIRST(&s->queue);

        STAILQ_REMOVE_HEAD(&s->queue, next);
        TAILQ_REMOVE(&lane->senders, s, next);
        TAILQ_INSERT_TAIL(&lane->senders, s, next);
        p->next_lane = (unsigned)(lane - p->lanes + 1) % p->lane_count;
        s->queued--;
        s->working++;
        lane->queued--;
        lane->working++;
        p->queued--;
        p->working++;
        lane_of_thread = lane;
        sender_of_thread = s;
        update_pool_metrics(p);
        return task;
}

/* ---- threads ---- */

static struct pool_task *take_task(struct handler_pool *p)
{
        struct pool_task *task = NULL;
        struct pool_lane *lane = NULL;
        struct pool_sender *sender = NULL;
        bool found;

        pthread_mutex_lock(&p->lock);
        while (!(found = find_ready_task(p, &lane, &sender)) && !p->stop)
                pthread_cond_wait(&p->work, &p->lock);
        if (found)
                task = start_sender_task(p, lane, sender);
        pthread_mutex_unlock(&p->lock);
        return task;
}

static void finish_pool_task(struct handler_pool *p)
{
        pthread_mutex_lock(&p->lock);
        sender_of_thread->working--;
        lane_of_thread->working--;
        p->working--;
        forget_idle_sender(lane_of_thread, sender_of_thread);
        update_pool_metrics(p);
        pthread_mutex_unlock(&p->lock);
}

static void *run_pool_thread(void *arg)
{
        struct handler_pool *p = arg;
        struct pool_task *task;

        pool_of_thread = p;
        if (p->options.niceness)
                (void)setpriority(PRIO_PROCESS, (id_t)gettid(),
                                  getpriority(PRIO_PROCESS, 0) + (int)p->options.niceness);
        else
                shorten_time_slice();
        while ((task = take_task(p))) {
                task->run(task);
                finish_pool_task(p);
        }
        return NULL;
}

/* Caller holds p->lock, or no other thread exists yet. Returns an errno value. */
static int start_pool_thread(struct handler_pool *p)
{
        int failed = pthread_create(&p->threads[p->thread_count], NULL, run_pool_thread, p);

        if (!failed)
                pthread_setname_np(p->threads[p->thread_count++], p->options.name);
        return failed;
}

/* One lane leaves a quarter of the threads to the others. */
static enum status create_pool_lanes(struct handler_pool *p, unsigned threads, unsigned count, struct error *err)
{
        p->lane_count = count;
        p->lane_most = count > 1 && threads > 1 ? threads - (threads + 3) / 4 : threads;
        p->next_lane = 0;
        p->lanes = calloc(count, sizeof *p->lanes);
        for (unsigned i = 0; p->lanes && i < count; i++) {
                TAILQ_INIT(&p->lanes[i].senders);
                STAILQ_INIT(&p->lanes[i].common.queue);
                TAILQ_INSERT_TAIL(&p->lanes[i].senders, &p->lanes[i].common, next);
        }
        return p->lanes ? ST_OK : error_no_memory(err);
}

enum status handler_pool_start(struct handler_pool *p, const struct http_pool_options *options, unsigned lanes,
                               struct error *err)
{
        unsigned threads = options->threads;
        int failed = 0;

        pthread_mutex_init(&p->lock, NULL);
        pthread_cond_init(&p->work, NULL);
        p->stop = false;
        p->thread_count = p->working = p->waiting = 0;
        p->at_once = threads;
        p->spare = options->spare;
        p->options = *options;
        p->queued = 0;
        p->told_urgent = 0;
        p->threads = calloc(threads + p->spare + LIMIT_HTTP_WAITING, sizeof *p->threads);
        if (!p->threads)
                return error_no_memory(err);
        if (create_pool_lanes(p, threads, lanes, err))
                return ST_NO_MEMORY;
        if (register_pool_metrics(p, err))
                return ST_NO_MEMORY;
        pthread_mutex_lock(&p->lock);
        while (!failed && p->thread_count < threads + p->spare)
                failed = start_pool_thread(p);
        pthread_mutex_unlock(&p->lock);
        return failed ? error_os(err, failed, "cannot start a thread") : ST_OK;
}

/* Caller holds p->lock. */
static void enqueue_task(struct handler_pool *p, struct pool_task *task)
{
        struct pool_lane *lane = &p->lanes[task->lane];
        struct pool_sender *s = find_lane_sender(lane, task->sender);

        STAILQ_INSERT_TAIL(&s->queue, task, next);
        s->queued++;
        lane->queued++;
        p->queued++;
        update_pool_metrics(p);
        pthread_cond_signal(&p->work);
}

unsigned handler_pool_get_timeout(const struct handler_pool *p)
{
        return p->options.timeout_s;
}

bool handler_pool_push(struct handler_pool *p, struct pool_task *task)
{
        bool open;

        pthread_mutex_lock(&p->lock);
        open = !p->stop;
        if (open)
                enqueue_task(p, task);
        pthread_mutex_unlock(&p->lock);
        return open;
}

/* The queue of the lane is full, or the sender's share of it. Caller holds p->lock. */
static bool has_full_queue(const struct handler_pool *p, const struct pool_task *task)
{
        const struct pool_lane *lane = &p->lanes[task->lane];
        const unsigned most = p->options.queue_max;
        const struct pool_sender *s;

        if (!most || lane->queued >= most)
                return most;
        TAILQ_FOREACH(s, &lane->senders, next)
        if (s->number == task->sender)
                return s->queued >= most - most / 4;
        return false;
}

enum status handler_pool_submit(struct handler_pool *p, struct pool_task *task, struct error *err)
{
        enum status st = ST_OK;

        pthread_mutex_lock(&p->lock);
        if (p->stop) {
                st = error_set(err, ST_BUSY, "the service is stopping");
        } else if (has_full_queue(p, task)) {
                metric_add(&p->metrics[REJECTED], 1);
                st = error_set(err, ST_BUSY, "%u requests are already waiting for a thread of the pool '%s'",
                               p->lanes[task->lane].queued, p->options.name);
        } else {
                enqueue_task(p, task);
        }
        pthread_mutex_unlock(&p->lock);
        return st;
}

enum status http_begin_wait(struct error *err)
{
        struct handler_pool *p = pool_of_thread;
        enum status st = ST_OK;

        assert(p);
        pthread_mutex_lock(&p->lock);
        if (p->waiting == LIMIT_HTTP_WAITING ||
            (!p->stop && p->thread_count - p->waiting - 1 < p->at_once + p->spare && start_pool_thread(p))) {
                st = error_set(err, ST_BUSY, "%u requests are already waiting for upstreams", p->waiting);
        } else {
                p->waiting++;
                p->working--;
                lane_of_thread->working--;
                sender_of_thread->working--;
                sender_of_thread->waiting++;
                update_pool_metrics(p);
                metric_add(&waits, 1);
                pthread_cond_signal(&p->work);
        }
        pthread_mutex_unlock(&p->lock);
        return st;
}

void http_end_wait(void)
{
        struct handler_pool *p = pool_of_thread;

        pthread_mutex_lock(&p->lock);
        p->waiting--;
        p->working++;
        lane_of_thread->working++;
        sender_of_thread->waiting--;
        sender_of_thread->working++;
        update_pool_metrics(p);
        metric_add(&waits, -1);
        pthread_mutex_unlock(&p->lock);
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
        unregister_pool_metrics(p);
        free(p->lanes);
        free(p->threads);
        p->threads = NULL;
        pthread_cond_destroy(&p->work);
        pthread_mutex_destroy(&p->lock);
}
