/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One walk of the trees: the walking thread compares each file with what the
 * index knows and queues those that are new or changed; a few threads have
 * workers look at them; results are committed many at a time. Then files that
 * went away are taken out.
 */
#include <inttypes.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/condition.h"
#include "common/log.h"
#include "common/metrics.h"
#include "scan/round_internal.h"

#define THREADS_MAX 4
#define PROGRESS_NS 10000000000ll
#define SLICE 256 /* files that are looked for at one time */

static struct metric seen = METRIC_COUNTER("cairn_scan_files_seen_total", "Files met on walks of the scanned trees.", "");
static struct metric gone = METRIC_COUNTER("cairn_scan_files_gone_total", "Files that went away.", "");
static struct metric rounds = METRIC_COUNTER("cairn_scan_rounds_total", "Walks that ended.", "");
static struct metric running = METRIC_GAUGE("cairn_scan_running", "Whether the trees are being walked.", "");
static struct metric seconds = METRIC_GAUGE("cairn_scan_seconds", "How long the last walk took, in whole seconds.", "");
static struct metric files = METRIC_GAUGE("cairn_scan_files", "Files of the trees that are known, of use or not.", "");
static struct metric objects = METRIC_GAUGE("cairn_scan_objects", "Files and members of archives with a build-id.", "");
static struct metric sources = METRIC_GAUGE("cairn_scan_sources", "Other members of archives, which may be sources.", "");

void scan_round_metrics(void)
{
        struct metric *all[] = { &seen, &gone, &rounds, &running, &seconds, &files, &objects, &sources };

        round_look_metrics();
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
                metric_register(all[i]);
}

/* ---- walking ---- */

/* Called with the lock held. */
static void tell_progress(struct round *r)
{
        int64_t now = monotonic_ns();

        if (now - r->told_ns < PROGRESS_NS)
                return;
        r->told_ns = now;
        log_info("scan", "%" PRIu64 " files seen, %" PRIu64 " read, %" PRIu64 " of them archives, %" PRIu64 " objects, %" PRIu64
                 " errors so far", r->seen, r->read, r->archives, r->objects, r->errors);
}

/* A look at the queue and at the clock, until there is room or at most for a moment. Called with the lock held. */
static void wait_a_moment(struct round *r)
{
        atomic_store(&r->s->moved_ns, monotonic_ns());
        condition_wait_until(&r->changed, &r->lock, monotonic_ns() + 1000000000);
        if (r->result_count && monotonic_ns() - r->committed_ns > ROUND_COMMIT_NS)
                round_commit(r);
        tell_progress(r);
}

static bool is_own(const struct scan *s, const char *path)
{
        size_t n = strlen(s->own_dir);

        return strncmp(path, s->own_dir, n) == 0 && path[n] == '/';
}

static void walk_folder(void *context, const char *path)
{
        struct round *r = context;

        atomic_store(&r->s->moved_ns, monotonic_ns());
        pthread_mutex_lock(&r->s->at_lock);
        snprintf(r->s->at, sizeof r->s->at, "%s", path);
        pthread_mutex_unlock(&r->s->at_lock);
}

static enum status walk_file(void *context, const char *path, const struct stat *info, struct error *err)
{
        struct round *r = context;
        struct job job = { .info = *info };
        bool is_known;
        enum status st;

        atomic_store(&r->s->moved_ns, monotonic_ns());
        if (is_own(r->s, path))
                return ST_OK;
        st = scan_index_is_known(r->s->index, path, info, &is_known, err);
        if (st)
                return st;
        metric_add(&seen, 1);
        pthread_mutex_lock(&r->lock);
        r->seen++;
        while (!is_known && r->count == ROUND_QUEUE_MAX && !atomic_load(&r->s->stop))
                wait_a_moment(r);
        if (atomic_load(&r->s->stop))
                st = error_set(err, ST_BUSY, "the service stops");
        else if (!is_known && !(job.path = strdup(path)))
                st = error_no_memory(err);
        if (job.path) {
                r->queue[(r->first + r->count++) % ROUND_QUEUE_MAX] = job;
                pthread_cond_broadcast(&r->changed);
        }
        pthread_mutex_unlock(&r->lock);
        return st;
}

static void walk_problem(void *context, const char *path, const struct error *why)
{
        struct round *r = context;

        pthread_mutex_lock(&r->lock);
        round_count_error(r, path, ST_OS, why);
        pthread_mutex_unlock(&r->lock);
}

/* ---- what went away ---- */

/* Is it there no more, while its tree is? */
static bool is_gone(const struct scan_trees *t, const char *path)
{
        struct stat info;

        if (!scan_trees_hold(t, path))
                return true;
        if (lstat(path, &info) == 0)
                return !S_ISREG(info.st_mode);
        if (errno != ENOENT && errno != ENOTDIR)
                return false;
        for (size_t i = 0; i < t->count; i++) /* a tree that is not mounted has lost nothing */
                if (access(t->roots[i], F_OK) != 0)
                        return false;
        return true;
}

static enum status drop_gone(struct round *r, uint64_t *count_ret, struct error *err)
{
        struct scan_numbered slice[SLICE];
        uint32_t numbers[SLICE], after = 0;
        size_t count = SLICE, n;
        enum status st = ST_OK;

        while (!st && count == SLICE && !atomic_load(&r->s->stop)) {
                st = scan_index_next_files(r->s->index, after, slice, SLICE, &count, err);
                if (st)
                        break;
                n = 0;
                atomic_store(&r->s->moved_ns, monotonic_ns());
                for (size_t i = 0; i < count; i++) {
                        after = slice[i].number;
                        if (is_gone(&r->s->trees, slice[i].path))
                                numbers[n++] = after;
                        free(slice[i].path);
                }
                if (n)
                        st = scan_index_remove(r->s->index, numbers, n, err);
                if (!st)
                        *count_ret += n;
        }
        return st;
}

/* ---- a round ---- */

static unsigned start_threads(struct round *r, pthread_t threads[static THREADS_MAX])
{
        long cores = sysconf(_SC_NPROCESSORS_ONLN);
        unsigned want = cores < 1 ? 1 : cores > THREADS_MAX ? THREADS_MAX : (unsigned)cores, count = 0;

        while (count < want && pthread_create(&threads[count], NULL, round_look_at_files, r) == 0)
                pthread_setname_np(threads[count++], "scan-look");
        return count;
}

static void walk_trees(struct round *r)
{
        const struct scan_walk walk = { .file = walk_file, .problem = walk_problem, .folder = walk_folder, .context = r };
        struct error err;

        for (size_t i = 0; i < r->s->trees.count && !atomic_load(&r->s->stop); i++)
                if (scan_tree_walk(r->s->trees.roots[i], &walk, &err) && !atomic_load(&r->s->stop))
                        walk_problem(r, r->s->trees.roots[i], &err);
}

static void end_threads(struct round *r, const pthread_t *threads, unsigned count)
{
        pthread_mutex_lock(&r->lock);
        r->is_walked = true;
        pthread_cond_broadcast(&r->changed);
        while (r->count && !atomic_load(&r->s->stop))
                wait_a_moment(r);
        pthread_mutex_unlock(&r->lock);
        for (unsigned i = 0; i < count; i++)
                pthread_join(threads[i], NULL);
        pthread_mutex_lock(&r->lock);
        round_commit(r);
        pthread_mutex_unlock(&r->lock);
        for (; r->count; r->count--, r->first = (r->first + 1) % ROUND_QUEUE_MAX)
                free(r->queue[r->first].path);
}

static void set_gauges(struct scan *s)
{
        struct scan_counts counts;

        if (scan_index_count(s->index, &counts, NULL))
                return;
        metric_set(&files, (int64_t)counts.files);
        metric_set(&objects, (int64_t)counts.objects);
        metric_set(&sources, (int64_t)counts.sources);
}

void scan_round(struct scan *s, bool *news_ret)
{
        _cleanup_free_ struct round *r = calloc(1, sizeof *r);
        int64_t start = monotonic_ns();
        pthread_t threads[THREADS_MAX];
        uint64_t gone_count = 0;
        struct error err;
        unsigned count;

        *news_ret = false;
        if (!r) {
                log_error("scan", "no memory to walk the trees");
                return;
        }
        *r = (struct round){ .s = s, .committed_ns = start, .told_ns = start };
        pthread_mutex_init(&r->lock, NULL);
        pthread_cond_init(&r->changed, NULL);
        metric_set(&running, 1);
        atomic_store(&s->moved_ns, start);
        set_gauges(s);
        count = start_threads(r, threads);
        if (count)
                walk_trees(r);
        else
                log_error("scan", "cannot start a thread");
        end_threads(r, threads, count);
        if (drop_gone(r, &gone_count, &err))
                log_error("scan", "%s", err.text);
        metric_add(&gone, (int64_t)gone_count);
        set_gauges(s);
        metric_set(&seconds, (monotonic_ns() - start) / 1000000000);
        metric_set(&running, 0);
        atomic_store(&s->moved_ns, 0);
        if (!atomic_load(&s->stop)) {
                metric_add(&rounds, 1);
                log_info("scan", "%" PRIu64 " files seen, %" PRIu64 " read, %" PRIu64 " of them archives, %" PRIu64
                         " objects found, %" PRIu64 " files gone, %" PRIu64 " errors, in %" PRId64 " ms", r->seen, r->read,
                         r->archives, r->objects, gone_count, r->errors, (monotonic_ns() - start) / 1000000);
        }
        *news_ret = r->objects > 0;
        pthread_cond_destroy(&r->changed);
        pthread_mutex_destroy(&r->lock);
}
