/* SPDX-License-Identifier: Apache-2.0 */
#include "server/access/rate_limit.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/hash/hash_table.h"
#include "common/hash/lru_table.h"

#define DAY_S 86400.0

/* Debt of each bucket: tokens missing from a full one, so that a new client starts at zero. */
struct rate_bucket {
        struct lru_entry lru;
        uint64_t key;
        double requests, bytes;
        int64_t then_ns;
};

struct rate_limit {
        pthread_mutex_t lock;
        struct lru_table buckets;
};

enum status rate_limit_create(struct rate_limit **ret, struct error *err)
{
        struct rate_limit *r = calloc(1, sizeof *r);

        if (!r)
                return error_no_memory(err);
        if (lru_table_init(&r->buckets, RATE_LIMIT_BUCKETS_MAX, err)) {
                free(r);
                return ST_NO_MEMORY;
        }
        pthread_mutex_init(&r->lock, NULL);
        *ret = r;
        return ST_OK;
}

static void remove_bucket(struct rate_limit *r, struct lru_entry *bucket)
{
        lru_table_remove(&r->buckets, bucket);
        free(bucket);
}

void rate_limit_destroy(struct rate_limit *r)
{
        if (!r)
                return;
        while (r->buckets.count)
                remove_bucket(r, lru_table_oldest(&r->buckets));
        lru_table_deinit(&r->buckets);
        pthread_mutex_destroy(&r->lock);
        free(r);
}

static double compute_refilled_debt(double missing, double per_s, double passed_s)
{
        return missing > per_s * passed_s ? missing - per_s * passed_s : 0;
}

static double get_request_rate(const struct rate_limit_config *limits)
{
        return (double)limits->requests_per_s / (limits->interval_s ? limits->interval_s : 1);
}

static bool is_bucket_of(const struct lru_entry *entry, const void *key)
{
        return ((const struct rate_bucket *)entry)->key == *(const uint64_t *)key;
}

/* NULL when out of memory: the request is then not limited. */
static struct rate_bucket *get_bucket(struct rate_limit *r, uint64_t key, const struct rate_limit_config *limits,
                                      int64_t now_ns)
{
        uint64_t hash = keyed_hash(&key, sizeof key);
        struct rate_bucket *b = (struct rate_bucket *)lru_table_find(&r->buckets, hash, is_bucket_of, &key);

        if (b) {
                double passed_s = (double)(now_ns - b->then_ns) / 1e9;

                b->requests = compute_refilled_debt(b->requests, get_request_rate(limits), passed_s);
                b->bytes = compute_refilled_debt(b->bytes, (double)limits->bytes_per_day / DAY_S, passed_s);
                lru_table_touch(&r->buckets, &b->lru);
        } else {
                if (r->buckets.count == RATE_LIMIT_BUCKETS_MAX)
                        remove_bucket(r, lru_table_oldest(&r->buckets));
                b = calloc(1, sizeof *b);
                if (!b)
                        return NULL;
                b->key = key;
                lru_table_insert(&r->buckets, &b->lru, hash);
        }
        b->then_ns = now_ns;
        return b;
}

static bool check_bucket(double missing, double n, double capacity, double per_s, uint64_t *wait_s_ret)
{
        double too_much = missing + (n < capacity ? n : capacity) - capacity;

        if (too_much <= 0)
                return true;
        *wait_s_ret = (uint64_t)ceil(too_much / per_s);
        return false;
}

/* A request that declares more than a day's bytes is charged one day. */
static double clamp_to_daily_bytes(const struct rate_limit_config *limits, uint64_t bytes)
{
        return (double)(bytes < limits->bytes_per_day ? bytes : limits->bytes_per_day);
}

static void charge_bucket(struct rate_bucket *b, const struct rate_limit_config *limits, uint64_t bytes)
{
        b->requests++;
        b->bytes += clamp_to_daily_bytes(limits, bytes);
}

enum rate_verdict rate_limit_take(struct rate_limit *r, uint64_t key, const struct rate_limit_config *limits,
                                  uint64_t bytes, int64_t now_ns, uint64_t *wait_s_ret)
{
        enum rate_verdict verdict = RATE_FINE;
        struct rate_bucket *b;

        pthread_mutex_lock(&r->lock);
        b = get_bucket(r, key, limits, now_ns);
        if (b && limits->requests_per_s &&
            !check_bucket(b->requests, 1, (double)limits->requests_per_s * RATE_LIMIT_BURST_S, get_request_rate(limits),
                          wait_s_ret))
                verdict = RATE_REQUESTS;
        else if (b && limits->bytes_per_day &&
                 !check_bucket(b->bytes, (double)(bytes ? bytes : 1), (double)limits->bytes_per_day,
                               (double)limits->bytes_per_day / DAY_S, wait_s_ret))
                verdict = RATE_BYTES;
        else if (b)
                charge_bucket(b, limits, bytes);
        pthread_mutex_unlock(&r->lock);
        return verdict;
}

void rate_limit_refund(struct rate_limit *r, uint64_t key, const struct rate_limit_config *limits, int64_t now_ns)
{
        struct rate_bucket *b;

        pthread_mutex_lock(&r->lock);
        b = get_bucket(r, key, limits, now_ns);
        if (b)
                b->requests = fmax(0, b->requests - 1);
        pthread_mutex_unlock(&r->lock);
}

void rate_limit_correct(struct rate_limit *r, uint64_t key, const struct rate_limit_config *limits, uint64_t taken,
                        uint64_t received, int64_t now_ns)
{
        struct rate_bucket *b;

        pthread_mutex_lock(&r->lock);
        b = get_bucket(r, key, limits, now_ns);
        if (b)
                b->bytes = fmax(0, b->bytes + (double)received - clamp_to_daily_bytes(limits, taken));
        pthread_mutex_unlock(&r->lock);
}
