/* SPDX-License-Identifier: Apache-2.0 */
#include "package-trees/package_scan.h"

#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/files/file.h"
#include "common/metrics.h"
#include "common/program/log.h"
#include "common/threads/condition.h"
#include "package-trees/package_scan_internal.h"

#define STALL_S 10
#define STOP_S 10 /* for files being inspected */

static struct metric stalled =
        METRIC_GAUGE("cairn_scan_stalled", "Whether the walk is blocked by an unresponsive file system.", "");

/* Wait until a walk is requested, the interval has passed, or the scan stops. Caller holds the lock. */
static void wait_for_pass_due(struct package_scan *s)
{
        int64_t until = monotonic_ns() + (int64_t)s->options.interval_s * 1000000000;

        while (!s->is_asked_for && !atomic_load(&s->stop))
                if (!s->options.interval_s)
                        pthread_cond_wait(&s->wake, &s->lock);
                else if (!condition_wait_until(&s->wake, &s->lock, until))
                        break;
}

static void *run_scan_thread(void *arg)
{
        struct package_scan *s = arg;
        bool news;

        pthread_mutex_lock(&s->lock);
        while (!atomic_load(&s->stop)) {
                s->is_asked_for = false;
                pthread_mutex_unlock(&s->lock);
                package_scan_run_walk(s, &news);
                if (!atomic_load(&s->stop))
                        atomic_store(&s->has_walked, true);
                if (news && s->options.found && !atomic_load(&s->stop))
                        s->options.found(s->options.context);
                pthread_mutex_lock(&s->lock);
                wait_for_pass_due(s);
        }
        s->has_ended = true;
        pthread_cond_broadcast(&s->wake);
        pthread_mutex_unlock(&s->lock);
        return NULL;
}

enum status package_scan_start(struct package_scan *s, struct error *err)
{
        int failed = pthread_create(&s->thread, NULL, run_scan_thread, s);

        if (failed)
                return error_os(err, failed, "cannot start a thread");
        s->has_thread = true;
        pthread_setname_np(s->thread, "scan");
        return ST_OK;
}

enum status package_scan_create(const struct package_scan_options *options, struct package_scan **ret,
                                struct error *err)
{
        _cleanup_free_ char *index = path_join(options->dir, "index"), *unpacked = path_join(options->dir, "unpacked");
        struct package_scan *s = calloc(1, sizeof *s);
        enum status st;

        if (!s)
                return error_no_memory(err);
        s->options = *options;
        pthread_mutex_init(&s->lock, NULL);
        pthread_cond_init(&s->wake, NULL);
        pthread_mutex_init(&s->fork_server_lock, NULL);
        pthread_mutex_init(&s->at_lock, NULL);
        metric_register(&stalled);
        s->scratch_dir = strdup(options->scratch_dir);
        st = s->scratch_dir && index && unpacked ? ST_OK : error_no_memory(err);
        if (!st)
                st = package_trees_init(&s->trees, options->dirs, options->dir_count, err);
        if (!st)
                st = package_index_open(index, &s->index, err);
        if (!st)
                st = extracted_cache_open(unpacked, options->cache_bytes, &s->cache, err);
        if (!st && !(s->own_dir = realpath(options->dir, NULL)))
                st = error_os(err, errno, "cannot find '%s'", options->dir);
        package_scan_run_register_metrics();
        if (st) {
                package_scan_destroy(s);
                return st;
        }
        *ret = s;
        return ST_OK;
}

/* pthread_clockjoin_np() would be simpler, but the thread sanitizer of GCC 12 does not support it. */
static bool wait_for_scan_end(struct package_scan *s)
{
        int64_t until = monotonic_ns() + STOP_S * INT64_C(1000000000);

        while (!s->has_ended && condition_wait_until(&s->wake, &s->lock, until))
                ;
        return s->has_ended;
}

void package_scan_stop(struct package_scan *s)
{
        bool has_ended;

        if (!s)
                return;
        pthread_mutex_lock(&s->lock);
        atomic_store(&s->stop, true);
        pthread_cond_broadcast(&s->wake);
        has_ended = !s->has_thread || wait_for_scan_end(s);
        pthread_mutex_unlock(&s->lock);
        if (!has_ended) {
                log_warn("scan", "the walk hangs in a file system that does not respond; not waiting for it");
                return;
        }
        if (s->has_thread)
                pthread_join(s->thread, NULL);
        s->has_thread = false;
}

void package_scan_check_progress(struct package_scan *s)
{
        int64_t moved_ns = atomic_load(&s->moved_ns), now_ns = monotonic_ns();
        bool is_stalled = moved_ns && now_ns - moved_ns > STALL_S * INT64_C(1000000000);
        char at[sizeof s->at];

        if (is_stalled == s->is_stalled)
                return;
        s->is_stalled = is_stalled;
        metric_set(&stalled, is_stalled);
        pthread_mutex_lock(&s->at_lock);
        memcpy(at, s->at, sizeof at);
        pthread_mutex_unlock(&s->at_lock);
        if (is_stalled)
                log_warn("scan",
                         "'%s': a file system there has not responded for %d s and blocks the walk; check its server, "
                         "unmount it (umount -l), or remove it from --scan",
                         at, STALL_S);
        else
                log_info("scan", "the walk continues");
}

void package_scan_destroy(struct package_scan *s)
{
        if (!s || s->has_thread) /* the walk hangs and may still return */
                return;
        extracted_cache_close(s->cache);
        package_index_close(s->index);
        package_trees_deinit(&s->trees);
        pthread_cond_destroy(&s->wake);
        pthread_mutex_destroy(&s->lock);
        pthread_mutex_destroy(&s->fork_server_lock);
        pthread_mutex_destroy(&s->at_lock);
        free(s->scratch_dir);
        free(s->own_dir);
        free(s);
}

void package_scan_request_run(struct package_scan *s)
{
        pthread_mutex_lock(&s->lock);
        s->is_asked_for = true;
        pthread_cond_broadcast(&s->wake);
        pthread_mutex_unlock(&s->lock);
}

bool package_scan_has_walked(struct package_scan *s)
{
        return atomic_load(&s->has_walked);
}

uint8_t package_scan_find_kinds(struct package_scan *s, const struct build_id *id)
{
        return package_index_find_kinds(s->index, id);
}

size_t package_scan_find_prefix(struct package_scan *s, const void *prefix, size_t n, struct build_id *ret, size_t max)
{
        return package_index_find_prefix(s->index, prefix, n, ret, max);
}

enum status package_scan_list(struct package_scan *s, const struct build_id *id, package_index_each *each,
                              void *context, struct error *err)
{
        return package_index_list(s->index, id, each, context, err);
}
