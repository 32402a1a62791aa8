/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo-store/object_commit.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/metrics.h"
#include "common/threads/condition.h"

static struct metric commits_made =
        METRIC_COUNTER("cairn_object_table_commits_total", "Commits to the tables of objects in an object store.", "");
static struct metric changes_made = METRIC_COUNTER("cairn_object_table_changes_total",
                                                   "Changes of objects in commits to the tables of objects.", "");
static struct metric failures =
        METRIC_COUNTER("cairn_object_table_failures_total", "Commits to the tables of objects that failed.", "");

TAILQ_HEAD(commit_queue, object_commit);

struct object_commits {
        struct object_table *table;
        pthread_mutex_t *publish;
        pthread_mutex_t lock; /* of all below; taken after publish or alone */
        pthread_cond_t work, done;
        struct commit_queue queue;
        size_t waiting; /* changes with a waiting call */
        int expected;   /* uploads that are being finished */
        bool stop;
        pthread_t thread;
};

/* ---- one commit ---- */

struct commit_batch {
        struct object_commit *items[OBJECT_COMMIT_CHANGES];
        size_t count;
};

/* With the lock `publish`. */
static void prepare_batch(struct commit_batch *b, struct object_change *changes, size_t *count_ret)
{
        *count_ret = 0;
        for (size_t i = 0; i < b->count; i++) {
                struct object_commit *c = b->items[i];

                c->result = c->prepare ? c->prepare(c, &c->error) : ST_OK;
                c->is_prepared = !c->result;
                if (c->is_prepared)
                        changes[(*count_ret)++] = c->change;
        }
}

static void apply_batch(struct commit_batch *b, enum status st, const struct error *why)
{
        for (size_t i = 0; i < b->count; i++) {
                struct object_commit *c = b->items[i];

                if (!c->is_prepared)
                        continue;
                if (st)
                        c->error = *why;
                c->result = st || !c->apply ? st : c->apply(c, &c->error);
        }
}

static void run_batch(struct object_commits *c, struct commit_batch *b)
{
        struct object_change *changes = calloc(b->count, sizeof *changes);
        struct error err;
        enum status st = changes ? ST_OK : error_no_memory(&err);
        size_t count = 0;

        pthread_mutex_lock(c->publish);
        if (!st) {
                prepare_batch(b, changes, &count);
        } else {
                for (size_t i = 0; i < b->count; i++)
                        b->items[i]->is_prepared = true;
        }
        if (!st && count)
                st = object_table_commit(c->table, changes, count, &err);
        if (st == ST_BUSY) /* which prepare() may return with another meaning */
                st = error_set(&err, ST_OS, "other writers kept changing the table of objects");
        if (st)
                metric_add(&failures, 1);
        else if (count)
                metric_add(&commits_made, 1);
        metric_add(&changes_made, st ? 0 : (int64_t)count);
        apply_batch(b, st, &err);
        pthread_mutex_unlock(c->publish);
        free(changes);
}

/* ---- the queue; with the lock ---- */

static bool has_name(const struct commit_batch *b, const struct object_name *name)
{
        for (size_t i = 0; i < b->count; i++)
                if (object_name_compare(&b->items[i]->name, name) == 0)
                        return true;
        return false;
}

/* One change of each name: a second one is prepared when the first is in the records. */
static void take_batch(struct object_commits *c, struct commit_batch *ret)
{
        struct object_commit *i, *next;

        ret->count = 0;
        for (i = TAILQ_FIRST(&c->queue); i && ret->count < OBJECT_COMMIT_CHANGES; i = next) {
                next = TAILQ_NEXT(i, waiting);
                if (has_name(ret, &i->name))
                        continue;
                TAILQ_REMOVE(&c->queue, i, waiting);
                c->waiting -= !i->free;
                ret->items[ret->count++] = i;
        }
}

/* When the next commit is due; 0: it is now; INT64_MAX: nothing waits. */
static int64_t find_commit_due(const struct object_commits *c)
{
        const struct object_commit *i, *first_waiting = NULL, *first = TAILQ_FIRST(&c->queue);

        if (!first)
                return INT64_MAX;
        if (c->stop || (c->waiting && c->waiting >= (size_t)(c->expected < 0 ? 0 : c->expected)))
                return 0;
        TAILQ_FOREACH(i, &c->queue, waiting)
        {
                if (!i->free && !first_waiting)
                        first_waiting = i;
        }
        return first_waiting ? first_waiting->since_ns + INT64_C(1000000) * OBJECT_COMMIT_WAIT_MS
                             : first->since_ns + INT64_C(1000000) * OBJECT_COMMIT_LATER_MS;
}

static void end_batch(struct object_commits *c, struct commit_batch *b)
{
        for (size_t i = 0; i < b->count; i++) {
                struct object_commit *change = b->items[i];

                if (change->free)
                        change->free(change);
                else
                        change->is_done = true;
        }
        pthread_cond_broadcast(&c->done);
}

static void *run_commit_thread(void *arg)
{
        struct object_commits *c = arg;
        struct commit_batch b;

        pthread_mutex_lock(&c->lock);
        while (!c->stop || TAILQ_FIRST(&c->queue)) {
                int64_t due = find_commit_due(c);

                if (due == INT64_MAX) {
                        pthread_cond_wait(&c->work, &c->lock);
                        continue;
                }
                if (due > monotonic_ns()) {
                        condition_wait_until(&c->work, &c->lock, due);
                        continue;
                }
                take_batch(c, &b);
                pthread_mutex_unlock(&c->lock);
                run_batch(c, &b);
                pthread_mutex_lock(&c->lock);
                end_batch(c, &b);
        }
        pthread_mutex_unlock(&c->lock);
        return NULL;
}

static void enqueue_change(struct object_commits *c, struct object_commit *change)
{
        change->result = ST_OK;
        change->is_prepared = false;
        change->since_ns = monotonic_ns();
        change->is_done = false;
        TAILQ_INSERT_TAIL(&c->queue, change, waiting);
        c->waiting += !change->free;
        pthread_cond_signal(&c->work);
}

enum status object_commits_run(struct object_commits *c, struct object_commit *change, struct error *err)
{
        change->free = NULL;
        pthread_mutex_lock(&c->lock);
        enqueue_change(c, change);
        while (!change->is_done)
                pthread_cond_wait(&c->done, &c->lock);
        pthread_mutex_unlock(&c->lock);
        if (change->result && err)
                *err = change->error;
        return change->result;
}

void object_commits_run_all(struct object_commits *c, struct object_commit *const *changes, size_t count)
{
        pthread_mutex_lock(&c->lock);
        for (size_t i = 0; i < count; i++) {
                changes[i]->free = NULL;
                enqueue_change(c, changes[i]);
        }
        for (size_t i = 0; i < count; i++)
                while (!changes[i]->is_done)
                        pthread_cond_wait(&c->done, &c->lock);
        pthread_mutex_unlock(&c->lock);
}

void object_commits_add_later(struct object_commits *c, struct object_commit *change)
{
        pthread_mutex_lock(&c->lock);
        enqueue_change(c, change);
        pthread_mutex_unlock(&c->lock);
}

void object_commits_expect(struct object_commits *c, int count)
{
        pthread_mutex_lock(&c->lock);
        c->expected += count;
        pthread_cond_signal(&c->work);
        pthread_mutex_unlock(&c->lock);
}

/* ---- start and stop ---- */

enum status object_commits_start(struct object_table *table, pthread_mutex_t *publish, struct object_commits **ret,
                                 struct error *err)
{
        struct object_commits *c = calloc(1, sizeof *c);
        int refused;

        if (!c)
                return error_no_memory(err);
        metric_register(&commits_made);
        metric_register(&changes_made);
        metric_register(&failures);
        c->table = table;
        c->publish = publish;
        TAILQ_INIT(&c->queue);
        pthread_mutex_init(&c->lock, NULL);
        pthread_cond_init(&c->work, NULL);
        pthread_cond_init(&c->done, NULL);
        refused = pthread_create(&c->thread, NULL, run_commit_thread, c);
        if (refused) {
                free(c);
                return error_os(err, refused, "cannot start a thread");
        }
        pthread_setname_np(c->thread, "objects");
        *ret = c;
        return ST_OK;
}

void object_commits_stop(struct object_commits *c)
{
        if (!c)
                return;
        pthread_mutex_lock(&c->lock);
        c->stop = true;
        pthread_cond_broadcast(&c->work);
        pthread_mutex_unlock(&c->lock);
        pthread_join(c->thread, NULL);
        pthread_cond_destroy(&c->work);
        pthread_cond_destroy(&c->done);
        pthread_mutex_destroy(&c->lock);
        free(c);
}
