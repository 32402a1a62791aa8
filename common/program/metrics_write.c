/* SPDX-License-Identifier: Apache-2.0 */
#include "common/program/metrics_write.h"

#include <inttypes.h>
#include <string.h>

#include "common/metrics.h"

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

/* _count is the sum of the buckets as read, so it equals the last bucket even with concurrent observations. */
static void write_histogram(struct buf *out, struct histogram *h)
{
        const struct metric *m = &h->metric;
        const char *comma = m->labels[0] ? "," : "";
        uint64_t count = 0, sum_ns = atomic_load_explicit(&h->sum_ns, memory_order_relaxed);

        for (unsigned i = 0; i <= HISTOGRAM_BUCKETS; i++) {
                count += atomic_load_explicit(&h->counts[i], memory_order_relaxed);
                buf_printf(out, "%s_bucket{%s%sle=\"%s\"} %" PRIu64 "\n", m->name, m->labels, comma,
                           histogram_bound_text(i), count);
        }
        buf_printf(out,
                   m->labels[0] ? "%s_sum{%s} %" PRIu64 ".%09" PRIu64 "\n" : "%s_sum%s %" PRIu64 ".%09" PRIu64 "\n",
                   m->name, m->labels, sum_ns / 1000000000, sum_ns % 1000000000);
        buf_printf(out, m->labels[0] ? "%s_count{%s} %" PRIu64 "\n" : "%s_count%s %" PRIu64 "\n", m->name, m->labels,
                   count);
}

static void write_metric(struct buf *out, const struct metric *m)
{
        int64_t value = metric_get(m);

        buf_printf(out, m->labels[0] ? "%s{%s} " : "%s%s ", m->name, m->labels);
        if (m->parts)
                buf_printf(out, "%.3f\n", (double)value / (double)m->parts);
        else
                buf_printf(out, "%" PRId64 "\n", value);
}

struct metrics_output {
        struct buf *out;
        const char *family; /* of the metric before */
};

static void write_next_metric(void *context, struct metric *m)
{
        struct metrics_output *o = context;

        if (strcmp(o->family, m->name) != 0)
                buf_printf(o->out, "# HELP %s %s\n# TYPE %s %s\n", m->name, m->help, m->name, m->type);
        o->family = m->name;
        if (metric_is_histogram(m))
                write_histogram(o->out, (struct histogram *)m);
        else
                write_metric(o->out, m);
}

void metrics_write(struct buf *out)
{
        struct metrics_output o = { out, "" };

        metrics_visit_all(write_next_metric, &o);
}
