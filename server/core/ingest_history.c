/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/ingest_history.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/hash/hash_table.h"
#include "common/limits.h"

#define NS_PER_S INT64_C(1000000000)
#define MINUTE_NS (60 * NS_PER_S)
#define HOST_SLOTS (4 * LIMIT_SENDERS_PER_BATCH) /* a power of two */

struct minute_slot {
        int64_t minute; /* of the monotonic clock */
        struct ingest_minute counts;
};

struct ingest_history {
        struct senders *senders;
        pthread_mutex_t lock;
        struct minute_slot minutes[INGEST_HISTORY_MINUTES]; /* by minute modulo their number */
        struct ingest_totals totals;
        struct ingest_problem_state problems[INGEST_PROBLEM_COUNT];
};

static const struct {
        const char *name, *next_step;
} problem_kinds[INGEST_PROBLEM_COUNT] = {
        [INGEST_BAD_DATA] = { "bad_data",
                              "the data violates its format: see the text, and update the sender or report the error" },
        [INGEST_TOO_BIG] = { "too_big", "have the sender send smaller batches, or more often" },
        [INGEST_BUSY] = { "busy", "senders keep these batches and retry; see queue and memory, and raise --memory or "
                                  "use a faster disk if this persists" },
        [INGEST_UNSUPPORTED] = { "unsupported", "have the sender use a supported format: docs/integrations.md" },
        [INGEST_INTERNAL] = { "internal", "the service failed, and senders retry; see its log" },
        [INGEST_TOO_OLD] = { "too_old", "check the sender's clock; --max-age and retention set the limit, which "
                                        "cairn import --history does not have" },
        [INGEST_TOO_FAR_AHEAD] = { "too_far_ahead", "check the sender's clock; --max-ahead sets the limit" },
        [INGEST_LABEL_KEY] = { "label_key", "have the sender use fewer or shorter names of labels" },
        [INGEST_MALFORMED] = { "malformed", "see the text, and update or report the sender" },
};

const char *ingest_problem_name(enum ingest_problem p)
{
        return problem_kinds[p].name;
}

const char *ingest_problem_next_step(enum ingest_problem p)
{
        return problem_kinds[p].next_step;
}

bool ingest_problem_is_of_batches(enum ingest_problem p)
{
        return p < INGEST_TOO_OLD;
}

struct ingest_time ingest_time_now(void)
{
        return (struct ingest_time){ monotonic_ns(), wall_clock_ns() };
}

enum status ingest_history_create(struct ingest_history **ret, struct error *err)
{
        struct ingest_history *h = calloc(1, sizeof *h);
        enum status st = h ? senders_create(&h->senders, err) : error_no_memory(err);

        if (st) {
                free(h);
                return st;
        }
        pthread_mutex_init(&h->lock, NULL);
        h->totals.since_unix_ns = wall_clock_ns();
        *ret = h;
        return ST_OK;
}

void ingest_history_destroy(struct ingest_history *h)
{
        if (!h)
                return;
        senders_destroy(h->senders);
        pthread_mutex_destroy(&h->lock);
        free(h);
}

struct senders *ingest_history_get_senders(struct ingest_history *h)
{
        return h->senders;
}

/* ---- hosts of a batch ---- */

/* Label keys that name a host, highest precedence first. */
static const char *const host_keys[] = { "host.name", "host_name", "hostname", "k8s.node.name", "node", "instance" };
#define HOST_KEYS (sizeof host_keys / sizeof *host_keys)

struct batch_host {
        uint32_t value;      /* string index in the profile plus one; 0: free slot */
        uint64_t sent, kept; /* samples before and after rejection */
        int64_t newest_unix_ns;
};

struct batch_hosts {
        struct batch_host slots[HOST_SLOTS];
        size_t count;
        uint64_t samples; /* of all hosts, including those beyond LIMIT_SENDERS_PER_BATCH */
};

/* String index of a sample's host name; 0, the empty string, when no label names a host. */
static uint32_t find_host_value(const struct profile *p, const struct profile_sample *s,
                                const uint32_t keys[static HOST_KEYS])
{
        uint32_t value = 0;
        size_t best = HOST_KEYS;

        for (uint32_t i = 0; i < s->label_count; i++) {
                const struct profile_label *l = &p->labels.items[s->first_label + i];

                for (size_t k = 0; k < best; k++) {
                        if (l->key == keys[k]) {
                                best = k;
                                value = l->value;
                        }
                }
        }
        return value;
}

/* Uses a keyed hash, because the sender chooses string indexes. NULL beyond LIMIT_SENDERS_PER_BATCH hosts. */
static struct batch_host *find_or_add_host(struct batch_hosts *hosts, uint32_t value)
{
        uint32_t at = hash_table_hash(&value, sizeof value) % HOST_SLOTS;

        while (hosts->slots[at].value && hosts->slots[at].value != value + 1)
                at = at + 1 < HOST_SLOTS ? at + 1 : 0;
        if (!hosts->slots[at].value) {
                if (hosts->count == LIMIT_SENDERS_PER_BATCH)
                        return NULL;
                hosts->count++;
                hosts->slots[at].value = value + 1;
        }
        return &hosts->slots[at];
}

/* @param is_after  rejected samples have been removed: count the rest as kept. */
static void sum_batch_hosts(const struct profile *p, bool is_after, struct batch_hosts *hosts)
{
        struct batch_host *host = NULL;
        uint32_t keys[HOST_KEYS];

        for (size_t i = 0; i < HOST_KEYS; i++)
                if (!profile_find_string(p, host_keys[i], strlen(host_keys[i]), &keys[i]))
                        keys[i] = PROFILE_NONE;
        for (uint32_t i = 0; i < p->samples.count; i++) {
                const struct profile_sample *s = &p->samples.items[i];

                if (i == 0 || s->first_label != s[-1].first_label || s->label_count != s[-1].label_count)
                        host = find_or_add_host(hosts, find_host_value(p, s, keys));
                if (!host)
                        continue;
                host->sent += !is_after;
                host->kept += is_after;
                if (!is_after && s->time_unix_ns > host->newest_unix_ns)
                        host->newest_unix_ns = s->time_unix_ns;
        }
}

struct batch_hosts *batch_hosts_create(const struct profile *p)
{
        struct batch_hosts *hosts = calloc(1, sizeof *hosts);

        if (!hosts)
                return NULL;
        hosts->samples = p->samples.count;
        sum_batch_hosts(p, false, hosts);
        if (!hosts->count) /* the sender of a batch without samples is recorded too */
                find_or_add_host(hosts, 0);
        return hosts;
}

/* The hosts of samples that the decoder rejected are unknown: they are counted for the first host. */
static void record_batch_senders(struct ingest_history *h, const struct ingested_batch *b, struct ingest_time now)
{
        uint64_t dropped = b->hosts->samples - b->profile->samples.count; /* rejected after decoding */
        uint64_t unknown = b->profile->rejected_samples - dropped;        /* rejected by the decoder */

        if (dropped) {
                sum_batch_hosts(b->profile, true, b->hosts);
        } else {
                for (size_t i = 0; i < HOST_SLOTS; i++)
                        b->hosts->slots[i].kept = b->hosts->slots[i].sent;
        }
        for (size_t i = 0; i < HOST_SLOTS; i++) {
                const struct batch_host *host = &b->hosts->slots[i];
                const struct sender_name name = { host->value ? profile_text(b->profile, host->value - 1) : "",
                                                  b->agent ? b->agent : "", b->address ? b->address : "" };
                const struct sender_batch batch = { .samples = b->is_duplicate ? 0 : host->kept,
                                                    .rejected = host->sent - host->kept + unknown,
                                                    .newest_unix_ns = host->newest_unix_ns,
                                                    .now_unix_ns = now.unix_ns };

                if (!host->value)
                        continue;
                unknown = 0;
                senders_note_batch(h->senders, &name, &batch);
        }
}

/* ---- counts ---- */

/* Caller holds h->lock. */
static struct ingest_minute *get_current_minute(struct ingest_history *h, int64_t mono_ns)
{
        int64_t minute = mono_ns / MINUTE_NS;
        struct minute_slot *slot = &h->minutes[minute % INGEST_HISTORY_MINUTES];

        if (slot->minute != minute)
                *slot = (struct minute_slot){ .minute = minute };
        return &slot->counts;
}

void ingest_history_add_batch(struct ingest_history *h, const struct ingested_batch *b, struct ingest_time now)
{
        uint64_t samples = b->is_duplicate ? 0 : b->profile->samples.count;
        struct ingest_minute *m;

        pthread_mutex_lock(&h->lock);
        m = get_current_minute(h, now.mono_ns);
        m->batches++;
        m->samples += samples;
        h->totals.batches++;
        h->totals.samples += samples;
        h->totals.duplicates += b->is_duplicate;
        h->totals.rejected += b->profile->rejected_samples;
        pthread_mutex_unlock(&h->lock);
        if (b->hosts)
                record_batch_senders(h, b, now);
}

void ingest_history_add_refusal(struct ingest_history *h, const struct ingest_refusal *r, struct ingest_time now)
{
        struct ingest_problem_state *p = &h->problems[r->problem];

        if (!r->count)
                return;
        pthread_mutex_lock(&h->lock);
        if (ingest_problem_is_of_batches(r->problem))
                get_current_minute(h, now.mono_ns)->refused += r->count;
        p->count += r->count;
        p->last_unix_ns = now.unix_ns;
        snprintf(p->text, sizeof p->text, "%s", r->text);
        snprintf(p->agent, sizeof p->agent, "%s", r->agent ? r->agent : "");
        snprintf(p->address, sizeof p->address, "%s", r->address ? r->address : "");
        pthread_mutex_unlock(&h->lock);
}

void ingest_history_get_totals(struct ingest_history *h, struct ingest_totals *ret)
{
        pthread_mutex_lock(&h->lock);
        *ret = h->totals;
        pthread_mutex_unlock(&h->lock);
}

void ingest_history_get_problem(struct ingest_history *h, enum ingest_problem problem, struct ingest_problem_state *ret)
{
        pthread_mutex_lock(&h->lock);
        *ret = h->problems[problem];
        pthread_mutex_unlock(&h->lock);
}

void ingest_history_get_minutes(struct ingest_history *h, struct ingest_time now,
                                struct ingest_minute ret[static INGEST_HISTORY_MINUTES])
{
        int64_t current = now.mono_ns / MINUTE_NS;

        pthread_mutex_lock(&h->lock);
        for (int i = 0; i < INGEST_HISTORY_MINUTES; i++) {
                int64_t minute = current - (INGEST_HISTORY_MINUTES - 1) + i;
                const struct minute_slot *slot = minute >= 0 ? &h->minutes[minute % INGEST_HISTORY_MINUTES] : NULL;

                ret[i] = slot && slot->minute == minute ? slot->counts : (struct ingest_minute){ 0 };
                ret[i].start_unix_s = (now.unix_ns - (now.mono_ns - minute * MINUTE_NS)) / NS_PER_S;
        }
        pthread_mutex_unlock(&h->lock);
}
