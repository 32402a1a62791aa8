/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two kinds of conditions. Those of the service are in r->states, set by the thread's checks or by readiness_report().
 * Those of a store are derived at each visit from profile_store_get_health(), which does not wait for I/O. An error of
 * stores makes the service unready only if all stores have it.
 *
 * The thread is the only place that waits for the disk. Once a second, or when requested, it publishes free space and
 * statistics; callers wait for it about 100 ms and then take the previous ones. READY_STALLED is computed by the
 * visitor from the age of the statistics, because a thread that hangs cannot report it.
 *
 * Lock: r->lock over everything published; released during I/O.
 *
 * Order: texts of conditions, checks of the thread, conditions, start and stop.
 */
#include "server/core/readiness.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "common/clock.h"
#include "common/limits.h"
#include "common/metrics.h"
#include "common/stable_clock.h"
#include "common/text/number_text.h"
#include "common/threads/condition.h"

#define SECOND_NS INT64_C(1000000000)
#define STAT_WAIT_NS (SECOND_NS / 10)

struct state {
        bool holds;
        char text[256];
};

struct watched_store {
        struct readiness_store source;
        bool has_stat;
        struct profile_store_stat stat;
        struct state states[READY_CONDITION_COUNT]; /* conditions that a store reports */
};

struct readiness {
        const char *dir;
        size_t store_count;
        pthread_t thread;
        pthread_mutex_t lock; /* protects the members below; never held during I/O */
        pthread_cond_t requested, served;
        struct watched_store *stores; /* member `of` is constant, so read without the lock */
        bool stop;
        uint64_t request_count, served_count;
        int64_t stat_ns;                      /* monotonic time of the last statistics */
        uint64_t disk_free_bytes, disk_bytes; /* 0: unknown */
        uint64_t clock_steps;
        int64_t clock_step_ns;                      /* monotonic time when the last step was noticed */
        struct state states[READY_CONDITION_COUNT]; /* conditions of the service itself */
};

static const struct {
        const char *name, *severity, *next_step;
} kinds[READY_CONDITION_COUNT] = {
        [READY_FLUSH_FAILING] = { "flush_failing", "error",
                                  "queued batches are safe and will be retried; see the reason, and 'cairn store "
                                  "status'" },
        [READY_SYNC_FAILING] = { "sync_failing", "error",
                                 "the next flush begins a new queue file; if this persists, check the disk and the "
                                 "kernel's log" },
        [READY_QUEUE_FULL] = { "queue_full", "error",
                               "senders keep batches and retry; the disk is slow or full, or flushing fails" },
        [READY_DISK_FULL] = { "disk_full", "error",
                              "free disk space, for example with --retain, --retain-samples and 'cairn debuginfo gc'" },
        [READY_INDEX_FAILING] = { "index_failing", "warning",
                                  "samples are accepted, new symbols are delayed and retried; see the reason" },
        [READY_CLOCK_JUMP] = { "clock_jump", "warning",
                               "check time synchronization; batches without times of their own have those of the "
                               "clock" },
        [READY_QUARANTINE] = { "quarantine", "warning", "see 'cairn store quarantine list'; everything else proceeds" },
        [READY_COMPACTION_FAILING] = { "compaction_failing", "warning",
                                       "samples are written and read, but queries become slower; see the reason, and "
                                       "'cairn store compact'" },
        [READY_RETENTION_FAILING] = { "retention_failing", "warning",
                                      "expired samples stay until a retry succeeds; see the reason, and "
                                      "'cairn store expire'" },
        [READY_RELOAD_FAILING] = { "reload_failing", "warning",
                                   "the previous settings stay in use; correct the file and send SIGHUP "
                                   "(systemctl reload cairn)" },
        [READY_STALLED] = { "stalled", "warning", "the disk may hang; check it and the kernel's log" },
        [READY_PEER_MISSING] = { "peer_missing", "warning",
                                 "queries lack what that node acknowledged since then and did not flush; see the "
                                 "reason, "
                                 "and its log" },
        [READY_UNMAINTAINED] = { "unmaintained", "warning",
                                 "samples are written and read, but the tables grow and queries become slower: give a "
                                 "node the role maintain (--role)" },
        [READY_FOLLOW_FAILING] = { "follow_failing", "warning",
                                   "queries have what was committed until then, and say so; see the reason, and the "
                                   "object store" },
};

#define CONDITION(name) METRIC_GAUGE("cairn_ready_condition", "1: this condition holds.", "condition=\"" name "\"")
static struct metric metrics[READY_CONDITION_COUNT] = {
        [READY_FLUSH_FAILING] = CONDITION("flush_failing"),
        [READY_SYNC_FAILING] = CONDITION("sync_failing"),
        [READY_QUEUE_FULL] = CONDITION("queue_full"),
        [READY_DISK_FULL] = CONDITION("disk_full"),
        [READY_INDEX_FAILING] = CONDITION("index_failing"),
        [READY_CLOCK_JUMP] = CONDITION("clock_jump"),
        [READY_QUARANTINE] = CONDITION("quarantine"),
        [READY_STALLED] = CONDITION("stalled"),
        [READY_PEER_MISSING] = CONDITION("peer_missing"),
        [READY_UNMAINTAINED] = CONDITION("unmaintained"),
        [READY_FOLLOW_FAILING] = CONDITION("follow_failing"),
        [READY_COMPACTION_FAILING] = CONDITION("compaction_failing"),
        [READY_RETENTION_FAILING] = CONDITION("retention_failing"),
        [READY_RELOAD_FAILING] = CONDITION("reload_failing"),
};

/* Caller holds the lock of struct readiness. */
PRINTF(3, 4)
static void set_state(struct state *s, bool holds, const char *fmt, ...)
{
        va_list args;

        s->holds = holds;
        if (!holds)
                return;
        va_start(args, fmt);
        vsnprintf(s->text, sizeof s->text, fmt, args);
        va_end(args);
        for (char *p = s->text; *p; p++) /* one line per condition */
                if ((unsigned char)*p < ' ' || *p == 0x7f)
                        *p = '?';
}

/* ---- checks of the thread ---- */

static void watch_disk(struct readiness *r)
{
        struct statvfs fs;
        uint64_t free_bytes;

        if (statvfs(r->dir, &fs))
                return;
        free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
        pthread_mutex_lock(&r->lock);
        r->disk_free_bytes = free_bytes;
        r->disk_bytes = (uint64_t)fs.f_blocks * fs.f_frsize;
        set_state(&r->states[READY_DISK_FULL], free_bytes < LIMIT_DISK_LOW_BYTES,
                  "%" PRIu64 " MiB are free in '%s', less than %zu", free_bytes >> 20, r->dir,
                  (size_t)(LIMIT_DISK_LOW_BYTES >> 20));
        pthread_mutex_unlock(&r->lock);
}

void readiness_watch_clock(struct readiness *r, uint64_t steps, int64_t held_s, int64_t mono_ns)
{
        pthread_mutex_lock(&r->lock);
        if (steps != r->clock_steps) {
                r->clock_steps = steps;
                r->clock_step_ns = mono_ns;
        }
        if (held_s > 0)
                set_state(&r->states[READY_CLOCK_JUMP], true,
                          "the clock stepped forward by %" PRId64 " s, which does not count as age yet", held_s);
        else
                set_state(&r->states[READY_CLOCK_JUMP],
                          steps && mono_ns - r->clock_step_ns <= LIMIT_CLOCK_JUMP_SHOWN_S * SECOND_NS,
                          "the clock was set within the last hour, %s since startup", COUNTED(steps, "time", "times"));
        pthread_mutex_unlock(&r->lock);
}

static void watch_process_clock(struct readiness *r)
{
        int64_t held_s, left_s;
        uint64_t steps;

        stable_clock_is_held(&held_s, &left_s, &steps);
        readiness_watch_clock(r, steps, held_s, monotonic_ns());
}

/* Caller holds r->lock, which is released during I/O. */
static void update_store_stat(struct readiness *r, struct watched_store *w)
{
        struct profile_store_stat stat;
        bool is_valid;

        pthread_mutex_unlock(&r->lock);
        is_valid = !profile_store_stat(w->source.store, &stat, NULL);
        pthread_mutex_lock(&r->lock);
        if (is_valid)
                w->stat = stat;
        w->has_stat |= is_valid;
}

static void *watch_stores(void *arg)
{
        struct readiness *r = arg;

        pthread_mutex_lock(&r->lock);
        while (!r->stop) {
                uint64_t serving = r->request_count;

                pthread_mutex_unlock(&r->lock);
                if (r->dir) {
                        watch_process_clock(r);
                        watch_disk(r);
                }
                pthread_mutex_lock(&r->lock);
                for (size_t i = 0; i < r->store_count && !r->stop; i++)
                        update_store_stat(r, &r->stores[i]);
                r->stat_ns = monotonic_ns();
                r->served_count = serving;
                pthread_cond_broadcast(&r->served);
                if (!r->stop && r->request_count == serving)
                        condition_wait_until(&r->requested, &r->lock, monotonic_ns() + SECOND_NS);
        }
        pthread_mutex_unlock(&r->lock);
        return NULL;
}

/* What needs no I/O is not of the last statistics. */
static void update_queue_stat(struct profile_store *store, struct profile_store_stat *stat)
{
        profile_store_get_health(store, &stat->health);
        stat->queued_batches = stat->health.queued_batches;
        stat->queued_bytes = stat->health.queued_bytes;
}

void readiness_get_store_stats(struct readiness *r, struct profile_store_stat *ret)
{
        int64_t until = monotonic_ns() + STAT_WAIT_NS;
        uint64_t mine;

        pthread_mutex_lock(&r->lock);
        mine = ++r->request_count;
        pthread_cond_signal(&r->requested);
        while (r->served_count < mine && condition_wait_until(&r->served, &r->lock, until))
                ;
        for (size_t i = 0; i < r->store_count; i++) {
                if (r->stores[i].has_stat)
                        ret[i] = r->stores[i].stat;
                update_queue_stat(r->stores[i].source.store, &ret[i]);
        }
        pthread_mutex_unlock(&r->lock);
}

/* ---- conditions ---- */

void readiness_report(struct readiness *r, enum ready_condition condition, const struct error *err)
{
        pthread_mutex_lock(&r->lock);
        set_state(&r->states[condition], err != NULL, "%s", err ? err->text : "");
        pthread_mutex_unlock(&r->lock);
}

static void update_store_conditions(struct watched_store *w)
{
        struct state *states = w->states;
        struct profile_store_health h;

        profile_store_get_health(w->source.store, &h);
        set_state(&states[READY_FLUSH_FAILING], h.flush_failing_since != 0, "cannot flush: %s", h.flush_failure);
        set_state(&states[READY_SYNC_FAILING], h.sync_failing_since != 0, "the queue refuses batches: %s",
                  h.sync_failure);
        set_state(&states[READY_QUEUE_FULL], h.queue_full, "%" PRIu64 " of %" PRIu64 " bytes are queued",
                  h.queued_bytes, h.queue_limit_bytes);
        set_state(&states[READY_QUARANTINE], h.quarantined_batches != 0, "%s of %" PRIu64 " bytes %s set aside%s%.150s",
                  COUNTED(h.quarantined_batches, "batch", "batches"), h.quarantined_bytes,
                  h.quarantined_batches == 1 ? "is" : "are", h.quarantine_reason[0] ? ", the newest: " : "",
                  h.quarantine_reason);
        set_state(&states[READY_COMPACTION_FAILING], h.compaction_failing_since != 0, "cannot merge files: %s",
                  h.compaction_failure);
        set_state(&states[READY_RETENTION_FAILING], h.label_expiry_failing_since != 0,
                  "cannot remove samples by their labels: %s", h.label_expiry_failure);
        set_state(&states[READY_UNMAINTAINED], h.unmaintained_since != 0, "%s", h.unmaintained);
        set_state(&states[READY_FOLLOW_FAILING], h.follow_failing_since != 0, "cannot read new commits: %s",
                  h.follow_failure);
}

/* Whether the stores report the condition; else the service does. */
static bool is_store_condition(enum ready_condition condition)
{
        return condition == READY_FLUSH_FAILING || condition == READY_SYNC_FAILING || condition == READY_QUEUE_FULL ||
               condition == READY_QUARANTINE || condition == READY_COMPACTION_FAILING ||
               condition == READY_RETENTION_FAILING || condition == READY_UNMAINTAINED ||
               condition == READY_FOLLOW_FAILING;
}

static bool is_store_error(const struct watched_store *w, enum ready_condition condition)
{
        return w->states[condition].holds && !(condition == READY_FLUSH_FAILING && w->source.is_gateway);
}

static bool is_error_in_all_stores(const struct readiness *r, enum ready_condition condition)
{
        for (size_t i = 0; i < r->store_count; i++)
                if (!is_store_error(&r->stores[i], condition))
                        return false;
        return true;
}

/* A condition of stores is an error when all stores report it; otherwise the other tenants still accept batches. */
static bool is_condition_error(const struct readiness *r, enum ready_condition condition)
{
        return strcmp(kinds[condition].severity, "error") == 0 &&
               (!is_store_condition(condition) || is_error_in_all_stores(r, condition));
}

bool readiness_visit(struct readiness *r, void (*visit)(void *context, const struct readiness_condition *c),
                     void *context)
{
        bool is_ready = true;
        int64_t late_s;

        pthread_mutex_lock(&r->lock);
        late_s = (monotonic_ns() - r->stat_ns) / SECOND_NS;
        set_state(&r->states[READY_STALLED], late_s > LIMIT_STALLED_S, "the store has not answered for %" PRId64 " s",
                  late_s);
        for (size_t k = 0; k < r->store_count; k++)
                update_store_conditions(&r->stores[k]);
        for (unsigned i = 0; i < READY_CONDITION_COUNT; i++) {
                struct readiness_condition c = { .name = kinds[i].name,
                                                 .next_step = kinds[i].next_step,
                                                 .text = r->states[i].text,
                                                 .store = READINESS_SERVICE,
                                                 .is_error = is_condition_error(r, i) };
                bool holds = !is_store_condition(i) && r->states[i].holds;

                if (holds)
                        visit(context, &c);
                for (size_t k = 0; k < r->store_count && is_store_condition(i); k++) {
                        const struct watched_store *w = &r->stores[k];

                        holds |= w->states[i].holds;
                        c.text = w->states[i].text;
                        c.store = k;
                        c.tenant = w->source.tenant;
                        if (w->states[i].holds)
                                visit(context, &c);
                }
                is_ready &= !holds || !c.is_error;
                metric_set(&metrics[i], holds);
        }
        pthread_mutex_unlock(&r->lock);
        return is_ready;
}

static void write_condition(void *to, const struct readiness_condition *c)
{
        buf_printf(to, "%s %s: %s%s%s%s; %s\n", c->is_error ? "error" : "warning", c->name, c->tenant ? "tenant " : "",
                   c->tenant ? c->tenant : "", c->tenant ? ": " : "", c->text, c->next_step);
}

bool readiness_write(struct readiness *r, struct buf *to)
{
        return readiness_visit(r, write_condition, to);
}

bool readiness_get_disk(struct readiness *r, uint64_t *free_ret, uint64_t *size_ret)
{
        bool is_known;

        pthread_mutex_lock(&r->lock);
        is_known = r->disk_bytes != 0;
        if (is_known) {
                *free_ret = r->disk_free_bytes;
                *size_ret = r->disk_bytes;
        }
        pthread_mutex_unlock(&r->lock);
        return is_known;
}

/* ---- start and stop ---- */

static void readiness_destroy(struct readiness *r)
{
        pthread_cond_destroy(&r->requested);
        pthread_cond_destroy(&r->served);
        pthread_mutex_destroy(&r->lock);
        free(r->stores);
        free(r);
}

enum status readiness_start(const char *dir, const struct readiness_store *stores, size_t count, struct readiness **ret,
                            struct error *err)
{
        struct readiness *r = calloc(1, sizeof *r);
        int failed;

        if (r)
                r->stores = calloc(count + 1, sizeof *r->stores);
        if (!r || !r->stores) {
                free(r);
                return error_no_memory(err);
        }
        r->dir = dir;
        r->store_count = count;
        for (size_t i = 0; i < count; i++)
                r->stores[i].source = stores[i];
        r->stat_ns = monotonic_ns();
        pthread_mutex_init(&r->lock, NULL);
        pthread_cond_init(&r->requested, NULL);
        pthread_cond_init(&r->served, NULL);
        for (unsigned i = 0; i < READY_CONDITION_COUNT; i++)
                metric_register(&metrics[i]);
        failed = pthread_create(&r->thread, NULL, watch_stores, r);
        if (failed) {
                readiness_destroy(r);
                return error_os(err, failed, "cannot start a thread");
        }
        pthread_setname_np(r->thread, "readiness");
        *ret = r;
        return ST_OK;
}

void readiness_stop(struct readiness *r)
{
        if (!r)
                return;
        pthread_mutex_lock(&r->lock);
        r->stop = true;
        pthread_cond_signal(&r->requested);
        pthread_mutex_unlock(&r->lock);
        pthread_join(r->thread, NULL);
        readiness_destroy(r);
}
