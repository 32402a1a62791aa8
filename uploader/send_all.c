/* SPDX-License-Identifier: Apache-2.0 */
#include "uploader/send_all.h"

#include "common/clock.h"
#include "common/condition.h"
#include "uploader/send.h"

#define GIVE_UP_AFTER 3 /* failures in a row that blame the service, not the file */

struct crew {
        struct upload_list *list;
        struct report *report;
        const struct send_options *options;
        const atomic_bool *stop;
        atomic_size_t next; /* item to look at */
        atomic_uint failures_in_a_row;
        atomic_bool give_up;
        atomic_uint running;
        pthread_mutex_t lock;
        pthread_cond_t ended; /* running went down */
};

struct worker {
        struct crew *crew;
        struct http_client *client;
        pthread_t thread;
};

static void judge(struct crew *c, enum status st)
{
        if (st == ST_USAGE || (st == ST_BUSY && atomic_fetch_add(&c->failures_in_a_row, 1) + 1 >= GIVE_UP_AFTER))
                atomic_store(&c->give_up, true);
        else if (st != ST_BUSY)
                atomic_store(&c->failures_in_a_row, 0);
}

static void *work(void *context)
{
        struct worker *w = context;
        struct crew *c = w->crew;

        for (;;) {
                size_t i = atomic_fetch_add(&c->next, 1);
                struct upload_item *item;
                struct error err;
                enum status st;

                if (i >= c->list->count || atomic_load(&c->give_up) || (c->stop && atomic_load(c->stop)))
                        break;
                item = &c->list->items[i];
                if (item->state != UPLOAD_WANTED)
                        continue;
                st = send_item(w->client, item, c->options, &c->report->moved, c->stop, &err);
                if (st) {
                        item->state = UPLOAD_FAILED;
                        item->failure = st;
                        snprintf(item->reason, sizeof item->reason, "%s", err.text);
                }
                judge(c, st);
                report_item(c->report, item);
        }
        pthread_mutex_lock(&c->lock);
        atomic_fetch_sub(&c->running, 1);
        pthread_cond_signal(&c->ended);
        pthread_mutex_unlock(&c->lock);
        return NULL;
}

static void count_work(const struct upload_list *list, struct report *report)
{
        for (size_t i = 0; i < list->count; i++) {
                if (list->items[i].state != UPLOAD_WANTED)
                        continue;
                report->total++;
                report->total_bytes += list->items[i].size_bytes;
        }
}

#define PROGRESS_NS 200000000 /* between two looks at how far it is */

static void wait_for_all(struct crew *c)
{
        pthread_mutex_lock(&c->lock);
        while (atomic_load(&c->running)) {
                condition_wait_until(&c->ended, &c->lock, monotonic_ns() + PROGRESS_NS);
                report_progress(c->report);
        }
        pthread_mutex_unlock(&c->lock);
}

enum status send_all(const struct http_client_options *options, struct upload_list *list, unsigned jobs, const struct send_options *how,
                     struct report *report, struct error *err)
{
        struct crew crew = { .list = list,
                             .report = report,
                             .options = how,
                             .stop = options->stop,
                             .lock = PTHREAD_MUTEX_INITIALIZER,
                             .ended = PTHREAD_COND_INITIALIZER };
        struct worker workers[SEND_JOBS_MAX];
        unsigned started = 0;
        enum status st = ST_OK;

        count_work(list, report);
        if (jobs > report->total)
                jobs = (unsigned)report->total;
        for (; started < jobs && started < SEND_JOBS_MAX && !st; started++) {
                struct worker *w = &workers[started];
                int rc;

                *w = (struct worker){ .crew = &crew };
                st = http_client_create(options, &w->client, err);
                if (st)
                        break;
                atomic_fetch_add(&crew.running, 1);
                rc = pthread_create(&w->thread, NULL, work, w);
                if (rc) {
                        atomic_fetch_sub(&crew.running, 1);
                        http_client_destroy(w->client);
                        st = error_os(err, rc, "cannot start a thread");
                        break;
                }
        }
        wait_for_all(&crew);
        for (unsigned i = 0; i < started; i++) {
                pthread_join(workers[i].thread, NULL);
                http_client_destroy(workers[i].client);
        }
        return started ? ST_OK : st;
}
