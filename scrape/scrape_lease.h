/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SCRAPE_SCRAPE_LEASE_H
#define CAIRN_SCRAPE_SCRAPE_LEASE_H

/**
 * @file
 * Of several scrapers with the same targets, let one scrape: the one that has a lease, which the service keeps in its
 * tables (profile-store/client_leases.h). A thread asks the service for it.
 *
 * No sample counts twice, though the holder was paused at any moment, or a clock is wrong: what it scrapes is held
 * until the service, asked after the scrape ended, says that no later epoch of the lease exists. Another scraper begins
 * after it made a later epoch, so all that it measures or counts came later. What is not confirmed when the lease is
 * lost is discarded, and cumulative counters begin anew.
 *
 * Clocks only decide how long targets are scraped twice or not at all: without an answer the holder ends at the end of
 * the lease by its own monotonic clock. While it is answered that the service or its tables are away or busy (503), it
 * goes on, since others are probably answered the same and cannot take the lease; what it gets is held in memory.
 *
 * Another scraper takes a lease that nobody renews once two timely answers have said so, so that after an absence of
 * the service the holder, which asks more often, keeps it.
 *
 * Threads: any; the lease's own thread logs.
 * Source: docs/formats/scrape-lease.md.
 */
#include "scrape/scraper.h"

struct scrape_lease;

struct scrape_lease_options {
        const char *server, *token, *tenant, *ca_file; /* as in sender_options */
        const char *name;                              /* of the lease; borrowed, has the form of a tenant's name */
        struct scraper *scraper;                       /* borrowed; its option needs_lease is set */
};

enum status scrape_lease_start(const struct scrape_lease_options *o, struct scrape_lease **ret,
                               struct error *err) MUST_CHECK;

/** After scraper_stop(): confirm what is held, and let another scraper take the lease at once. */
void scrape_lease_stop(struct scrape_lease *l);

void scrape_lease_destroy(struct scrape_lease *l); /* takes NULL */

struct scrape_lease_state {
        const char *name;
        char self[96];   /* this scraper */
        char holder[96]; /* who has the lease, as of the last answer; "": unknown */
        bool is_held;    /* by this scraper */
        char error[240]; /* of the last request; "" after an answer */
};
void scrape_lease_get_state(struct scrape_lease *l, struct scrape_lease_state *ret);

#endif
