/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SCRAPE_SCRAPER_H
#define CAIRN_SCRAPE_SCRAPER_H

/**
 * @file
 * Scrapes each profile of each target once per interval, and hands what was new to a sender.
 *
 * The profiles of all targets are spread over the interval, each at the same time in each interval and each run. One
 * that is not done when it is due again misses that turn. Requests run in threads, which are started as they are
 * needed, up to a limit; what finds no free thread waits.
 *
 * Memory: bodies and decoded profiles count as MEMORY_INGEST, totals of cumulative profiles as MEMORY_CACHES.
 *
 * Threads: run by one; the other functions by any.
 */
#include "agent/sending/sender.h"
#include "scrape/discovery.h"
#include "scrape/fetch_profile.h"

struct scraper;

struct scraper_options {
        const struct scrape_config *config; /* borrowed */
        struct sender *sender;              /* borrowed */
        unsigned concurrency;               /* requests at one time, 1 to LIMIT_SCRAPE_THREADS */
        bool once; /* each profile of the targets of the start until it was sent or failed: a cumulative one twice, an
                      interval apart */
};

enum status scraper_create(const struct scraper_options *o, struct scraper **ret, struct error *err) MUST_CHECK;

/** Until stop_fd is readable, or with once until everything is done. ST_NO_MEMORY, ST_OS. */
enum status scraper_run(struct scraper *s, int stop_fd, struct error *err) MUST_CHECK;

/** End what runs, unfinished, and the threads; hand what was scraped to the sender. Results stay. */
void scraper_stop(struct scraper *s);

void scraper_destroy(struct scraper *s); /* takes NULL; stops first */

/** What became of one profile of one target. */
struct scrape_result {
        uint64_t scrapes, failures, resets, missed;
        /* of the last scrape */
        bool is_up;
        int64_t began_unix_ns; /* 0: none yet */
        uint64_t took_ms, samples, body_bytes;
        char error[240]; /* "" unless it failed */
};

struct scrape_report {
        const struct scrape_target *target;
        const struct scrape_profile *profile;
        const struct scrape_result *result;
};

/** Call each() for all profiles of all targets, which are borrowed during the call. It must not wait. */
void scraper_visit(struct scraper *s, void (*each)(void *context, const struct scrape_report *r), void *context);

/** Profiles that failed last, or were not scraped yet; with once whether the command did what it was asked. */
size_t scraper_count_down(struct scraper *s);

/** Samples that were scraped, and never became a batch. What the sender lost of batches is in its figures. */
uint64_t scraper_count_lost(struct scraper *s);

/** Bring gauges, and counters of the sender, up to date. */
void scraper_update_metrics(struct scraper *s);

#endif
