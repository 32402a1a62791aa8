/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/self_profile.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/limits.h"
#include "common/metrics.h"
#include "common/program/log.h"
#include "common/text/number_text.h"
#include "sampling/recorder.h"
#include "server/core/ingest.h"

#define FREQUENCY_HZ 49 /* not in phase with periodic work each 10 or 20 ms */
#define INTERVAL_MAX_S 10
#define SECOND_NS INT64_C(1000000000)

struct self_profile {
        struct tenant *tenant; /* borrowed */
        struct recorder recorder;
        pthread_t thread;
        int stop; /* eventfd */
        int64_t interval_ns;
        uint64_t lost, refused; /* values of the sampler's counters at the last report */
};

static struct metric lost =
        METRIC_COUNTER("cairn_self_profile_lost_samples_total",
                       "Samples of the service itself that were dropped before they were stored.", "");

/* ---- the thread ---- */

static void report_own_losses(struct self_profile *p)
{
        uint64_t stats[SAMPLER_STAT_COUNT];
        struct error err;

        if (recorder_get_stats(&p->recorder, stats, &err))
                return;
        metric_add(&lost, (int64_t)(stats[STAT_LOST_RING_FULL] - p->lost));
        p->lost = stats[STAT_LOST_RING_FULL];
        if (stats[SAMPLER_STAT_REFUSED] > p->refused)
                log_warn("self-profile", "%s sampled: the limit of pending signals (ulimit -i) allows them no timer",
                         COUNTED(stats[SAMPLER_STAT_REFUSED] - p->refused, "thread is not", "threads are not"));
        p->refused = stats[SAMPLER_STAT_REFUSED];
}

static void append_own_profile(struct self_profile *p, struct profile *profile)
{
        struct ingest_batch batch = { .tenant = p->tenant, .arrived_ns = monotonic_ns(), .agent = "cairn serve" };
        struct error err;
        enum status st;

        if (getrandom(batch.id.bytes, sizeof batch.id.bytes, 0) != sizeof batch.id.bytes)
                st = error_os(&err, errno, "cannot create a batch id");
        else
                st = append_ingested_batch(&batch, profile, NULL, &err);
        if (st)
                (void)report_ingest_failure(&batch, st, &err);
}

static void store_own_interval(struct self_profile *p)
{
        struct profile profile;
        struct error err;

        if (recorder_take_profile(&p->recorder, &profile, &err)) {
                log_warn("self-profile", "%s; the samples of this interval are lost", err.text);
                return;
        }
        if (profile.samples.count)
                append_own_profile(p, &profile);
        profile_deinit(&profile);
        report_own_losses(p);
}

/* Returns true when the thread must stop. */
static bool wait_for_ticks(struct self_profile *p, int64_t until_ns)
{
        struct pollfd fds[1 + RECORDER_FDS] = { { .fd = p->stop, .events = POLLIN } };
        int64_t left_ms = (until_ns - monotonic_ns() + 999999) / 1000000;

        recorder_get_fds(&p->recorder, fds + 1);
        if (poll(fds, 1 + RECORDER_FDS, left_ms > 0 ? (int)left_ms : 0) < 0)
                return false;
        recorder_poll(&p->recorder, fds + 1);
        return fds[0].revents;
}

static void *run_self_profile(void *arg)
{
        struct self_profile *p = arg;
        int64_t until_ns = monotonic_ns() + p->interval_ns;

        while (!wait_for_ticks(p, until_ns)) {
                if (monotonic_ns() < until_ns)
                        continue;
                store_own_interval(p);
                until_ns = monotonic_ns() + p->interval_ns;
        }
        recorder_stop(&p->recorder);
        store_own_interval(p);
        return NULL;
}

/* ---- the owner ---- */

static enum status start_own_recorder(struct self_profile *p, struct error *err)
{
        const uint32_t pid = (uint32_t)getpid();
        long cpus = sysconf(_SC_NPROCESSORS_ONLN);
        int64_t interval_s = LIMIT_AGENT_DEFERRED / 2 / (FREQUENCY_HZ * (cpus > 0 ? cpus : 1));
        const struct recorder_options o = {
                .sampler = SAMPLER_SIGNAL,
                .frequency_hz = FREQUENCY_HZ,
                .interval_s = interval_s < 1                ? 1
                              : interval_s > INTERVAL_MAX_S ? INTERVAL_MAX_S
                                                            : (uint64_t)interval_s,
                .pids = &pid,
                .pid_count = 1,
                .copy_stacks = true,
                .labels.service_name = SELF_PROFILE_SERVICE,
        };

        p->interval_ns = (int64_t)o.interval_s * SECOND_NS;
        return recorder_start(&p->recorder, &o, err);
}

static void free_self_profile(struct self_profile *p)
{
        recorder_deinit(&p->recorder);
        if (p->stop >= 0)
                close(p->stop);
        free(p);
}

enum status self_profile_start(struct tenants *tenants, struct self_profile **ret, struct error *err)
{
        const struct tenant_request of_default = { .tenancy = TENANCY_OWN };
        struct self_profile *p = calloc(1, sizeof *p);
        enum status st;
        int failed;

        if (!p)
                return error_no_memory(err);
        p->stop = eventfd(0, EFD_CLOEXEC);
        st = p->stop < 0 ? error_os(err, errno, "cannot create an event descriptor") : ST_OK;
        if (!st && tenants_choose(tenants, &of_default, &p->tenant, err))
                st = ST_NOT_FOUND;
        if (!st)
                st = start_own_recorder(p, err);
        if (!st) {
                failed = pthread_create(&p->thread, NULL, run_self_profile, p);
                if (failed)
                        st = error_os(err, failed, "cannot start a thread");
        }
        if (st) {
                free_self_profile(p);
                return st;
        }
        pthread_setname_np(p->thread, "self-profile");
        metric_register(&lost);
        *ret = p;
        return ST_OK;
}

void self_profile_stop(struct self_profile *p)
{
        if (!p)
                return;
        (void)!write(p->stop, &(uint64_t){ 1 }, sizeof(uint64_t));
        pthread_join(p->thread, NULL);
        free_self_profile(p);
}
