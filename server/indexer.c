/* SPDX-License-Identifier: Apache-2.0 */
#include "server/indexer.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/limits.h"
#include "common/log.h"
#include "common/metrics.h"
#include "server/elf_job.h"
#include "server/id_set.h"
#include "server/index_load_named.h"
#include "server/index_needs.h"
#include "server/needs.h"
#include "server/stored_dwo.h"
#include "symbolizer/extract_worker.h"
#include "symbolizer/index_load.h"

#define MAX_THREADS 4
#define MISSING_MAX 10000 /* of one object; when any of them comes, it is indexed again */

static struct metric indexed = METRIC_COUNTER("cairn_objects_indexed_total", "Objects whose symbols were put in the index.", "");
static struct metric kept = METRIC_COUNTER("cairn_objects_kept_total", "Objects whose symbols were no better than those in the index.", "");
static struct metric partial = METRIC_COUNTER("cairn_objects_partial_total", "Objects of which some could not be read when they were indexed.", "");
static struct metric failed = METRIC_COUNTER("cairn_objects_failed_total", "Objects that could not be indexed.", "");
static struct metric waiting = METRIC_GAUGE("cairn_index_queue", "Objects that wait to be indexed or are being indexed.", "");

struct indexer {
        struct indexer_options options;
        char *scratch_dir;
        pthread_mutex_t lock;
        pthread_cond_t work;
        struct id_set queue, running; /* an object that is added while it runs is queued again, and waits for its end */
        struct needs needs;
        pthread_mutex_t write;        /* the index has one writer at a time */
        atomic_bool stop;
        pthread_t threads[MAX_THREADS];
        unsigned thread_count;
};

/* What one job works on; descriptors are -1 where there is nothing. */
struct job {
        struct build_id id;
        char name[BUILD_ID_HEX_MAX];
        int debuginfo, executable, altlink, package;
        struct id_set missing;              /* companions that it needs and that are not stored */
        bool is_supplement;
        char partial[SYMBOL_PARTIAL_BYTES]; /* what of it could not be read */
};

static void job_close(struct job *j)
{
        const int fds[] = { j->debuginfo, j->executable, j->altlink, j->package };

        id_set_deinit(&j->missing);
        for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
                if (fds[i] >= 0)
                        close(fds[i]);
}

/* Called with the lock held. */
static void enqueue(struct indexer *ix, const struct build_id *id)
{
        if (id_set_add(&ix->queue, id))
                log_warn("index", "no memory to queue an object; it is indexed at the next start");
        metric_set(&waiting, (int64_t)(ix->queue.count + ix->running.count));
        pthread_cond_signal(&ix->work);
}

static enum status unpack(struct indexer *ix, const struct build_id *id, enum object_kind kind, int *ret, struct error *err)
{
        enum status st = debuginfo_store_unpack(ix->options.objects, id, kind, ret, err);

        if (st == ST_NOT_FOUND && ix->options.open_other)
                st = ix->options.open_other(ix->options.context, id, kind, ret, err);
        return st == ST_NOT_FOUND ? ST_OK : st;
}


static enum status find_altlink(struct indexer *ix, struct job *j, struct error *err)
{
        struct elf_supplement found;
        enum status st;

        if (j->debuginfo < 0)
                return ST_OK;
        st = elf_job_supplement(j->debuginfo, ix->scratch_dir, &ix->stop, &found, err);
        if (st)
                return st;
        j->is_supplement = found.is_one && j->executable < 0;
        if (!found.needed.size)
                return ST_OK;
        st = unpack(ix, &found.needed, OBJECT_SUPPLEMENTARY, &j->altlink, err);
        if (st || j->altlink >= 0)
                return st;
        if (ix->options.wanted)
                ix->options.wanted(ix->options.context, &found.needed);
        return id_set_add(&j->missing, &found.needed) ? error_no_memory(err) : ST_OK;
}

static bool is_stored(struct indexer *ix, const struct build_id *companion)
{
        struct stored_object o;

        return debuginfo_store_find(ix->options.objects, companion, OBJECT_SUPPLEMENTARY, &o, NULL) == ST_OK ||
               debuginfo_store_stat(ix->options.objects, companion, OBJECT_DWO, &o, NULL) == ST_OK;
}

/* One may have arrived between the look and the note, so the look is repeated behind the note. */
static void note_missing(struct indexer *ix, struct job *j)
{
        struct error err;
        bool again = false;

        pthread_mutex_lock(&ix->lock);
        if (needs_set(&ix->needs, &j->id, j->missing.items, j->missing.count, &err))
                log_warn("index", "%s", err.text);
        for (size_t i = 0; i < j->missing.count && !again; i++)
                again = is_stored(ix, &j->missing.items[i]);
        if (again)
                enqueue(ix, &j->id);
        pthread_mutex_unlock(&ix->lock);
}

/* A supplementary file has no addresses of its own, so it is done with an empty table. */
static enum status make_table(struct indexer *ix, struct job *j, struct symbol_table *ret, struct error *err)
{
        struct stored_dwo dwo = { ix->options.objects, &j->missing, MISSING_MAX };
        const struct extract_inputs in = { .debuginfo_fd = j->debuginfo, .executable_fd = j->executable,
                                           .altlink_fd = j->altlink, .dwp_fd = j->package, .name = j->name,
                                           .dwo = { stored_dwo_open, &dwo } };

        if (!j->is_supplement)
                return symbol_table_extract_confined(&in, &ix->stop, ret, err);
        *ret = (struct symbol_table){ .strings = calloc(1, 1), .string_bytes = 1 };
        return ret->strings ? ST_OK : error_no_memory(err);
}

/* What is missing is noted before anything is loaded: a crash in between loads again. */
static enum status make_and_load(struct indexer *ix, struct job *j, bool *replaced_ret, struct error *err)
{
        struct symbol_table table;
        enum status st = make_table(ix, j, &table, err);

        if (st)
                return st;
        note_missing(ix, j);
        snprintf(j->partial, sizeof j->partial, "%s", symbol_table_partial(&table));
        table.build_id = j->id; /* what was verified when it was stored; a Go or hash id may be spelled otherwise inside */
        st = index_load_named(&(struct index_load_into){ ix->options.objects, ix->options.symbols, ix->options.healer, &ix->write },
                              &table, replaced_ret, err);
        symbol_table_deinit(&table);
        return st;
}

static enum status index_object(struct indexer *ix, struct job *j, bool *replaced_ret, struct error *err)
{
        enum status st = unpack(ix, &j->id, OBJECT_DEBUGINFO, &j->debuginfo, err);

        if (!st)
                st = unpack(ix, &j->id, OBJECT_EXECUTABLE, &j->executable, err);
        if (!st && j->debuginfo < 0 && j->executable < 0)
                return error_set(err, ST_NOT_FOUND, "nothing is stored of it");
        if (!st)
                st = unpack(ix, &j->id, OBJECT_DWP, &j->package, err);
        if (!st)
                st = find_altlink(ix, j, err);
        return st ? st : make_and_load(ix, j, replaced_ret, err);
}

static void mark(struct indexer *ix, const struct build_id *id, enum symbol_object_state state, const char *reason)
{
        struct error err;

        pthread_mutex_lock(&ix->write);
        if (symbol_index_mark(ix->options.symbols, id, state, reason, &err))
                log_warn("index", "%s", err.text);
        pthread_mutex_unlock(&ix->write);
}

static void run_job(struct indexer *ix, const struct build_id *id)
{
        struct job j = { .id = *id, .debuginfo = -1, .executable = -1, .altlink = -1, .package = -1 };
        int64_t start = monotonic_ns();
        bool replaced = false;
        struct error err;
        enum status st;

        build_id_hex(id, j.name);
        st = index_object(ix, &j, &replaced, &err);
        job_close(&j);
        if (st && atomic_load(&ix->stop))
                return;
        if (st == ST_NOT_FOUND) {
                log_info("index", "%s: %s, ignoring", j.name, err.text);
        } else if (st) {
                log_warn("index", "%s: %s", j.name, err.text);
                mark(ix, id, OBJECT_FAILED, err.text);
                metric_add(&failed, 1);
        } else {
                log_info("index", "%s: %s in %" PRId64 " ms", j.name, j.is_supplement ? "a supplementary file of others" : replaced ? "indexed" : "what is indexed is as good",
                         (monotonic_ns() - start) / 1000000);
                if (j.partial[0]) {
                        log_warn("index", "%s: symbols are partial: %s", j.name, j.partial);
                        metric_add(&partial, 1);
                }
                if (!j.is_supplement)
                        metric_add(replaced ? &indexed : &kept, 1);
        }
}

/* The next object that no other thread works on. Called with the lock held. */
static bool take(struct indexer *ix, struct build_id *ret)
{
        for (size_t i = 0; i < ix->queue.count; i++) {
                *ret = ix->queue.items[i];
                if (id_set_has(&ix->running, ret) || id_set_add(&ix->running, ret))
                        continue;
                id_set_remove(&ix->queue, ret);
                return true;
        }
        return false;
}

static void *run(void *arg)
{
        struct indexer *ix = arg;
        struct build_id id;

        pthread_mutex_lock(&ix->lock);
        while (!atomic_load(&ix->stop)) {
                if (!take(ix, &id)) {
                        pthread_cond_wait(&ix->work, &ix->lock);
                        continue;
                }
                pthread_mutex_unlock(&ix->lock);
                run_job(ix, &id);
                pthread_mutex_lock(&ix->lock);
                id_set_remove(&ix->running, &id);
                metric_set(&waiting, (int64_t)(ix->queue.count + ix->running.count));
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
        struct build_id object_id;
        size_t at = 0;

        if (kind == OBJECT_SOURCE)
                return;
        if (kind != OBJECT_DWP && kind != OBJECT_DWO && !is_indexed(ix, id))
                mark(ix, id, OBJECT_PENDING, "");
        pthread_mutex_lock(&ix->lock);
        if (kind != OBJECT_DWO)
                enqueue(ix, id);
        while (needs_next(&ix->needs, id, &at, &object_id))
                enqueue(ix, &object_id);
        pthread_mutex_unlock(&ix->lock);
}

/* What came just before the service ended, and for whom. */
static void queue_waiting(struct indexer *ix)
{
        for (size_t i = 0; i < ix->needs.count; i++)
                if (is_stored(ix, &ix->needs.items[i].companion))
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
        ret = id_set_has(&ix->queue, id) || id_set_has(&ix->running, id);
        pthread_mutex_unlock(&ix->lock);
        return ret;
}

enum status indexer_start(const struct indexer_options *options, struct indexer **ret, struct error *err)
{
        long cores = sysconf(_SC_NPROCESSORS_ONLN);
        unsigned want = cores < 1 ? 1 : cores > MAX_THREADS ? MAX_THREADS : (unsigned)cores;
        struct indexer *ix = calloc(1, sizeof *ix);
        enum status st;

        if (!ix)
                return error_no_memory(err);
        metric_register(&indexed);
        metric_register(&kept);
        metric_register(&partial);
        metric_register(&failed);
        metric_register(&waiting);
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
        needs_deinit(&ix->needs);
        free(ix->scratch_dir);
        free(ix);
}
