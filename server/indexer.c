/* SPDX-License-Identifier: Apache-2.0 */
#include "server/indexer.h"

#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/condition.h"
#include "common/log.h"
#include "common/metrics.h"
#include "server/index_needs.h"
#include "server/indexer_internal.h"
#include "symbolizer/index_load.h"

static struct metric waiting = METRIC_GAUGE("cairn_index_queue", "Objects that wait to be indexed or are being indexed.", "");
static struct metric parted = METRIC_GAUGE("cairn_index_incomplete", "Objects among these of which a companion came and more may come.", "");

static struct metric postponed = METRIC_GAUGE("cairn_index_postponed", "Objects whose indexing failed for a reason that lies in the service, and is tried again.", "");
static struct metric postpones = METRIC_COUNTER("cairn_index_postponed_total", "Attempts to index that failed for a reason that lies in the service.", "");

/* ---- the queue, with the lock held ---- */

static void count_waiting(struct indexer *ix)
{
        metric_set(&waiting, (int64_t)(ix->queue.count + ix->running.count + ix->later.count + ix->retry.ids.count));
        metric_set(&parted, (int64_t)ix->later.count);
        metric_set(&postponed, (int64_t)ix->retry.ids.count);
}

static void enqueue(struct indexer *ix, const struct build_id *id)
{
        later_remove(&ix->later, id);
        if (id_set_add(&ix->queue, id))
                log_warn("index", "no memory to queue an object; it is indexed at the next start");
        count_waiting(ix);
        pthread_cond_broadcast(&ix->work);
}

/* A companion of it came. Reading it anew costs the same for one as for all, so what still comes is waited for. */
static void enqueue_later(struct indexer *ix, const struct build_id *id, bool all_came)
{
        if (all_came || later_add(&ix->later, id, monotonic_ns()))
                enqueue(ix, id);
        count_waiting(ix);
        pthread_cond_broadcast(&ix->work);
}

static void companion_came(struct indexer *ix, const struct build_id *companion)
{
        struct build_id object;
        size_t at = 0;
        bool all_came;

        while (needs_came(&ix->needs, companion, &at, &object, &all_came))
                enqueue_later(ix, &object, all_came);
}

/* ---- companions ---- */

static bool is_stored(struct indexer *ix, const struct build_id *companion)
{
        struct stored_object o;

        return debuginfo_store_find(ix->options.objects, companion, OBJECT_SUPPLEMENTARY, &o, NULL) == ST_OK ||
               debuginfo_store_stat(ix->options.objects, companion, OBJECT_DWO, &o, NULL) == ST_OK;
}

static bool is_elsewhere(struct indexer *ix, const struct build_id *companion)
{
        return ix->options.has_other && ix->options.has_other(ix->options.context, companion);
}

/*
 * One may have arrived between the look and the note, so the look is repeated behind the note. What is elsewhere, and could
 * not be had, is not tried again and again, but when there may be more of it.
 */
void indexer_note_missing(struct indexer *ix, const struct build_id *object, const struct id_set *missing, uint64_t looks)
{
        bool any_came = false, all_came = true;
        struct error err;

        pthread_mutex_lock(&ix->lock);
        if (needs_set(&ix->needs, object, missing->items, missing->count, &err))
                log_warn("index", "%s", err.text);
        for (size_t i = 0; i < ix->needs.count; i++) {
                struct need *need = &ix->needs.items[i];

                if (!build_id_equal(&need->object, object))
                        continue;
                need->has_come = is_stored(ix, &need->companion) || (ix->looks != looks && is_elsewhere(ix, &need->companion));
                any_came |= need->has_come;
                all_came &= need->has_come;
        }
        if (any_came)
                enqueue_later(ix, object, all_came);
        pthread_mutex_unlock(&ix->lock);
}

void indexer_look_again(struct indexer *ix)
{
        pthread_mutex_lock(&ix->lock);
        ix->looks++;
        for (size_t i = 0; i < ix->needs.count; i++)
                if (!ix->needs.items[i].has_come && is_elsewhere(ix, &ix->needs.items[i].companion))
                        companion_came(ix, &ix->needs.items[i].companion);
        pthread_mutex_unlock(&ix->lock);
}

/* ---- threads ---- */

void indexer_mark(struct indexer *ix, const struct build_id *id, enum symbol_object_state state, const char *reason,
                  const struct symbol_inputs *inputs)
{
        struct error err;

        pthread_mutex_lock(&ix->write);
        if (symbol_index_mark(ix->options.symbols, id, state, reason, inputs, &err))
                log_warn("index", "%s", err.text);
        pthread_mutex_unlock(&ix->write);
}

void indexer_postpone(struct indexer *ix, const struct build_id *id, const struct error *why)
{
        char hex[BUILD_ID_HEX_MAX];
        bool starts = false;
        enum status st;

        metric_add(&postpones, 1);
        pthread_mutex_lock(&ix->lock);
        st = index_retry_add(&ix->retry, id, why, monotonic_ns(), &starts);
        if (st)
                log_warn("index", "no memory to remember an object; it is indexed at the next start");
        else if (starts) /* once a pause, however many objects fail meanwhile */
                log_error("index", "%s: %s; trying again in %u s, %zu objects wait for that", build_id_hex(id, hex), why->text,
                          ix->retry.pause_s, ix->retry.ids.count);
        count_waiting(ix);
        pthread_cond_broadcast(&ix->work);
        pthread_mutex_unlock(&ix->lock);
}

void indexer_ended(struct indexer *ix, bool is_success)
{
        struct build_id next[INDEX_RETRY_RELEASED];
        size_t n = 0;

        pthread_mutex_lock(&ix->lock);
        if (is_success)
                n = index_retry_release(&ix->retry, next);
        else
                index_retry_continue(&ix->retry, monotonic_ns());
        for (size_t i = 0; i < n; i++)
                enqueue(ix, &next[i]);
        pthread_mutex_unlock(&ix->lock);
}

bool indexer_is_hindered(struct indexer *ix, struct error *ret)
{
        bool is_hindered;

        pthread_mutex_lock(&ix->lock);
        is_hindered = ix->retry.why.text[0];
        if (is_hindered)
                *ret = ix->retry.why;
        pthread_mutex_unlock(&ix->lock);
        return is_hindered;
}

/* The next object that no other thread works on. Called with the lock held. */
static bool take(struct indexer *ix, struct build_id *ret)
{
        while (later_take(&ix->later, monotonic_ns(), ret))
                enqueue(ix, ret);
        if (index_retry_take(&ix->retry, monotonic_ns(), ret))
                enqueue(ix, ret);
        for (size_t i = 0; i < ix->queue.count; i++) {
                *ret = ix->queue.items[i];
                if (id_set_has(&ix->running, ret) || id_set_add(&ix->running, ret))
                        continue;
                id_set_remove(&ix->queue, ret);
                return true;
        }
        return false;
}

/* Called with the lock held. */
static void wait_for_work(struct indexer *ix)
{
        int64_t due_ns = later_due_ns(&ix->later);

        if (ix->retry.due_ns && (!due_ns || ix->retry.due_ns < due_ns))
                due_ns = ix->retry.due_ns;
        if (due_ns)
                condition_wait_until(&ix->work, &ix->lock, due_ns);
        else
                pthread_cond_wait(&ix->work, &ix->lock);
}

static void *run(void *arg)
{
        struct indexer *ix = arg;
        struct build_id id;

        pthread_mutex_lock(&ix->lock);
        while (!atomic_load(&ix->stop)) {
                if (!take(ix, &id)) {
                        wait_for_work(ix);
                        continue;
                }
                pthread_mutex_unlock(&ix->lock);
                index_job_run(ix, &id);
                pthread_mutex_lock(&ix->lock);
                id_set_remove(&ix->running, &id);
                count_waiting(ix);
                pthread_cond_broadcast(&ix->work);
                if (ix->options.done) {
                        pthread_mutex_unlock(&ix->lock);
                        ix->options.done(ix->options.context);
                        pthread_mutex_lock(&ix->lock);
                }
        }
        pthread_mutex_unlock(&ix->lock);
        return NULL;
}

static bool is_indexed(struct indexer *ix, const struct build_id *id)
{
        struct symbol_object object;
        struct symbol_view *view;
        enum status st = symbol_view_begin(ix->options.symbols, &view, NULL);

        if (st)
                return false;
        st = symbol_view_object(view, id, &object, NULL);
        symbol_view_end(view);
        return !st && object.state == OBJECT_INDEXED;
}

void indexer_add(struct indexer *ix, const struct build_id *id, enum object_kind kind)
{
        if (kind == OBJECT_SOURCE)
                return;
        if (kind != OBJECT_DWP && kind != OBJECT_DWO && !is_indexed(ix, id))
                indexer_mark(ix, id, OBJECT_PENDING, "", NULL);
        pthread_mutex_lock(&ix->lock);
        if (kind != OBJECT_DWO)
                enqueue(ix, id);
        companion_came(ix, id);
        pthread_mutex_unlock(&ix->lock);
}

/* What came just before the service ended, and for whom. */
static void queue_waiting(struct indexer *ix)
{
        for (size_t i = 0; i < ix->needs.count; i++)
                if (is_stored(ix, &ix->needs.items[i].companion) || is_elsewhere(ix, &ix->needs.items[i].companion))
                        enqueue(ix, &ix->needs.items[i].object);
}

static enum status queue_needed(void *context, const struct stored_object *stored)
{
        struct indexer *ix = context;

        if (index_needs(ix->options.symbols, stored))
                enqueue(ix, &stored->build_id);
        return ST_OK;
}

bool indexer_holds(struct indexer *ix, const struct build_id *id)
{
        bool ret;

        pthread_mutex_lock(&ix->lock);
        ret = id_set_has(&ix->queue, id) || id_set_has(&ix->running, id) || later_has(&ix->later, id) ||
              id_set_has(&ix->retry.ids, id);
        pthread_mutex_unlock(&ix->lock);
        return ret;
}

enum status indexer_start(const struct indexer_options *options, struct indexer **ret, struct error *err)
{
        long cores = sysconf(_SC_NPROCESSORS_ONLN);
        unsigned want = cores < 1 ? 1 : cores > INDEXER_THREADS_MAX ? INDEXER_THREADS_MAX : (unsigned)cores;
        struct indexer *ix = calloc(1, sizeof *ix);
        enum status st;

        if (!ix)
                return error_no_memory(err);
        index_job_metrics();
        metric_register(&waiting);
        metric_register(&parted);
        metric_register(&postponed);
        metric_register(&postpones);
        ix->options = *options;
        ix->scratch_dir = strdup(options->scratch_dir);
        pthread_mutex_init(&ix->lock, NULL);
        pthread_mutex_init(&ix->write, NULL);
        pthread_cond_init(&ix->work, NULL);
        st = ix->scratch_dir ? needs_load(&ix->needs, options->needs_path, err) : error_no_memory(err);
        if (!st)
                st = debuginfo_store_list(options->objects, queue_needed, ix, err);
        if (!st)
                queue_waiting(ix);
        if (!st && ix->queue.count)
                log_info("index", "%zu stored objects are not indexed yet", ix->queue.count);
        for (; !st && ix->thread_count < want; ix->thread_count++) {
                int refused = pthread_create(&ix->threads[ix->thread_count], NULL, run, ix);

                if (refused) {
                        st = error_os(err, refused, "cannot start a thread");
                        break;
                }
                pthread_setname_np(ix->threads[ix->thread_count], "index");
        }
        if (st) {
                indexer_stop(ix);
                return st;
        }
        *ret = ix;
        return ST_OK;
}

void indexer_stop(struct indexer *ix)
{
        if (!ix)
                return;
        pthread_mutex_lock(&ix->lock);
        atomic_store(&ix->stop, true);
        pthread_cond_broadcast(&ix->work);
        pthread_mutex_unlock(&ix->lock);
        for (unsigned i = 0; i < ix->thread_count; i++)
                pthread_join(ix->threads[i], NULL);
        pthread_cond_destroy(&ix->work);
        pthread_mutex_destroy(&ix->write);
        pthread_mutex_destroy(&ix->lock);
        id_set_deinit(&ix->queue);
        id_set_deinit(&ix->running);
        later_deinit(&ix->later);
        index_retry_deinit(&ix->retry);
        needs_deinit(&ix->needs);
        free(ix->scratch_dir);
        free(ix);
}
