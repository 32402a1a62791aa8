/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SCRAPE_DELIVERY_METRICS_H
#define CAIRN_SCRAPE_DELIVERY_METRICS_H

/**
 * @file
 * Metrics of what becomes of scraped samples. Threads: any.
 */
#include "scrape/batch_merge.h"

/** Set the metrics from the statistics of the batches and of their sender. */
void delivery_metrics_update(struct batch_merge *batches);

#endif
