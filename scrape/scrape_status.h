/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SCRAPE_SCRAPE_STATUS_H
#define CAIRN_SCRAPE_SCRAPE_STATUS_H

/**
 * @file
 * Status of a scraper: a table, JSON, and Prometheus metrics for each profile of each target.
 *
 * Threads: any.
 */
#include "common/memory/buf.h"
#include "http/http_server.h"
#include "scrape/scrape_lease.h"

/** One line for each profile of each target. */
void scrape_status_write_table(struct scraper *s, struct buf *to);

/** {"profiles": [...]}, and before them "lease" if there is one. @param l  NULL: none */
void scrape_status_write_json(struct scraper *s, struct scrape_lease *l, struct buf *to);

/** Metrics of each profile of each target (cairn_scrape_up and others), then those of the process. */
void scrape_status_write_metrics(struct scraper *s, struct scrape_lease *l, struct buf *to);

struct scrape_listener;

/** Serve /metrics, /targets and /healthz at HOST:PORT, by default port 7702. @param l  NULL: none */
enum status scrape_listener_start(const char *address, struct scraper *s, struct scrape_lease *l,
                                  struct scrape_listener **ret, struct error *err) MUST_CHECK;
void scrape_listener_stop(struct scrape_listener *l); /* takes NULL */

#endif
