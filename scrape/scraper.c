/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop is one profile of one target. It is in one place at a time: in the heap, ordered by the time when it is due;
 * in the ready list, due and waiting for a thread; or with the thread that runs it. scraper_run() is the scheduler: it
 * refreshes the targets, moves due loops from the heap to the ready list, starts threads up to the limit, and flushes
 * merged batches. A thread takes a loop from the list, scrapes, and pushes it back with its next due time; wake_fd
 * then wakes the scheduler. With options.once a loop that is done is in none of the three.
 *
 * A target that leaves the configuration is unlinked at once and freed by the last of its loops that is still ready or
 * running. Room in the heap is reserved when a target is added, so that pushing a loop back cannot fail.
 *
 * Lock: s->lock covers targets, heap, ready list and results. Requests, decoding and the subtraction of totals run
 * without it. New totals replace the old ones only after the delta was accepted, so the time of a failed scrape is
 * covered by the next delta.
 *
 * With options.needs_lease nothing becomes ready, and no thread takes a ready loop, unless scrapes are permitted. A
 * scrape belongs to the term in which it began: in a later one its samples are refused, and its totals are not used.
 *
 * Order: metrics, heap, targets, one scrape and its result, schedule with creation and destruction, the lease, reports.
 */
#include "scrape/scraper.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "common/metrics.h"
#include "common/program/log.h"
#include "common/text/utf8.h"
#include "scrape/batch_merge.h"
#include "scrape/counter_delta.h"
#include "scrape/cpu_turn.h"
#include "scrape/delivery_metrics.h"
#include "scrape/due_heap.h"

#define FILES_INTERVAL_NS INT64_C(1000000000) /* poll interval of files of targets */
#define WAIT_MOST_NS INT64_C(3600000000000)   /* longest wait of the scheduler */

/* ---- metrics ---- */

static struct metric scrapes_metric = METRIC_COUNTER("cairn_scrapes_total", "Completed scrapes.", "");
#define FAILURES(reason) METRIC_COUNTER("cairn_scrape_failures_total", "Failed scrapes.", "reason=\"" reason "\"")
static struct metric failure_metrics[FETCH_FAILURES] = {
        [FETCH_UNREACHABLE] = FAILURES("unreachable"), [FETCH_TIMEOUT] = FAILURES("timeout"),
        [FETCH_HTTP_STATUS] = FAILURES("http_status"), [FETCH_TOO_BIG] = FAILURES("too_big"),
        [FETCH_BAD_PROFILE] = FAILURES("bad_profile"), [FETCH_BUSY] = FAILURES("busy"),
        [FETCH_CONFIG] = FAILURES("configuration"),
};
static struct metric resets_metric =
        METRIC_COUNTER("cairn_scrape_resets_total", "Counter resets of cumulative profiles (process restarts).", "");
static struct metric missed_metric =
        METRIC_COUNTER("cairn_scrape_missed_total", "Scrapes skipped because the previous one was still running.", "");
static struct metric samples_metric = METRIC_COUNTER("cairn_scrape_samples_total", "Samples handed to the sender.", "");
static struct metric bytes_metric = METRIC_COUNTER("cairn_scrape_body_bytes_total", "Bytes of bodies received.", "");
#define TARGET_METRICS(state) METRIC_GAUGE("cairn_scrape_targets", "Targets by state.", "state=\"" state "\"")

static struct metric target_metrics[] = { TARGET_METRICS("active"), TARGET_METRICS("dropped"),
                                          TARGET_METRICS("invalid") };
#define FILE_METRICS(state) METRIC_GAUGE("cairn_scrape_files", "Files of targets by state.", "state=\"" state "\"")

static struct metric file_metrics[] = { FILE_METRICS("read"), FILE_METRICS("failed") };
static struct metric running_metric = METRIC_GAUGE("cairn_scrape_running", "Running scrapes.", "");
static struct metric waiting_metric = METRIC_GAUGE("cairn_scrape_waiting", "Scrapes waiting for a thread.", "");
static void set_gauge(struct metric *m, uint64_t v)
{
        metric_set(m, (int64_t)v);
}

/* ---- loops: one profile of one target ---- */

struct scraped_target;

struct scrape_loop {
        struct due_item due; /* first, so that the heap's items are loops */
        struct scraped_target *owner;
        const struct scrape_profile *profile;
        struct scrape_loop *next_ready;
        bool is_done; /* with options.once: needs no further scrape */
        struct scrape_result result;
        enum fetch_failure last_failure; /* when result has an error */
        bool has_note;                   /* the decoder had a remark on the last profile */
        /* used only by the thread that runs the loop */
        struct counter_totals totals;
        uint64_t totals_term;              /* in which it was read */
        int64_t totals_unix_ns, totals_ns; /* when: wall clock, monotonic */
};

struct scraped_target {
        struct scrape_target target;
        struct scrape_loop *loops; /* owned */
        size_t loop_count;
        size_t in_use;   /* loops that are ready or running */
        bool is_removed; /* freed when none is in use */
};

struct scraper {
        struct scraper_options o;
        struct discovery *discovery;
        struct batch_merge batches;
        pthread_mutex_t lock; /* protects everything below except the totals of running loops */
        pthread_cond_t ready_changed;
        struct scraped_target **targets; /* owned */
        size_t target_count, target_capacity;
        struct due_heap heap; /* of the loops that are neither ready nor running */
        struct scrape_loop *ready, **ready_end;
        size_t ready_count, running;
        size_t pending; /* with options.once: loops that are not done */
        pthread_t *threads;
        unsigned thread_count, idle;
        uint64_t term;        /* as of batch_merge.h; 0: scrapes are not permitted */
        int64_t permitted_ns; /* monotonic: they are until then */
        atomic_bool stop;
        atomic_bool cancel; /* running requests end: the scraper stops, or the term ended */
        int wake_fd;
};

/* ---- heap ---- */

_Static_assert(offsetof(struct scrape_loop, due) == 0, "an item of the heap is a loop");

static struct scrape_loop *get_heap_loop(const struct scraper *s, size_t i)
{
        return (struct scrape_loop *)s->heap.items[i];
}

static void remove_target_loops(struct scraper *s)
{
        size_t kept = 0;

        for (size_t i = 0; i < s->heap.count; i++)
                if (!get_heap_loop(s, i)->owner->is_removed)
                        s->heap.items[kept++] = s->heap.items[i];
        s->heap.count = kept;
        due_heap_order(&s->heap);
}

/* ---- targets ---- */

static void destroy_scraped_target(struct scraped_target *t)
{
        for (size_t i = 0; i < t->loop_count; i++)
                counter_totals_deinit(&t->loops[i].totals);
        free(t->loops);
        scrape_target_deinit(&t->target);
        free(t);
}

static int64_t interval_ns(const struct scrape_loop *l)
{
        return (int64_t)l->owner->target.job->interval_ms * 1000000;
}

/* A fixed offset in each interval of the wall clock, independent of when the command starts. */
static int64_t choose_first_turn(const struct scraper *s, const struct scrape_loop *l)
{
        int64_t interval = interval_ns(l), now = monotonic_ns();
        int64_t turn = (int64_t)(scrape_target_hash(&l->owner->target, l->profile) % (uint64_t)interval);

        if (s->o.once)
                return now;
        return now + (turn - wall_clock_ns() % interval + interval) % interval;
}

/* Takes the content of `from`. */
static enum status create_scraped_target(struct scraper *s, struct scrape_target *from, struct scraped_target **ret,
                                         struct error *err)
{
        struct scraped_target *t = calloc(1, sizeof *t);

        if (!t)
                return error_no_memory(err);
        t->target = *from;
        *from = (struct scrape_target){ 0 };
        t->loops = calloc(t->target.job->profile_count + 1, sizeof *t->loops);
        if (!t->loops) {
                destroy_scraped_target(t);
                return error_no_memory(err);
        }
        for (size_t i = 0; i < t->target.job->profile_count; i++) {
                struct scrape_loop *l = &t->loops[t->loop_count];

                if (!t->target.job->profiles[i].enabled)
                        continue;
                *l = (struct scrape_loop){ .owner = t, .profile = &t->target.job->profiles[i] };
                l->due.due_ns = choose_first_turn(s, l);
                t->loop_count++;
        }
        *ret = t;
        return ST_OK;
}

static struct scraped_target *find_scraped_target(const struct scraper *s, const struct scrape_target *t)
{
        for (size_t i = 0; i < s->target_count; i++)
                if (scrape_target_equal(&s->targets[i]->target, t))
                        return s->targets[i];
        return NULL;
}

/* Make room in the heap for all loops, including running ones, which are pushed back. */
static bool reserve_heap(struct scraper *s, size_t more)
{
        size_t loops = more;

        for (size_t i = 0; i < s->target_count; i++)
                loops += s->targets[i]->loop_count;
        loops += s->ready_count + s->running; /* an upper bound of those of removed targets */
        return loops <= s->heap.capacity ||
               array_reserve_many(&s->heap.items, &s->heap.capacity, s->heap.count, loops - s->heap.count);
}

static enum status add_scraped_target(struct scraper *s, struct scrape_target *from, struct error *err)
{
        struct scraped_target *t = NULL;
        enum status st;

        if (!array_reserve(&s->targets, &s->target_capacity, s->target_count))
                return error_no_memory(err);
        st = create_scraped_target(s, from, &t, err);
        if (st)
                return st;
        if (!reserve_heap(s, t->loop_count)) {
                destroy_scraped_target(t);
                return error_no_memory(err);
        }
        s->targets[s->target_count++] = t;
        for (size_t i = 0; i < t->loop_count; i++)
                due_heap_push(&s->heap, &t->loops[i].due);
        s->pending += t->loop_count;
        return ST_OK;
}

/* Targets that stay keep their schedule and totals. Caller holds s->lock. */
static enum status replace_targets(struct scraper *s, struct target_list *list, struct error *err)
{
        size_t kept = 0;
        enum status st = ST_OK;

        for (size_t i = 0; i < s->target_count; i++)
                s->targets[i]->is_removed = true;
        for (size_t i = 0; !st && i < list->count; i++) {
                struct scraped_target *t = find_scraped_target(s, &list->items[i]);

                if (t)
                        t->is_removed = false;
                else
                        st = add_scraped_target(s, &list->items[i], err);
        }
        remove_target_loops(s);
        for (size_t i = 0; i < s->target_count; i++) {
                struct scraped_target *t = s->targets[i];

                if (!t->is_removed)
                        s->targets[kept++] = t;
                else if (!t->in_use)
                        destroy_scraped_target(t);
        }
        s->target_count = kept;
        return st;
}

static enum status refresh_targets(struct scraper *s, struct error *err)
{
        _cleanup_target_list_ struct target_list list = { 0 };
        struct discovery_counts counts;
        bool changed = false;
        enum status st = discovery_refresh(s->discovery, &changed, err);

        if (!st && changed)
                st = discovery_list_targets(s->discovery, &list, err);
        if (st)
                return st;
        discovery_get_counts(s->discovery, &counts);
        set_gauge(&target_metrics[1], counts.dropped);
        set_gauge(&target_metrics[2], counts.invalid);
        set_gauge(&file_metrics[0], counts.files - counts.failed_files);
        set_gauge(&file_metrics[1], counts.failed_files);
        if (!changed)
                return ST_OK;
        pthread_mutex_lock(&s->lock);
        st = replace_targets(s, &list, err);
        set_gauge(&target_metrics[0], s->target_count);
        pthread_mutex_unlock(&s->lock);
        return st;
}

/* ---- one scrape ---- */

struct scrape_outcome {
        uint64_t term; /* in which the scrape began */
        enum status status;
        enum fetch_failure failure; /* unless ST_OK */
        enum counter_change change;
        bool is_cumulative;
        int64_t began_unix_ns;
        uint64_t took_ms, samples, body_bytes;
        struct error err;
        char note[240]; /* of the decoder */
};

/* Times are by this host's clock, not the target's. A delta covers the time from the last totals to the new ones. */
static void set_sample_times(const struct scrape_loop *l, struct profile *p, const struct scrape_outcome *o,
                             int64_t now_ns)
{
        int64_t took_ns = (int64_t)o->took_ms * 1000000;

        for (uint32_t i = 0; i < p->samples.count; i++) {
                struct profile_sample *sample = &p->samples.items[i];

                if (o->is_cumulative && counter_type_is_total(p, sample->type)) {
                        sample->time_unix_ns = l->totals_unix_ns;
                        sample->duration_ns = now_ns - l->totals_ns;
                        continue;
                }
                sample->time_unix_ns = o->began_unix_ns;
                if (!l->profile->delta)
                        sample->duration_ns = 0;
                else if (sample->duration_ns <= 0 || sample->duration_ns > took_ns)
                        sample->duration_ns = took_ns;
        }
}

static enum status send_scraped_profile(struct scraper *s, struct scrape_loop *l, struct profile *p, int64_t now_ns,
                                        struct scrape_outcome *o)
{
        struct counter_totals totals = { 0 };
        enum status st = ST_OK;

        if (l->profile->cumulative) {
                o->is_cumulative = true;
                st = counter_totals_subtract(&l->totals, p, &totals, &o->change, &o->err);
        }
        if (!st) {
                set_sample_times(l, p, o, now_ns);
                o->samples = p->samples.count;
                if (p->samples.count)
                        st = batch_merge_add(&s->batches, p, o->term, &o->err);
        }
        if (st) { /* old totals stay, so that the next delta covers this time too */
                o->failure = st == ST_BAD_DATA ? FETCH_BAD_PROFILE : st == ST_TOO_BIG ? FETCH_TOO_BIG : FETCH_BUSY;
                counter_totals_deinit(&totals);
                return st;
        }
        if (l->profile->cumulative) {
                counter_totals_deinit(&l->totals);
                l->totals = totals;
                l->totals_term = o->term;
                l->totals_unix_ns = o->began_unix_ns;
                l->totals_ns = now_ns;
        }
        return ST_OK;
}

/* Caller does not hold s->lock. */
static void run_scrape(struct scraper *s, struct scrape_loop *l, struct scrape_outcome *o)
{
        int64_t began_ns = monotonic_ns();
        struct fetched_profile fetched;

        if (l->totals_term != o->term) /* others counted from there meanwhile */
                counter_totals_deinit(&l->totals);
        o->began_unix_ns = wall_clock_ns();
        o->status = fetch_profile(&l->owner->target, l->profile, &s->cancel, &fetched, &o->failure, &o->err);
        o->took_ms = (uint64_t)(monotonic_ns() - began_ns) / 1000000;
        if (o->status)
                return;
        o->body_bytes = fetched.body_bytes;
        snprintf(o->note, sizeof o->note, "%s", fetched.profile.note);
        cpu_turn_begin();
        o->status = send_scraped_profile(s, l, &fetched.profile, began_ns, o);
        cpu_turn_end();
        profile_deinit(&fetched.profile);
}

/*
 * A failure is logged when it begins and when its kind changes, a remark when it begins; texts may contain times.
 * Caller holds s->lock.
 */
static void log_scrape_result(const struct scrape_loop *l, const struct scrape_outcome *o)
{
        const struct label_set *labels = &l->owner->target.labels;
        const char *job = label_set_get(labels, "job"), *instance = label_set_get(labels, "instance");
        const struct scrape_result *before = &l->result;

        if (o->status && (!before->error[0] || l->last_failure != o->failure))
                log_warn("scrape", "job '%s', %s, %s%s: %s", PRINTABLE(job), PRINTABLE(instance),
                         l->owner->target.base_url, l->profile->path, PRINTABLE(o->err.text));
        else if (!o->status && before->error[0])
                log_info("scrape", "job '%s', %s: %s is up again", PRINTABLE(job), PRINTABLE(instance),
                         l->profile->name);
        if (*o->note && !l->has_note)
                log_warn("scrape", "job '%s', %s: %s: %s", PRINTABLE(job), PRINTABLE(instance), l->profile->name,
                         PRINTABLE(o->note));
        if (!o->status && o->is_cumulative && o->change == COUNTER_RESET)
                log_info("scrape", "job '%s', %s: %s was reset", PRINTABLE(job), PRINTABLE(instance), l->profile->name);
}

static void note_scrape_result(struct scrape_loop *l, const struct scrape_outcome *o)
{
        struct scrape_result *r = &l->result;

        log_scrape_result(l, o);
        if (!o->status)
                l->has_note = *o->note;
        metric_add(&scrapes_metric, 1);
        r->scrapes++;
        r->is_up = !o->status;
        r->began_unix_ns = o->began_unix_ns;
        r->took_ms = o->took_ms;
        r->samples = o->status ? 0 : o->samples;
        r->body_bytes = o->body_bytes;
        snprintf(r->error, sizeof r->error, "%s", o->status ? o->err.text : "");
        if (o->status) {
                l->last_failure = o->failure;
                r->failures++;
                metric_add(&failure_metrics[o->failure], 1);
                return;
        }
        metric_add(&bytes_metric, (int64_t)o->body_bytes);
        metric_add(&samples_metric, (int64_t)o->samples);
        if (o->is_cumulative && o->change == COUNTER_RESET) {
                r->resets++;
                metric_add(&resets_metric, 1);
        }
}

static void choose_next_turn(struct scrape_loop *l)
{
        int64_t interval = interval_ns(l), now = monotonic_ns();
        int64_t turns = now > l->due.due_ns ? (now - l->due.due_ns) / interval : 0;

        l->due.due_ns += (turns + 1) * interval;
        l->result.missed += (uint64_t)turns;
        metric_add(&missed_metric, turns);
}

static void wake_scheduler(struct scraper *s)
{
        (void)!write(s->wake_fd, &(uint64_t){ 1 }, sizeof(uint64_t));
}

/* After a scrape. Caller holds s->lock. */
static void put_loop_back(struct scraper *s, struct scrape_loop *l, const struct scrape_outcome *o)
{
        struct scraped_target *t = l->owner;

        s->running--;
        t->in_use--;
        if (s->o.once && !l->is_done && (o->status || !o->is_cumulative || o->change != COUNTER_FIRST)) {
                l->is_done = true;
                s->pending--;
        }
        if (t->is_removed) {
                if (!t->in_use)
                        destroy_scraped_target(t);
        } else if (!l->is_done) {
                choose_next_turn(l);
                due_heap_push(&s->heap, &l->due);
        }
        wake_scheduler(s);
}

static struct scrape_loop *take_ready_loop(struct scraper *s)
{
        struct scrape_loop *l = s->ready;

        s->ready = l->next_ready;
        if (!s->ready)
                s->ready_end = &s->ready;
        s->ready_count--;
        s->running++;
        return l;
}

/* Caller holds s->lock. */
static bool is_permitted(const struct scraper *s)
{
        return s->term && monotonic_ns() < s->permitted_ns;
}

static void *run_scrape_thread(void *arg)
{
        struct scraper *s = arg;

        pthread_mutex_lock(&s->lock);
        while (!atomic_load(&s->stop)) {
                struct scrape_outcome o = { 0 };
                struct scrape_loop *l;

                if (!s->ready || !is_permitted(s)) {
                        s->idle++;
                        pthread_cond_wait(&s->ready_changed, &s->lock);
                        s->idle--;
                        continue;
                }
                l = take_ready_loop(s);
                o.term = s->term;
                pthread_mutex_unlock(&s->lock);
                run_scrape(s, l, &o);
                pthread_mutex_lock(&s->lock);
                if (!atomic_load(&s->stop) && o.term == s->term)
                        note_scrape_result(l, &o);
                put_loop_back(s, l, &o);
        }
        pthread_mutex_unlock(&s->lock);
        return NULL;
}

/* ---- the schedule ---- */

/* Fails only if there is no thread at all. Caller holds s->lock. */
static enum status start_scrape_thread(struct scraper *s, struct error *err)
{
        int e = pthread_create(&s->threads[s->thread_count], NULL, run_scrape_thread, s);

        if (e && !s->thread_count)
                return error_os(err, e, "cannot start a thread");
        if (!e)
                pthread_setname_np(s->threads[s->thread_count++], "scrape");
        return ST_OK;
}

/* Hand due loops to threads. *next_ret: when the next one is due. */
static enum status start_due_loops(struct scraper *s, int64_t *next_ret, struct error *err)
{
        int64_t now = monotonic_ns();
        enum status st = ST_OK;

        pthread_mutex_lock(&s->lock);
        while (is_permitted(s) && s->heap.count && s->heap.items[0]->due_ns <= now) {
                struct scrape_loop *l = (struct scrape_loop *)due_heap_pop(&s->heap);

                l->owner->in_use++;
                l->next_ready = NULL;
                *s->ready_end = l;
                s->ready_end = &l->next_ready;
                s->ready_count++;
        }
        for (size_t i = s->idle; !st && i < s->ready_count && s->thread_count < s->o.concurrency; i++)
                st = start_scrape_thread(s, err);
        if (s->ready)
                pthread_cond_broadcast(&s->ready_changed);
        *next_ret = is_permitted(s) && s->heap.count ? s->heap.items[0]->due_ns : INT64_MAX;
        pthread_mutex_unlock(&s->lock);
        return st;
}

/* The time until the earlier of two, rounded up. */
static int choose_wait_ms(int64_t a_ns, int64_t b_ns)
{
        int64_t left_ns = (a_ns < b_ns ? a_ns : b_ns) - monotonic_ns();

        if (left_ns > WAIT_MOST_NS)
                left_ns = WAIT_MOST_NS;
        return left_ns <= 0 ? 0 : (int)(left_ns / 1000000 + 1);
}

static bool is_everything_done(struct scraper *s)
{
        bool done;

        pthread_mutex_lock(&s->lock);
        done = s->o.once && s->pending == 0;
        pthread_mutex_unlock(&s->lock);
        return done;
}

enum status scraper_run(struct scraper *s, int stop_fd, struct error *err)
{
        int64_t next_files = 0, next_batch;

        for (;;) {
                struct pollfd fds[] = { { .fd = stop_fd, .events = POLLIN }, { .fd = s->wake_fd, .events = POLLIN } };
                int64_t now = monotonic_ns(), next = 0;
                uint64_t count;
                enum status st = ST_OK;

                if (now >= next_files) {
                        st = refresh_targets(s, err);
                        next_files = s->o.once ? INT64_MAX : now + FILES_INTERVAL_NS;
                }
                if (!st)
                        st = start_due_loops(s, &next, err);
                if (st)
                        return st;
                if (is_everything_done(s))
                        return ST_OK;
                next_batch = batch_merge_flush(&s->batches, BATCH_MERGE_NS);
                next = next < next_batch ? next : next_batch;
                if (poll(fds, 2, choose_wait_ms(next, next_files)) < 0 && errno != EINTR)
                        return error_os(err, errno, "cannot wait");
                if (fds[0].revents)
                        return ST_OK;
                if (fds[1].revents)
                        (void)!read(s->wake_fd, &count, sizeof count);
        }
}

enum status scraper_create(const struct scraper_options *o, struct scraper **ret, struct error *err)
{
        struct scraper *s = calloc(1, sizeof *s);
        enum status st;

        assert(o->concurrency >= 1 && o->concurrency <= LIMIT_SCRAPE_THREADS);
        if (!s)
                return error_no_memory(err);
        s->o = *o;
        s->ready_end = &s->ready;
        pthread_mutex_init(&s->lock, NULL);
        pthread_cond_init(&s->ready_changed, NULL);
        batch_merge_init(&s->batches, o->sender, o->needs_lease);
        s->term = !o->needs_lease;
        s->permitted_ns = o->needs_lease ? 0 : INT64_MAX;
        s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        s->threads = calloc(o->concurrency, sizeof *s->threads);
        st = s->wake_fd < 0 ? error_os(err, errno, "cannot create an event descriptor")
             : s->threads   ? discovery_create(o->config, &s->discovery, err)
                            : error_no_memory(err);
        for (size_t i = 0; i < FETCH_FAILURES; i++)
                metric_register(&failure_metrics[i]);
        metric_register(&scrapes_metric);
        metric_register(&resets_metric);
        metric_register(&missed_metric);
        if (st)
                scraper_destroy(s);
        else
                *ret = s;
        return st;
}

void scraper_stop(struct scraper *s)
{
        pthread_mutex_lock(&s->lock);
        atomic_store(&s->stop, true);
        atomic_store(&s->cancel, true);
        pthread_cond_broadcast(&s->ready_changed);
        pthread_mutex_unlock(&s->lock);
        for (unsigned i = 0; i < s->thread_count; i++)
                pthread_join(s->threads[i], NULL);
        s->thread_count = 0;
        (void)batch_merge_flush(&s->batches, 0);
}

void scraper_destroy(struct scraper *s)
{
        if (!s)
                return;
        scraper_stop(s);
        while (s->ready) { /* loops of removed targets are in this list only */
                struct scrape_loop *l = take_ready_loop(s);

                if (--l->owner->in_use == 0 && l->owner->is_removed)
                        destroy_scraped_target(l->owner);
        }
        for (size_t i = 0; i < s->target_count; i++)
                destroy_scraped_target(s->targets[i]);
        free(s->targets);
        free(s->heap.items);
        free(s->threads);
        batch_merge_deinit(&s->batches);
        discovery_destroy(s->discovery);
        if (s->wake_fd >= 0)
                close(s->wake_fd);
        pthread_cond_destroy(&s->ready_changed);
        pthread_mutex_destroy(&s->lock);
        free(s);
}

/* ---- the lease ---- */

static void skip_passed_turns(struct scrape_loop *l, int64_t now)
{
        int64_t interval = interval_ns(l);

        if (l->due.due_ns < now)
                l->due.due_ns += (now - l->due.due_ns) / interval * interval;
}

/*
 * Turns that passed while scrapes were not permitted are skipped; a loop that was ready before has the last of them
 * now. Caller holds s->lock.
 */
static void skip_turns(struct scraper *s)
{
        int64_t now = monotonic_ns();

        for (size_t i = 0; i < s->heap.count; i++) {
                struct scrape_loop *l = get_heap_loop(s, i);

                skip_passed_turns(l, now);
                if (l->due.due_ns < now)
                        l->due.due_ns += interval_ns(l);
        }
        due_heap_order(&s->heap);
        for (struct scrape_loop *l = s->ready; l; l = l->next_ready)
                skip_passed_turns(l, now);
}

void scraper_permit(struct scraper *s, uint64_t term, int64_t until_ns)
{
        pthread_mutex_lock(&s->lock);
        assert(s->o.needs_lease && term && (!s->term || s->term == term));
        if (!is_permitted(s))
                skip_turns(s);
        if (!s->term)
                batch_merge_begin_term(&s->batches, term);
        s->term = term;
        s->permitted_ns = until_ns;
        if (!atomic_load(&s->stop))
                atomic_store(&s->cancel, false);
        pthread_mutex_unlock(&s->lock);
        wake_scheduler(s);
}

void scraper_confirm(struct scraper *s, int64_t until_ns)
{
        batch_merge_confirm(&s->batches, until_ns);
}

void scraper_revoke(struct scraper *s)
{
        pthread_mutex_lock(&s->lock);
        s->term = 0;
        atomic_store(&s->cancel, true);
        batch_merge_end_term(&s->batches);
        pthread_mutex_unlock(&s->lock);
}

/* ---- reports ---- */

void scraper_visit(struct scraper *s, void (*each)(void *context, const struct scrape_report *r), void *context)
{
        bool is_standby;

        pthread_mutex_lock(&s->lock);
        is_standby = !is_permitted(s);
        for (size_t i = 0; i < s->target_count; i++)
                for (size_t j = 0; j < s->targets[i]->loop_count; j++) {
                        const struct scrape_loop *l = &s->targets[i]->loops[j];
                        const struct scrape_report r = { &s->targets[i]->target, l->profile, &l->result, is_standby };

                        each(context, &r);
                }
        pthread_mutex_unlock(&s->lock);
}

static void count_down_report(void *context, const struct scrape_report *r)
{
        size_t *count = context;

        *count += !r->result->is_up;
}

size_t scraper_count_down(struct scraper *s)
{
        size_t count = 0;

        scraper_visit(s, count_down_report, &count);
        return count;
}

uint64_t scraper_count_lost(struct scraper *s)
{
        return batch_merge_count_lost(&s->batches);
}

void scraper_update_metrics(struct scraper *s)
{
        delivery_metrics_update(&s->batches);
        pthread_mutex_lock(&s->lock);
        set_gauge(&running_metric, s->running);
        set_gauge(&waiting_metric, s->ready_count);
        pthread_mutex_unlock(&s->lock);
}
