/* SPDX-License-Identifier: Apache-2.0 */
#include "server/rates.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/queue.h>

#define BUCKETS 4096
#define DAY_S 86400.0

/* What is missing to full, so that zero is what somebody new has. */
struct somebody {
        LIST_ENTRY(somebody) in_bucket;
        TAILQ_ENTRY(somebody) by_use; /* longest ago first */
        uint64_t who;
        double requests, bytes;
        int64_t then_ns;
};

struct rates {
        pthread_mutex_t lock;
        size_t count;
        TAILQ_HEAD(, somebody) used;
        LIST_HEAD(, somebody) buckets[BUCKETS];
};

enum status rates_create(struct rates **ret, struct error *err)
{
        struct rates *r = calloc(1, sizeof *r);

        if (!r)
                return error_no_memory(err);
        pthread_mutex_init(&r->lock, NULL);
        TAILQ_INIT(&r->used);
        *ret = r;
        return ST_OK;
}

static void forget(struct rates *r, struct somebody *s)
{
        TAILQ_REMOVE(&r->used, s, by_use);
        LIST_REMOVE(s, in_bucket);
        r->count--;
        free(s);
}

void rates_destroy(struct rates *r)
{
        if (!r)
                return;
        while (!TAILQ_EMPTY(&r->used))
                forget(r, TAILQ_FIRST(&r->used));
        pthread_mutex_destroy(&r->lock);
        free(r);
}

static double refilled(double missing, double per_s, double passed_s)
{
        return missing > per_s * passed_s ? missing - per_s * passed_s : 0;
}

/* NULL without memory: then nobody is limited. */
static struct somebody *get(struct rates *r, uint64_t who, const struct rate_limits *limits, int64_t now_ns)
{
        struct somebody *s;

        LIST_FOREACH(s, &r->buckets[who % BUCKETS], in_bucket)
                if (s->who == who)
                        break;
        if (s) {
                double passed_s = (double)(now_ns - s->then_ns) / 1e9;

                s->requests = refilled(s->requests, (double)limits->requests_per_s, passed_s);
                s->bytes = refilled(s->bytes, (double)limits->bytes_per_day / DAY_S, passed_s);
                TAILQ_REMOVE(&r->used, s, by_use);
        } else {
                if (r->count == RATES_MAX)
                        forget(r, TAILQ_FIRST(&r->used));
                s = calloc(1, sizeof *s);
                if (!s)
                        return NULL;
                s->who = who;
                LIST_INSERT_HEAD(&r->buckets[who % BUCKETS], s, in_bucket);
                r->count++;
        }
        s->then_ns = now_ns;
        TAILQ_INSERT_TAIL(&r->used, s, by_use);
        return s;
}

static bool fits(double missing, double n, double capacity, double per_s, uint64_t *wait_s_ret)
{
        double too_much = missing + (n < capacity ? n : capacity) - capacity;

        if (too_much <= 0)
                return true;
        *wait_s_ret = (uint64_t)ceil(too_much / per_s);
        return false;
}

/* So that what somebody announces is not more than he can be without. */
static double of_a_day(const struct rate_limits *limits, uint64_t bytes)
{
        return (double)(bytes < limits->bytes_per_day ? bytes : limits->bytes_per_day);
}

static void take(struct somebody *s, const struct rate_limits *limits, uint64_t bytes)
{
        s->requests++;
        s->bytes += of_a_day(limits, bytes);
}

enum rate_verdict rates_take(struct rates *r, uint64_t who, const struct rate_limits *limits, uint64_t bytes, int64_t now_ns,
                             uint64_t *wait_s_ret)
{
        enum rate_verdict verdict = RATE_FINE;
        struct somebody *s;

        pthread_mutex_lock(&r->lock);
        s = get(r, who, limits, now_ns);
        if (s && limits->requests_per_s &&
            !fits(s->requests, 1, (double)limits->requests_per_s * RATES_BURST_S, (double)limits->requests_per_s, wait_s_ret))
                verdict = RATE_REQUESTS;
        else if (s && limits->bytes_per_day &&
                 !fits(s->bytes, (double)(bytes ? bytes : 1), (double)limits->bytes_per_day,
                       (double)limits->bytes_per_day / DAY_S, wait_s_ret))
                verdict = RATE_BYTES;
        else if (s)
                take(s, limits, bytes);
        pthread_mutex_unlock(&r->lock);
        return verdict;
}

void rates_received(struct rates *r, uint64_t who, const struct rate_limits *limits, uint64_t taken, uint64_t received,
                    int64_t now_ns)
{
        struct somebody *s;

        pthread_mutex_lock(&r->lock);
        s = get(r, who, limits, now_ns);
        if (s)
                s->bytes = fmax(0, s->bytes + (double)received - of_a_day(limits, taken));
        pthread_mutex_unlock(&r->lock);
}
