/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_METRICS_H
#define CAIRN_COMMON_METRICS_H

/**
 * @file
 * Counters, gauges and histograms. common/program/metrics_write.h writes them.
 *
 * A metric is a static object that registers itself on first use:
 *
 *     static struct metric flushes = METRIC_COUNTER("cairn_flushes_total", "Flushes done.", "");
 *     metric_add(&flushes, 1);
 *
 * A histogram counts durations in buckets whose bounds all histograms share:
 *
 *     static struct histogram duration = HISTOGRAM("cairn_flush_duration_seconds", "Time of a flush.", "");
 *     int64_t began = monotonic_ns();
 *     ...
 *     histogram_observe(&duration, monotonic_ns() - began);
 *
 * A family with several label values consists of several objects with one name; the last argument is the label text,
 * such as reason="too_big".
 *
 * Threads: any.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct metric {
        const char *name, *help, *type, *labels;
        int64_t parts; /* of a unit, in which the value is counted: 1000 for milliseconds of seconds. 0: units */
        _Atomic int64_t value;
        _Atomic int registered;
        struct metric *next;
};

#define METRIC_COUNTER(n, h, l)                                                                                        \
        {                                                                                                              \
                .name = (n), .help = (h), .type = "counter", .labels = (l)                                             \
        }
/** Seconds, to which milliseconds are added. */
#define METRIC_SECONDS(n, h, l)                                                                                        \
        {                                                                                                              \
                .name = (n), .help = (h), .type = "counter", .labels = (l), .parts = 1000                              \
        }
#define METRIC_GAUGE(n, h, l)                                                                                          \
        {                                                                                                              \
                .name = (n), .help = (h), .type = "gauge", .labels = (l)                                               \
        }

#define HISTOGRAM_BUCKETS 16 /* finite bounds; one more bucket is unbounded */

/** Durations. Lock-free: an observation is two atomic additions. */
struct histogram {
        struct metric metric; /* its value is unused */
        _Atomic uint64_t counts[HISTOGRAM_BUCKETS + 1];
        _Atomic uint64_t sum_ns;
};

#define HISTOGRAM(n, h, l)                                                                                             \
        {                                                                                                              \
                .metric = {.name = (n), .help = (h), .type = "histogram", .labels = (l) }                              \
        }

/** Count a duration; negative ones count as 0. */
void histogram_observe(struct histogram *h, int64_t duration_ns);

void metric_add(struct metric *m, int64_t n);
void metric_set(struct metric *m, int64_t v);
/** Set one part's share of a gauge that is the sum of several parts. Shares start at 0. */
void metric_set_share(struct metric *m, _Atomic int64_t *share, int64_t v);
int64_t metric_get(const struct metric *m);

/** Make a metric appear with value 0 before its first event. */
void metric_register(struct metric *m);

/** Unregister a metric that is not a static object. No other thread may be using it. */
void metric_unregister(struct metric *m);

/** Whether a metric is the first member of a struct histogram. */
bool metric_is_histogram(const struct metric *m);

/** The upper bound of a bucket in seconds; that of bucket HISTOGRAM_BUCKETS is "+Inf". */
const char *histogram_bound_text(unsigned bucket);

/**
 * Call visit for each registered counter and gauge, or for each metric, grouped by family, sorted by name. The registry
 * lock is held: visit may only read the metric.
 */
void metrics_visit_all(void (*visit)(void *context, struct metric *m), void *context);
void metrics_visit(void (*visit)(void *context, struct metric *m), void *context);

#endif
