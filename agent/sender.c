/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sender.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "agent/batch_split.h"
#include "agent/post.h"
#include "common/clock.h"
#include "common/condition.h"
#include "common/limits.h"
#include "common/log.h"
#include "profile-formats/profile_part.h"

#define FIRST_PAUSE_MS 500
#define LONGEST_PAUSE_MS 30000
#define SERVER_ERRORS_MAX 20 /* then the batch is taken for what fails */

struct sender {
        struct http_client *client; /* used by the thread alone */
        pthread_t thread;
        pthread_mutex_t lock;       /* everything below */
        pthread_cond_t changed;
        struct outbox outbox;
        bool flushing;              /* somebody waits: pauses are short */
        atomic_bool stop;           /* also read by the client */
        struct sender_stats stats;
        uint64_t pause_ms;          /* the last pause; 0: the last try went well */
        uint64_t dice;
        char why[240];              /* of the last failure */
};

/* Under the lock, which is let go meanwhile. */
static void sync_spool(struct sender *s)
{
        uint64_t numbers[OUTBOX_SYNC_MAX];
        struct error err;
        size_t n;

        while (s->outbox.spool && (n = outbox_unsynced(&s->outbox, numbers))) {
                enum status st;

                pthread_mutex_unlock(&s->lock);
                st = outbox_sync(&s->outbox, numbers, n, &err);
                pthread_mutex_lock(&s->lock);
                if (st) {
                        log_error("agent", "%s; a power cut may lose what waits", err.text);
                        s->outbox.stats.spool_failed++;
                }
                outbox_mark_synced(&s->outbox, numbers, n); /* also on failure: the kernel says it only once */
        }
}

/* Under the lock. A new batch changes nothing for the one that waits, but is synced. */
static void pause_sending(struct sender *s, uint64_t ms)
{
        int64_t until = monotonic_ns() + (int64_t)ms * 1000000;
        bool was_flushing = s->flushing;

        do
                sync_spool(s);
        while (!atomic_load(&s->stop) && s->flushing == was_flushing &&
               condition_wait_until(&s->changed, &s->lock, until));
}

/* Between half of it and all of it, so that agents do not come back together. */
static uint64_t next_pause(struct sender *s)
{
        s->pause_ms = s->pause_ms ? 2 * s->pause_ms : FIRST_PAUSE_MS;
        if (s->pause_ms > LONGEST_PAUSE_MS)
                s->pause_ms = LONGEST_PAUSE_MS;
        if (s->flushing)
                s->pause_ms = FIRST_PAUSE_MS;
        s->dice = s->dice * 6364136223846793005u + 1442695040888963407u;
        return s->pause_ms - (s->dice >> 33) % (s->pause_ms / 2);
}

/* Under the lock. */
static void wait_and_see(struct sender *s, struct batch *b, const struct post_result *result)
{
        uint64_t pause;

        outbox_put_back(&s->outbox, b);
        if (atomic_load(&s->stop))
                return;
        if (!s->stats.failing || strcmp(s->why, result->err.text) != 0)
                log_warn("agent", "%s; batches wait and are sent again", result->err.text);
        snprintf(s->why, sizeof s->why, "%s", result->err.text);
        s->stats.failing = true;
        s->stats.retried++;
        pthread_cond_broadcast(&s->changed);
        pause = next_pause(s);
        pause_sending(s, result->retry_after_ms > pause ? result->retry_after_ms : pause);
}

/* Under the lock. */
static void give_up(struct sender *s, struct batch *b, enum outbox_drop why, const struct error *err)
{
        log_error("agent", "the server refuses a batch, dropping it: %s", err->text);
        snprintf(s->why, sizeof s->why, "%s", err->text);
        outbox_drop(&s->outbox, b, why);
}

/* Under the lock, which is let go meanwhile. The halves are safe before the whole is given up. */
static void split(struct sender *s, struct batch *b)
{
        struct batch_part parts[2];
        struct error err;
        enum status st;

        pthread_mutex_unlock(&s->lock);
        st = batch_split(&b->id, b->payload, b->payload_size, parts, &err);
        pthread_mutex_lock(&s->lock);
        if (st) {
                give_up(s, b, DROP_TOO_BIG, &err);
                return;
        }
        for (int i = 0; i < 2; i++)
                if (outbox_put(&s->outbox, &parts[i].id, &parts[i].packed, &err))
                        log_error("agent", "half of a batch is lost: %s", err.text);
        s->stats.split++;
        sync_spool(s);
        outbox_remove(&s->outbox, b);
}

static void taken(struct sender *s, struct batch *b, const struct post_result *result)
{
        if (s->stats.failing)
                log_info("agent", "the server takes batches again, %" PRIu64 " are waiting", s->outbox.stats.queued - 1);
        if (result->rejected_samples)
                log_warn("agent", "the server rejected %" PRIu64 " samples of a batch", result->rejected_samples);
        s->stats.sent++;
        s->stats.rejected_samples += result->rejected_samples;
        outbox_remove(&s->outbox, b);
}

/* Under the lock, which is let go while a batch is on its way. */
static void send_first(struct sender *s)
{
        struct batch *b = outbox_take(&s->outbox);
        struct post_result result;

        if (!b) {
                if (s->outbox.first) /* no memory, no descriptors */
                        pause_sending(s, LONGEST_PAUSE_MS);
                pthread_cond_broadcast(&s->changed);
                return;
        }
        pthread_mutex_unlock(&s->lock);
        result = post_batch(s->client, b);
        pthread_mutex_lock(&s->lock);
        if (result.verdict == VERDICT_FAILED && ++b->server_errors >= SERVER_ERRORS_MAX)
                result.verdict = VERDICT_REFUSED;
        if (result.verdict == VERDICT_LATER || result.verdict == VERDICT_FAILED) {
                wait_and_see(s, b, &result);
                return;
        }
        if (result.verdict == VERDICT_TAKEN)
                taken(s, b, &result);
        else if (result.verdict == VERDICT_TOO_BIG)
                split(s, b);
        else
                give_up(s, b, DROP_REFUSED, &result.err);
        s->stats.failing = false;
        s->pause_ms = 0;
        pthread_cond_broadcast(&s->changed);
}

static void *run(void *arg)
{
        struct sender *s = arg;

        pthread_mutex_lock(&s->lock);
        while (!atomic_load(&s->stop)) {
                if (s->outbox.first)
                        send_first(s);
                else
                        pthread_cond_wait(&s->changed, &s->lock);
        }
        sync_spool(s);
        pthread_mutex_unlock(&s->lock);
        return NULL;
}

enum status sender_create(const struct sender_options *o, struct sender **ret, struct error *err)
{
        struct sender *s = calloc(1, sizeof *s);
        struct http_client_options http = {
                .size = sizeof http,
                .base_url = o->server,
                .ca_file = o->ca_file,
                .token = o->token,
                .user_agent = "cairn-agent/" CAIRN_VERSION,
                .request_timeout_ms = SENDER_TRY_MS,
                .attempts = 1,
        };
        struct hash128 seed = outbox_random_id();
        enum status st;
        int e;

        if (!s)
                return error_no_memory(err);
        memcpy(&s->dice, seed.bytes, sizeof s->dice);
        http.stop = &s->stop;
        st = http_client_create(&http, &s->client, err);
        if (!st)
                st = outbox_init(&s->outbox, o->spool, o->spool_bytes, err);
        if (st) {
                http_client_destroy(s->client);
                free(s);
                return st;
        }
        pthread_mutex_init(&s->lock, NULL);
        pthread_cond_init(&s->changed, NULL);
        e = pthread_create(&s->thread, NULL, run, s);
        if (e) {
                pthread_cond_destroy(&s->changed);
                pthread_mutex_destroy(&s->lock);
                outbox_deinit(&s->outbox);
                http_client_destroy(s->client);
                free(s);
                return error_os(err, e, "cannot start the sender's thread");
        }
        pthread_setname_np(s->thread, "sender");
        *ret = s;
        return ST_OK;
}

void sender_destroy(struct sender *s)
{
        if (!s)
                return;
        pthread_mutex_lock(&s->lock);
        atomic_store(&s->stop, true);
        pthread_cond_broadcast(&s->changed);
        pthread_mutex_unlock(&s->lock);
        pthread_join(s->thread, NULL);
        outbox_deinit(&s->outbox);
        pthread_cond_destroy(&s->changed);
        pthread_mutex_destroy(&s->lock);
        http_client_destroy(s->client);
        free(s);
}

static enum status put(struct sender *s, const struct hash128 *id, struct buf *packed, struct error *err)
{
        enum status st;

        pthread_mutex_lock(&s->lock);
        st = outbox_put(&s->outbox, id, packed, err);
        pthread_cond_broadcast(&s->changed);
        pthread_mutex_unlock(&s->lock);
        return st;
}

enum status sender_put(struct sender *s, struct buf *packed, struct error *err)
{
        struct hash128 id = outbox_random_id();

        return put(s, &id, packed, err);
}

static enum status put_part(struct sender *s, const struct profile *p, uint32_t first, uint32_t count, struct error *err)
{
        struct profile part;
        enum status st = profile_part(p, first, count, &part, err);

        if (st)
                return st;
        st = sender_put_profile(s, &part, err);
        profile_deinit(&part);
        return st;
}

enum status sender_put_profile(struct sender *s, const struct profile *p, struct error *err)
{
        struct hash128 id = outbox_random_id();
        uint32_t half = p->samples.count / 2;
        char hex[BATCH_ID_HEX];
        struct buf packed;
        enum status st = batch_pack(p, &packed, err);

        if (!st) {
                st = put(s, &id, &packed, err);
                if (!st)
                        log_debug("agent", "batch %s waits: %u samples", batch_id_hex(&id, hex), p->samples.count);
                return st;
        }
        if (st != ST_TOO_BIG || !half)
                return st;
        st = put_part(s, p, 0, half, err);
        return st ? st : put_part(s, p, half, p->samples.count - half, err);
}

enum status sender_flush(struct sender *s, uint64_t deadline_ms, struct error *err)
{
        int64_t until = monotonic_ns() + (int64_t)deadline_ms * 1000000;
        enum status st = ST_OK;

        pthread_mutex_lock(&s->lock);
        s->flushing = true;
        pthread_cond_broadcast(&s->changed);
        while (s->outbox.first && !st)
                if (!condition_wait_until(&s->changed, &s->lock, until))
                        st = error_set(err, ST_BUSY, "%" PRIu64 " batches could not be sent: %.150s", s->outbox.stats.queued,
                                       s->why[0] ? s->why : "the server does not answer in time");
        pthread_mutex_unlock(&s->lock);
        return st;
}

void sender_stats(struct sender *s, struct sender_stats *ret)
{
        pthread_mutex_lock(&s->lock);
        *ret = s->stats;
        ret->outbox = s->outbox.stats;
        pthread_mutex_unlock(&s->lock);
}
