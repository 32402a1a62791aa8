/* SPDX-License-Identifier: Apache-2.0 */
#include "common/metrics.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct metric *first;

/* Kept sorted by name, so that a family is written in one piece. */
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

int64_t metric_get(struct metric *m)
{
        return atomic_load_explicit(&m->value, memory_order_relaxed);
}

void metrics_visit(void (*visit)(void *context, struct metric *m), void *context)
{
        pthread_mutex_lock(&lock);
        for (struct metric *m = first; m; m = m->next)
                visit(context, m);
        pthread_mutex_unlock(&lock);
}

struct text_writer {
        struct buf *out;
        const char *family;
};

static void write_metric(void *context, struct metric *m)
{
        struct text_writer *w = context;

        if (strcmp(w->family, m->name) != 0) {
                buf_printf(w->out, "# HELP %s %s\n# TYPE %s %s\n", m->name, m->help, m->name, m->type);
                w->family = m->name;
        }
        buf_printf(w->out, m->labels[0] ? "%s{%s} %" PRId64 "\n" : "%s%s %" PRId64 "\n", m->name, m->labels,
                   metric_get(m));
}

void metrics_write(struct buf *out)
{
        struct text_writer w = { out, "" };

        metrics_visit(write_metric, &w);
}
