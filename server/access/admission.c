/* SPDX-License-Identifier: Apache-2.0 */
#include "server/access/admission.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "common/clock.h"
#include "common/hash/hash_table.h"
#include "common/metrics.h"
#include "server/access/rate_limit.h"

#define UNNAMED "-"

/* Never freed: the metrics in it stay registered for the life of the process. */
struct refusal_counter {
        SLIST_ENTRY(refusal_counter) next;
        char name[HTTP_TOKEN_NAME_SIZE];
        char labels[2][HTTP_TOKEN_NAME_SIZE + 32];
        struct metric refused[2]; /* by requests, by bytes */
};

struct admission {
        struct tokens *tokens;
        _Atomic uint64_t address_rate;
        struct rate_limit *by_token, *by_address; /* separate, so that many addresses cannot evict tokens */
};

static SLIST_HEAD(, refusal_counter) counters;
static pthread_mutex_t counters_lock = PTHREAD_MUTEX_INITIALIZER;

static struct refusal_counter *make_refusal_counter(const char *name)
{
        static const char *const kinds[] = { "rate", "bytes" };
        struct refusal_counter *c = calloc(1, sizeof *c);

        if (!c)
                return NULL;
        snprintf(c->name, sizeof c->name, "%s", name);
        for (size_t i = 0; i < 2; i++) {
                snprintf(c->labels[i], sizeof c->labels[i], "limit=\"%s\",token=\"%s\"", kinds[i], name);
                c->refused[i] = (struct metric)METRIC_COUNTER("cairn_limited_total",
                                                              "Requests refused by rate limits; token: its name, "
                                                              "empty for an address.",
                                                              c->labels[i]);
        }
        SLIST_INSERT_HEAD(&counters, c, next);
        return c;
}

/* Names come from the token file, so the list stays short. */
static void count_refusal(const char *name, enum rate_verdict verdict)
{
        struct refusal_counter *c;

        pthread_mutex_lock(&counters_lock);
        SLIST_FOREACH(c, &counters, next)
        if (strcmp(c->name, name) == 0)
                break;
        if (!c)
                c = make_refusal_counter(name);
        pthread_mutex_unlock(&counters_lock);
        if (c)
                metric_add(&c->refused[verdict == RATE_BYTES], 1);
}

enum status admission_create(struct tokens *tokens, uint64_t address_rate, struct admission **ret, struct error *err)
{
        struct admission *a = calloc(1, sizeof *a);
        enum status st;

        if (!a)
                return error_no_memory(err);
        a->tokens = tokens;
        atomic_init(&a->address_rate, address_rate);
        st = rate_limit_create(&a->by_token, err);
        if (!st)
                st = rate_limit_create(&a->by_address, err);
        if (st)
                admission_destroy(a);
        else
                *ret = a;
        return st;
}

void admission_destroy(struct admission *a)
{
        if (!a)
                return;
        rate_limit_destroy(a->by_token);
        rate_limit_destroy(a->by_address);
        free(a);
}

void admission_set_address_rate(struct admission *a, uint64_t address_rate)
{
        atomic_store(&a->address_rate, address_rate);
}

static void set_limit_error(enum rate_verdict verdict, const char *who, const struct rate_limit_config *limits,
                            uint64_t wait_s, struct error *err)
{
        if (verdict == RATE_BYTES)
                error_set(err, ST_BUSY, "%s has sent the %llu bytes that it may send in a day; retry in %llu s", who,
                          (unsigned long long)limits->bytes_per_day, (unsigned long long)wait_s);
        else
                error_set(err, ST_BUSY, "%s sends more than %llu requests a second; retry in %llu s", who,
                          (unsigned long long)limits->requests_per_s, (unsigned long long)wait_s);
}

const struct token_id *get_sender_token(const struct request_sender *sender)
{
        return sender->kind == SENDER_TOKEN || sender->kind == SENDER_SESSION ? &sender->token : NULL;
}

/* Users behind one proxy do not share a bucket. */
static uint64_t get_address_key(const struct request_sender *sender)
{
        return sender->kind == SENDER_USER ? keyed_hash(sender->user, strlen(sender->user)) : sender->peer_number;
}

uint64_t admission_admit(struct admission *a, const struct request_sender *sender, uint64_t bytes, struct error *err)
{
        char name[HTTP_TOKEN_NAME_SIZE], who[HTTP_TOKEN_NAME_SIZE + 64];
        struct token_limits token;
        bool is_token = a->tokens && tokens_get_limits(a->tokens, get_sender_token(sender), &token);
        const struct rate_limit_config of_address = { .requests_per_s = atomic_load(&a->address_rate) };
        const struct rate_limit_config *limits = is_token ? &token.limits : &of_address;
        enum rate_verdict verdict;
        uint64_t wait_s = 0;

        if (!limits->requests_per_s && !limits->bytes_per_day)
                return 0;
        verdict =
                rate_limit_take(is_token ? a->by_token : a->by_address, is_token ? token.key : get_address_key(sender),
                                limits, bytes, monotonic_ns(), &wait_s);
        if (verdict == RATE_FINE)
                return 0;
        snprintf(name, sizeof name, "%s", !is_token ? "" : token.name[0] ? token.name : UNNAMED);
        snprintf(who, sizeof who, "%s %s", is_token ? "token" : "address", is_token ? name : sender->peer);
        count_refusal(name, verdict);
        set_limit_error(verdict, who, limits, wait_s, err);
        return wait_s ? wait_s : 1;
}

void admission_finished(struct admission *a, const struct request_sender *sender, uint64_t admitted, uint64_t received)
{
        struct token_limits token;

        if (received != admitted && a->tokens && tokens_get_limits(a->tokens, get_sender_token(sender), &token) &&
            token.limits.bytes_per_day)
                rate_limit_correct(a->by_token, token.key, &token.limits, admitted, received, monotonic_ns());
}
