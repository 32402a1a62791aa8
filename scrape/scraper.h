/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SCRAPE_SCRAPER_H
#define CAIRN_SCRAPE_SCRAPER_H

/**
 * @file
 * Scrape each profile of each target once per interval, and hand new samples to a sender.
 *
 * Scrapes are spread over the interval; each has the same offset in every interval and every run. A scrape that is
 * still running when it is due again skips that turn. Requests run in a thread pool that grows on demand up to a
 * limit; due scrapes wait for a free thread.
 *
 * Memory: bodies and decoded profiles count as MEMORY_INGEST, totals of cumulative profiles as MEMORY_CACHES.
 *
 * Threads: scraper_run() in one; the other functions in any.
 */
#include "scrape/discovery.h"
#include "scrape/fetch_profile.h"
#include "sending/sender.h"

struct scraper;

struct scraper_options {
        const struct scrape_config *config; /* borrowed */
        struct sender *sender;              /* borrowed */
        unsigned concurrency;               /* concurrent requests, 1 to LIMIT_SCRAPE_THREADS */
        bool needs_lease;                   /* nothing is scraped before scraper_permit() */
        bool once; /* end after one scrape of each profile, two an interval apart of cumulative ones */
};

enum status scraper_create(const struct scraper_options *o, struct scraper **ret, struct error *err) MUST_CHECK;

/** Run until stop_fd is readable, or with options.once until everything is done. ST_NO_MEMORY, ST_OS. */
enum status scraper_run(struct scraper *s, int stop_fd, struct error *err) MUST_CHECK;

/** Cancel running scrapes, end the threads, and hand pending batches to the sender, or hold them. Results stay. */
void scraper_stop(struct scraper *s);

void scraper_destroy(struct scraper *s); /* takes NULL; stops first */

/**
 * With options.needs_lease, of scrape_lease.h: permit scrapes until until_ns (monotonic). What they get is held until
 * it is confirmed. @param term  not 0, and the same until scraper_revoke().
 */
void scraper_permit(struct scraper *s, uint64_t term, int64_t until_ns);

/** Hand what was complete at until_ns (monotonic) to the sender. */
void scraper_confirm(struct scraper *s, int64_t until_ns);

/** Discard what is held, and forget totals of cumulative profiles: others may count from now on. */
void scraper_revoke(struct scraper *s);

/** Counters and last result of one profile of one target. */
struct scrape_result {
        uint64_t scrapes, failures, resets, missed;
        /* of the last scrape */
        bool is_up;
        int64_t began_unix_ns; /* 0: none yet */
        uint64_t took_ms, samples, body_bytes;
        char error[240]; /* "" after success */
};

struct scrape_report {
        const struct scrape_target *target;
        const struct scrape_profile *profile;
        const struct scrape_result *result;
        bool is_standby; /* scrapes are not permitted now */
};

/** Call each() for all profiles of all targets, borrowed during the call. The lock is held: each() must not block. */
void scraper_visit(struct scraper *s, void (*each)(void *context, const struct scrape_report *r), void *context);

/** Profiles whose last scrape failed, or that were not scraped yet; 0 with options.once: the command succeeded. */
size_t scraper_count_down(struct scraper *s);

/** Scraped samples that never became a batch. Batches that the sender lost are counted in its statistics. */
uint64_t scraper_count_lost(struct scraper *s);

/** Update gauges, and counters from the sender's statistics. */
void scraper_update_metrics(struct scraper *s);

#endif
