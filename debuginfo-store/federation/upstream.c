/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo-store/federation/upstream.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/limits.h"
#include "common/metrics.h"
#include "common/program/metrics_write.h"

#define FAILURES_MAX 5
#define PAUSE_S 30
#define PAUSE_MAX_S 600
#define RECENT 100

enum { SKIPPED = UPSTREAM_OUTCOME_COUNT, FILTERED, DURATION, BYTES, IN_FLIGHT, OPEN, METRIC_COUNT };

struct upstream {
        atomic_uint references;
        char *url, *header; /* header: protected by lock */
        unsigned failures_max;
        uint64_t first_pause_s;
        pthread_mutex_t lock;
        struct upstream_status status;
        uint64_t pause_s;     /* when the breaker opens next */
        int64_t ask_again_ns; /* end of the pause, monotonic; while open */
        bool is_probed;       /* half-open, and a probe of this epoch is in flight */
        uint64_t epoch;       /* incremented when the breaker opens or the header changes */
        uint64_t recent_ms[RECENT];
        uint64_t answered, answered_ms;
        struct metric metrics[METRIC_COUNT];
        char *labels[METRIC_COUNT];
        struct upstream_filter *filter;
};

const char *upstream_state_name(enum upstream_state s)
{
        static const char *const names[] = { "closed", "open", "half_open" };

        return names[s];
}

const char *upstream_get_url(const struct upstream *u)
{
        return u->url;
}

enum status upstream_copy_header(struct upstream *u, char **ret, struct error *err)
{
        char *copy;
        bool is_missing;

        pthread_mutex_lock(&u->lock);
        copy = u->header ? strdup(u->header) : NULL;
        is_missing = u->header && !copy;
        pthread_mutex_unlock(&u->lock);
        if (is_missing)
                return error_no_memory(err);
        *ret = copy;
        return ST_OK;
}

static enum status make_upstream_metrics(struct upstream *u, const char *tenant, struct error *err)
{
        static const char requests[] = "cairn_upstream_requests_total";
        static const struct {
                const char *name, *help, *type, *outcome;
        } kinds[METRIC_COUNT] = {
                [UPSTREAM_FOUND] = { requests, "Requests to an upstream, by outcome.", "counter", "found" },
                [UPSTREAM_MISSING] = { requests, "Requests to an upstream, by outcome.", "counter", "missing" },
                [UPSTREAM_REFUSED] = { requests, "Requests to an upstream, by outcome.", "counter", "refused" },
                [UPSTREAM_FAILED] = { requests, "Requests to an upstream, by outcome.", "counter", "failed" },
                [UPSTREAM_UNSURE] = { requests, "Requests to an upstream, by outcome.", "counter", "unsure" },
                [SKIPPED] = { requests, "Requests to an upstream, by outcome.", "counter", "skipped" },
                [FILTERED] = { requests, "Requests to an upstream, by outcome.", "counter", "filtered" },
                [DURATION] = { "cairn_upstream_request_seconds_total", "Duration of requests to an upstream.",
                               "counter", NULL },
                [BYTES] = { "cairn_upstream_bytes_total", "Bytes received from an upstream.", "counter", NULL },
                [IN_FLIGHT] = { "cairn_upstream_in_flight", "Requests in flight to an upstream.", "gauge", NULL },
                [OPEN] = { "cairn_upstream_open", "1 while the circuit breaker of an upstream is open.", "gauge",
                           NULL },
        };

        for (size_t i = 0; i < METRIC_COUNT; i++) {
                struct buf label;
                enum status st;

                buf_init(&label, KiB(1));
                metric_label(&label, "upstream", u->status.url);
                if (tenant)
                        buf_printf(&label, ",tenant=\"%s\"", tenant);
                if (kinds[i].outcome)
                        buf_printf(&label, ",outcome=\"%s\"", kinds[i].outcome);
                buf_append(&label, "", 1);
                st = buf_status(&label, err, "label");
                if (st) {
                        buf_deinit(&label);
                        return st;
                }
                u->labels[i] = (char *)label.data;
                u->metrics[i] = (struct metric){ .name = kinds[i].name,
                                                 .help = kinds[i].help,
                                                 .type = kinds[i].type,
                                                 .labels = u->labels[i],
                                                 .parts = i == DURATION ? 1000 : 0 };
                metric_register(&u->metrics[i]);
        }
        return ST_OK;
}

enum status upstream_create(const struct upstream_options *o, struct upstream **ret, struct error *err)
{
        struct upstream *u = calloc(1, sizeof *u);
        enum status st;

        if (!u)
                return error_no_memory(err);
        atomic_init(&u->references, 1);
        pthread_mutex_init(&u->lock, NULL);
        u->failures_max = o->failures_max ? o->failures_max : FAILURES_MAX;
        u->first_pause_s = u->pause_s = o->pause_s ? o->pause_s : PAUSE_S;
        fetch_url_redact(o->url, u->status.url);
        u->url = strdup(o->url);
        u->header = o->header ? strdup(o->header) : NULL;
        st = u->url && (u->header || !o->header) ? make_upstream_metrics(u, o->tenant, err) : error_no_memory(err);
        if (!st)
                st = upstream_filter_create(&u->filter, err);
        if (st)
                upstream_unref(u);
        else
                *ret = u;
        return st;
}

struct upstream *upstream_ref(struct upstream *u)
{
        atomic_fetch_add(&u->references, 1);
        return u;
}

void upstream_unref(struct upstream *u)
{
        if (!u || atomic_fetch_sub(&u->references, 1) > 1)
                return;
        for (size_t i = 0; i < METRIC_COUNT; i++) {
                metric_unregister(&u->metrics[i]);
                free(u->labels[i]);
        }
        upstream_filter_destroy(u->filter);
        pthread_mutex_destroy(&u->lock);
        free(u->url);
        free(u->header);
        free(u);
}

enum status upstream_begin_request(struct upstream *u, uint64_t *epoch_ret, struct error *err)
{
        struct upstream_status *s = &u->status;
        enum status st = ST_OK;

        pthread_mutex_lock(&u->lock);
        if (s->state == UPSTREAM_OPEN && monotonic_ns() >= u->ask_again_ns)
                s->state = UPSTREAM_HALF_OPEN;
        if (s->state == UPSTREAM_OPEN || (s->state == UPSTREAM_HALF_OPEN && u->is_probed)) {
                s->skipped++;
                metric_add(&u->metrics[SKIPPED], 1);
                st = error_set(err, ST_BUSY, "%s is skipped after repeated failures, the last: %.120s", s->url,
                               s->last_error);
        } else {
                u->is_probed = s->state == UPSTREAM_HALF_OPEN;
                *epoch_ret = u->epoch;
                s->in_flight++;
                metric_set(&u->metrics[IN_FLIGHT], s->in_flight);
        }
        pthread_mutex_unlock(&u->lock);
        return st;
}

/* Caller holds the lock. */
static enum upstream_change close_breaker(struct upstream *u)
{
        bool was_closed = u->status.state == UPSTREAM_CLOSED;

        u->status.state = UPSTREAM_CLOSED;
        u->status.failures = 0;
        u->pause_s = u->first_pause_s;
        metric_set(&u->metrics[OPEN], 0);
        return was_closed ? UPSTREAM_UNCHANGED : UPSTREAM_RETURNED;
}

/* Caller holds the lock. */
static bool has_equal_header(const struct upstream *u, const char *header)
{
        return u->header && header ? strcmp(u->header, header) == 0 : !u->header && !header;
}

enum status upstream_set_header(struct upstream *u, const char *header, bool *is_changed_ret, struct error *err)
{
        char *copy = header ? strdup(header) : NULL, *old = copy;

        if (header && !copy)
                return error_no_memory(err);
        pthread_mutex_lock(&u->lock);
        *is_changed_ret = !has_equal_header(u, header);
        if (*is_changed_ret) {
                old = u->header;
                u->header = copy;
                close_breaker(u);
                u->epoch++; /* failures of requests with the previous header do not count */
                u->is_probed = false;
        }
        pthread_mutex_unlock(&u->lock);
        free(old);
        return ST_OK;
}

/* For a request that began after the breaker last opened. Caller holds the lock. */
static enum upstream_change count_breaker_failure(struct upstream *u, uint64_t retry_after_s)
{
        struct upstream_status *s = &u->status;
        bool was_closed = s->state == UPSTREAM_CLOSED;
        uint64_t pause_s = retry_after_s ? retry_after_s : u->pause_s;

        s->failures++;
        if (was_closed && s->failures < u->failures_max && !retry_after_s)
                return UPSTREAM_UNCHANGED;
        s->state = UPSTREAM_OPEN;
        u->epoch++;
        u->ask_again_ns = monotonic_ns() + (int64_t)pause_s * 1000000000;
        u->pause_s = 2 * u->pause_s < PAUSE_MAX_S ? 2 * u->pause_s : PAUSE_MAX_S;
        metric_set(&u->metrics[OPEN], 1);
        return was_closed ? UPSTREAM_LOST : UPSTREAM_UNCHANGED;
}

/* Caller holds the lock. */
static void note_answer_time(struct upstream *u, uint64_t took_ms)
{
        u->recent_ms[u->answered++ % RECENT] = took_ms;
        u->answered_ms += took_ms;
        u->status.mean_ms = u->answered_ms / u->answered;
        u->status.slowest_ms = 0;
        for (size_t i = 0; i < RECENT && i < u->answered; i++)
                if (u->recent_ms[i] > u->status.slowest_ms)
                        u->status.slowest_ms = u->recent_ms[i];
}

enum upstream_change upstream_end_request(struct upstream *u, uint64_t epoch, enum upstream_outcome outcome,
                                          const struct fetch_response *response, uint64_t took_ms,
                                          const struct error *why)
{
        struct upstream_status *s = &u->status;
        enum upstream_change change = UPSTREAM_UNCHANGED;

        pthread_mutex_lock(&u->lock);
        if (epoch == u->epoch)
                u->is_probed = false;
        assert(s->in_flight > 0 && outcome < UPSTREAM_OUTCOME_COUNT && epoch <= u->epoch);
        s->in_flight--;
        s->answers[outcome]++;
        s->bytes += response->received_bytes;
        metric_set(&u->metrics[IN_FLIGHT], s->in_flight);
        metric_add(&u->metrics[outcome], 1);
        metric_add(&u->metrics[BYTES], (int64_t)response->received_bytes);
        metric_add(&u->metrics[DURATION], (int64_t)took_ms);
        if (outcome == UPSTREAM_FAILED || outcome == UPSTREAM_REFUSED) {
                snprintf(s->last_error, sizeof s->last_error, "%.*s", (int)sizeof s->last_error - 1, why->text);
                s->last_error_unix_s = wall_clock_ns() / 1000000000;
        }
        if (outcome != UPSTREAM_UNSURE)
                note_answer_time(u, took_ms);
        if (outcome == UPSTREAM_FAILED && epoch == u->epoch)
                change = count_breaker_failure(u, response->retry_after_s);
        else if (outcome != UPSTREAM_FAILED && outcome != UPSTREAM_UNSURE)
                change = close_breaker(u);
        pthread_mutex_unlock(&u->lock);
        return change;
}

/* A status of fetch_object() other than these is a failure of the service. */
static enum upstream_outcome classify_status(enum status st)
{
        switch (st) {
        case ST_OK:
                return UPSTREAM_FOUND;
        case ST_NOT_FOUND:
                return UPSTREAM_MISSING;
        case ST_TOO_BIG:
        case ST_BAD_DATA:
                return UPSTREAM_REFUSED;
        case ST_BUSY:
                return UPSTREAM_FAILED;
        default:
                return UPSTREAM_UNSURE;
        }
}

enum upstream_outcome upstream_classify_fetch(enum status st, const struct fetch_response *response,
                                              const char *resource, bool is_cancelled)
{
        bool lacks_sections = strncmp(resource, "section/", 8) == 0 && response->http_status >= 400;
        enum upstream_outcome outcome = classify_status(st);

        return outcome == UPSTREAM_FAILED && (is_cancelled || lacks_sections) ? UPSTREAM_UNSURE : outcome;
}

enum upstream_outcome upstream_classify_poll(enum status st, const struct fetch_response *response,
                                             bool is_cancelled_or_late)
{
        enum upstream_outcome outcome = classify_status(st);

        return outcome == UPSTREAM_FAILED && (is_cancelled_or_late || response->http_status >= 400) ? UPSTREAM_UNSURE
                                                                                                    : outcome;
}

enum status upstream_classify_filter(enum status st, const struct fetch_response *response)
{
        unsigned code = response->http_status;
        bool is_later = code == 408 || code == 425 || code == 429;

        return st && code >= 400 && code < 500 && !is_later ? ST_NOT_FOUND : st;
}

struct upstream_filter *upstream_get_filter(struct upstream *u)
{
        return u->filter;
}

void upstream_note_filtered(struct upstream *u)
{
        pthread_mutex_lock(&u->lock);
        u->status.filtered++;
        pthread_mutex_unlock(&u->lock);
        metric_add(&u->metrics[FILTERED], 1);
}

void upstream_get_status(struct upstream *u, struct upstream_status *ret)
{
        int64_t left_ns;

        pthread_mutex_lock(&u->lock);
        left_ns = u->ask_again_ns - monotonic_ns();
        *ret = u->status;
        ret->retry_in_s = ret->state == UPSTREAM_OPEN && left_ns > 0 ? (uint64_t)(left_ns / 1000000000) + 1 : 0;
        pthread_mutex_unlock(&u->lock);
}
