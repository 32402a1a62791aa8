/* SPDX-License-Identifier: Apache-2.0 */
#include "common/metrics.h"

#include <assert.h>
#include <pthread.h>
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

bool metric_is_histogram(const struct metric *m)
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

const char *histogram_bound_text(unsigned bucket)
{
        assert(bucket <= HISTOGRAM_BUCKETS);
        return bucket < HISTOGRAM_BUCKETS ? bounds[bucket].text : "+Inf";
}

void metrics_visit_all(void (*visit)(void *context, struct metric *m), void *context)
{
        pthread_mutex_lock(&lock);
        for (struct metric *m = first; m; m = m->next)
                visit(context, m);
        pthread_mutex_unlock(&lock);
}

void metrics_visit(void (*visit)(void *context, struct metric *m), void *context)
{
        pthread_mutex_lock(&lock);
        for (struct metric *m = first; m; m = m->next)
                if (!metric_is_histogram(m))
                        visit(context, m);
        pthread_mutex_unlock(&lock);
}
