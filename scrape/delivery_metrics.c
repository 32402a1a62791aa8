/* SPDX-License-Identifier: Apache-2.0 */
#include "scrape/delivery_metrics.h"

#include "common/metrics.h"

static struct metric sent_metric =
        METRIC_COUNTER("cairn_scrape_batches_sent_total", "Batches accepted by the service.", "");
static struct metric rejected_metric =
        METRIC_COUNTER("cairn_scrape_samples_rejected_total", "Samples rejected in accepted batches.", "");
static struct metric retries_metric =
        METRIC_COUNTER("cairn_scrape_retries_total", "Failed attempts to send, to be retried.", "");
static struct metric queued_metric = METRIC_GAUGE("cairn_scrape_batches_waiting", "Batches not yet acknowledged.", "");
static struct metric dropped_metric = METRIC_COUNTER("cairn_scrape_batches_dropped_total", "Batches dropped.", "");
static struct metric lost_metric =
        METRIC_COUNTER("cairn_scrape_samples_lost_total", "Samples that never became a batch.", "");

static struct metric discarded_metric = METRIC_COUNTER(
        "cairn_scrape_samples_discarded_total", "Samples discarded since another scraper may have counted them.", "");

static void set_count(struct metric *m, uint64_t v)
{
        metric_set(m, (int64_t)v);
}

void delivery_metrics_update(struct batch_merge *batches)
{
        struct sender_stats stats;
        uint64_t pending = batch_merge_has_pending(batches); /* read first: pending batches move to the sender */
        uint64_t dropped = 0;

        sender_get_stats(batches->sender, &stats);
        for (size_t i = 0; i < DROP_COUNT; i++)
                dropped += stats.outbox.dropped[i];
        set_count(&dropped_metric, dropped);
        set_count(&lost_metric, batch_merge_count_lost(batches));
        set_count(&discarded_metric, batch_merge_count_discarded(batches));
        set_count(&sent_metric, stats.sent);
        set_count(&rejected_metric, stats.rejected_samples);
        set_count(&retries_metric, stats.retried);
        set_count(&queued_metric, stats.outbox.queued + pending);
}
