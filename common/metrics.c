/* SPDX-License-Identifier: Apache-2.0 */
#include "common/metrics.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct metric *first;

/* Keep the list sorted by name, so that families are contiguous. */
void metric_register(struct metric *m)
{
        struct metric **at;

        assert(m->name && m->help && m->type && m->labels);
        if (atomic_load_explicit(&m->registered, memory_order_acquire))
                return;
        pthread_mutex_lock(&lock);
        if (!atomic_load(&m->registered)) {
                for (at = &first; *at && strcmp((*at)->name, m->name) <= 0; at = &(*at)->next)
                        ;
                m->next = *at;
                *at = m;
                atomic_store_explicit(&m->registered, 1, memory_order_release);
        }
        pthread_mutex_unlock(&lock);
}

void metric_unregister(struct metric *m)
{
        pthread_mutex_lock(&lock);
        for (struct metric **at = &first; *at; at = &(*at)->next) {
                if (*at == m) {
                        *at = m->next;
                        break;
                }
        }
        atomic_store(&m->registered, 0);
        pthread_mutex_unlock(&lock);
}

void metric_label(struct buf *to, const char *name, const char *value)
{
        buf_printf(to, "%s=\"", name);
        for (const char *p = value; *p; p++) {
                if (*p == '\\' || *p == '"')
                        buf_append(to, "\\", 1);
                buf_append(to, *p == '\n' ? " " : p, 1);
        }
        buf_append(to, "\"", 1);
}

void metric_add(struct metric *m, int64_t n)
{
        metric_register(m);
        atomic_fetch_add_explicit(&m->value, n, memory_order_relaxed);
}

void metric_set(struct metric *m, int64_t v)
{
        metric_register(m);
        atomic_store_explicit(&m->value, v, memory_order_relaxed);
}

void metric_set_share(struct metric *m, _Atomic int64_t *share, int64_t v)
{
        metric_add(m, v - atomic_exchange(share, v));
}

int64_t metric_get(const struct metric *m)
{
        return atomic_load_explicit(&m->value, memory_order_relaxed);
}

/* ---- histograms ---- */

/* From half a millisecond (fsync on a fast disk) to five minutes (upload of a large object). */
static const struct {
        int64_t ns;
        const char *text; /* seconds */
} bounds[HISTOGRAM_BUCKETS] = {
        { 500000, "0.0005" },  { 1000000, "0.001" },  { 2500000, "0.0025" }, { 5000000, "0.005" },
        { 10000000, "0.01" },  { 25000000, "0.025" }, { 50000000, "0.05" },  { 100000000, "0.1" },
        { 250000000, "0.25" }, { 500000000, "0.5" },  { 1000000000, "1" },   { 2500000000, "2.5" },
        { 5000000000, "5" },   { 10000000000, "10" }, { 60000000000, "60" }, { 300000000000, "300" },
};

static bool is_histogram(const struct metric *m)
{
        return strcmp(m->type, "histogram") == 0;
}

void histogram_observe(struct histogram *h, int64_t duration_ns)
{
        unsigned bucket = 0;

        duration_ns = duration_ns < 0 ? 0 : duration_ns;
        while (bucket < HISTOGRAM_BUCKETS && duration_ns > bounds[bucket].ns)
                bucket++;
        metric_register(&h->metric);
        atomic_fetch_add_explicit(&h->sum_ns, (uint64_t)duration_ns, memory_order_relaxed);
        atomic_fetch_add_explicit(&h->counts[bucket], 1, memory_order_relaxed);
}

/* _count is the sum of the buckets as read, so it equals the last bucket even with concurrent observations. */
static void write_histogram(struct buf *out, struct histogram *h)
{
        const struct metric *m = &h->metric;
        const char *comma = m->labels[0] ? "," : "";
        uint64_t count = 0, sum_ns = atomic_load_explicit(&h->sum_ns, memory_order_relaxed);

        for (unsigned i = 0; i <= HISTOGRAM_BUCKETS; i++) {
                count += atomic_load_explicit(&h->counts[i], memory_order_relaxed);
                buf_printf(out, "%s_bucket{%s%sle=\"%s\"} %" PRIu64 "\n", m->name, m->labels, comma,
                           i < HISTOGRAM_BUCKETS ? bounds[i].text : "+Inf", count);
        }
        buf_printf(out,
                   m->labels[0] ? "%s_sum{%s} %" PRIu64 ".%09" PRIu64 "\n" : "%s_sum%s %" PRIu64 ".%09" PRIu64 "\n",
                   m->name, m->labels, sum_ns / 1000000000, sum_ns % 1000000000);
        buf_printf(out, m->labels[0] ? "%s_count{%s} %" PRIu64 "\n" : "%s_count%s %" PRIu64 "\n", m->name, m->labels,
                   count);
}

/* ---- all metrics ---- */

static void write_metric(struct buf *out, const struct metric *m)
{
        int64_t value = metric_get(m);

        buf_printf(out, m->labels[0] ? "%s{%s} " : "%s%s ", m->name, m->labels);
        if (m->parts)
                buf_printf(out, "%.3f\n", (double)value / (double)m->parts);
        else
                buf_printf(out, "%" PRId64 "\n", value);
}

void metrics_visit(void (*visit)(void *context, struct metric *m), void *context)
{
        pthread_mutex_lock(&lock);
        for (struct metric *m = first; m; m = m->next)
                if (!is_histogram(m))
                        visit(context, m);
        pthread_mutex_unlock(&lock);
}

void metrics_write(struct buf *out)
{
        const char *family = "";

        pthread_mutex_lock(&lock);
        for (struct metric *m = first; m; m = m->next) {
                if (strcmp(family, m->name) != 0) {
                        buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", m->name, m->help, m->name, m->type);
                        family = m->name;
                }
                if (is_histogram(m))
                        write_histogram(out, (struct histogram *)m);
                else
                        write_metric(out, m);
        }
        pthread_mutex_unlock(&lock);
}
