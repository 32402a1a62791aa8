/* SPDX-License-Identifier: Apache-2.0 */
/*
 * post_batch() makes one attempt and reduces the response to a verdict; it uses no state of the sender. The thread
 * takes the oldest batch from the outbox and acts on the verdict: ACCEPTED removes it, LATER and FAILED put it back
 * and pause (FAILED a limited number of times), TOO_BIG replaces it by its halves, REFUSED drops it.
 *
 * Lock: that of the service thread, over outbox and statistics. It is released while a batch is sent, split or synced.
 * The batch stays in the outbox meanwhile, in flight: only this thread removes it. Profiles are packed without the
 * lock, by the caller of sender_put_profile(); one that is too large is packed in halves.
 *
 * Order: attempt and verdict, spool and pauses, actions on verdicts, the thread, creation and destruction, queueing,
 * flush.
 */
#include "sending/sender_internal.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/limits.h"
#include "common/program/log.h"
#include "common/text/number_text.h"
#include "common/text/utf8.h"
#include "common/text.h"
#include "common/threads/condition.h"
#include "http/http_client.h"
#include "http/service_thread.h"
#include "profile-formats/otlp/otlp.h"
#include "profile-formats/profile_copy.h"
#include "sending/batch_split.h"
#include "sending/outbox.h"

/* ---- one attempt to send a batch, and the meaning of the response (OTLP 1.8.0, "Response" and "Failures") ---- */

enum verdict {
        VERDICT_ACCEPTED,
        VERDICT_LATER,   /* the service is unreachable, busy or misconfigured; the batch is fine */
        VERDICT_FAILED,  /* the service failed while handling it: retried a limited number of times */
        VERDICT_TOO_BIG, /* 413 */
        VERDICT_REFUSED, /* the batch will never be accepted */
};

struct post_result {
        enum verdict verdict;
        uint64_t retry_after_ms;       /* requested by the service; 0 none */
        struct otlp_response response; /* of an accepted batch */
        struct error err;              /* unless accepted */
};

#define PROFILES_PATH "/v1development/profiles"

/* Proxies and captive portals may send any content with status 200. */
static enum verdict classify_success(const struct http_client_response *r, struct post_result *result)
{
        if (r->body.size && (starts_with(r->content_type, "text/html") ||
                             (starts_with(r->content_type, "application/x-protobuf") &&
                              otlp_read_response(r->body.data, r->body.size, &result->response, NULL)))) {
                error_set(&result->err, ST_BAD_DATA,
                          "HTTP %u, but the response is not from an OTLP service; check --server", r->code);
                return VERDICT_LATER;
        }
        return VERDICT_ACCEPTED;
}

static enum verdict classify_failure(enum status st, unsigned code)
{
        if (code == 413)
                return VERDICT_TOO_BIG;
        if (code == 500 || code == 501)
                return VERDICT_FAILED;
        /* Wrong tokens, addresses and redirections are configuration errors, which do not justify losing a batch. */
        if (code < 400 || code == 401 || code == 403 || code == 404 || code == 405 || code == 407 || code == 415 ||
            code == 421)
                return VERDICT_LATER;
        return st == ST_BUSY || st == ST_OS || st == ST_NO_MEMORY ? VERDICT_LATER : VERDICT_REFUSED;
}

static struct post_result post_batch(struct http_client *client, const struct outbox_batch *b)
{
        char id_header[64], hex[BATCH_ID_HEX];
        const char *const headers[] = {
                "Content-Type: application/x-protobuf",
                "Content-Encoding: gzip",
                "Expect:", /* no 100-continue: a batch is small */
                id_header,
                NULL,
        };
        const struct http_client_request request = {
                .method = "POST",
                .path = PROFILES_PATH,
                .headers = headers,
                .body = b->payload,
                .body_size = b->payload_size,
                .repeatable = true,
        };
        _cleanup_http_client_response_ struct http_client_response response = { 0 };
        struct post_result result = { 0 };
        enum status st;

        snprintf(id_header, sizeof id_header, "X-Cairn-Batch: %s", batch_id_to_hex(&b->id, hex));
        st = http_client_send(client, &request, &response, &result.err);
        result.verdict = st ? classify_failure(st, response.code) : classify_success(&response, &result);
        result.retry_after_ms = response.retry_after_ms < LIMIT_AGENT_RETRY_AFTER_MS ? response.retry_after_ms
                                                                                     : LIMIT_AGENT_RETRY_AFTER_MS;
        return result;
}

#define FIRST_PAUSE_MS 500
#define LONGEST_PAUSE_MS 30000
#define SERVER_ERRORS_MAX 20 /* then the batch is assumed to be the cause */

struct sender {
        struct service_thread service; /* its lock protects everything below */
        struct outbox outbox;
        bool flushing; /* sender_flush() waits: pauses are short */
        struct sender_stats stats;
        uint64_t pause_ms; /* the last pause; 0: the last attempt succeeded */
        uint64_t random;
        char last_error[240];
};

/* Caller holds the lock, which is released meanwhile. */
static void sync_spool(struct sender *s)
{
        uint64_t numbers[OUTBOX_SYNC_MAX];
        struct error err;
        size_t n;

        while (s->outbox.spool && (n = outbox_list_unsynced(&s->outbox, numbers))) {
                enum status st;

                pthread_mutex_unlock(&s->service.lock);
                st = outbox_sync(&s->outbox, numbers, n, &err);
                pthread_mutex_lock(&s->service.lock);
                if (st) {
                        log_error("sender", "%s; a power cut may lose waiting batches", err.text);
                        s->outbox.stats.spool_failed++;
                }
                outbox_mark_synced(&s->outbox, numbers, n); /* also on failure: the kernel reports an error only once */
        }
}

/* Caller holds the lock. A new batch does not end the pause, but is synced. */
static void pause_sending(struct sender *s, uint64_t ms)
{
        int64_t until = monotonic_ns() + (int64_t)ms * 1000000;
        bool was_flushing = s->flushing;

        do
                sync_spool(s);
        while (!atomic_load(&s->service.stop) && s->flushing == was_flushing &&
               condition_wait_until(&s->service.changed, &s->service.lock, until));
}

/* Exponential backoff with jitter: between half of the pause and all of it. */
static uint64_t choose_pause(struct sender *s)
{
        s->pause_ms = s->pause_ms ? 2 * s->pause_ms : FIRST_PAUSE_MS;
        if (s->pause_ms > LONGEST_PAUSE_MS)
                s->pause_ms = LONGEST_PAUSE_MS;
        if (s->flushing)
                s->pause_ms = FIRST_PAUSE_MS;
        s->random = s->random * 6364136223846793005u + 1442695040888963407u;
        return s->pause_ms - (s->random >> 33) % (s->pause_ms / 2);
}

/* Caller holds the lock. */
static void retry_later(struct sender *s, struct outbox_batch *b, const struct post_result *result)
{
        uint64_t pause;

        outbox_put_back(&s->outbox, b);
        if (atomic_load(&s->service.stop))
                return;
        if (!s->stats.failing || strcmp(s->last_error, result->err.text) != 0)
                log_warn("sender", "%s; batches wait and are sent again", result->err.text);
        snprintf(s->last_error, sizeof s->last_error, "%s", result->err.text);
        s->stats.failing = true;
        s->stats.retried++;
        pthread_cond_broadcast(&s->service.changed);
        pause = choose_pause(s);
        pause_sending(s, result->retry_after_ms > pause ? result->retry_after_ms : pause);
}

/* Caller holds the lock. */
static void drop_refused_batch(struct sender *s, struct outbox_batch *b, enum outbox_drop_reason why,
                               const struct error *err)
{
        log_error("sender", "the server refuses a batch, dropping it: %s", err->text);
        snprintf(s->last_error, sizeof s->last_error, "%s", err->text);
        outbox_drop(&s->outbox, b, why);
}

/* Caller holds the lock, which is released meanwhile. The halves are queued before the whole is removed. */
static void split_large_batch(struct sender *s, struct outbox_batch *b)
{
        struct batch_part parts[2];
        struct error err;
        enum status st;

        pthread_mutex_unlock(&s->service.lock);
        st = batch_split(&b->id, b->payload, b->payload_size, parts, &err);
        pthread_mutex_lock(&s->service.lock);
        if (st) {
                drop_refused_batch(s, b, DROP_TOO_BIG, &err);
                return;
        }
        for (int i = 0; i < 2; i++)
                if (outbox_put(&s->outbox, &parts[i].id, &parts[i].packed, &err)) {
                        log_error("sender", "half of a batch is lost: %s", err.text);
                        s->outbox.stats.dropped[DROP_MEMORY_FULL]++;
                }
        s->stats.split++;
        sync_spool(s);
        outbox_remove(&s->outbox, b);
}

static void finish_sent_batch(struct sender *s, struct outbox_batch *b, const struct post_result *result)
{
        if (s->stats.failing)
                log_info("sender", "the server accepts batches again, %s",
                         COUNTED(s->outbox.stats.queued - 1, "is waiting", "are waiting"));
        if (result->response.rejected)
                log_warn("sender", "the server rejected samples of a batch: %s", PRINTABLE(result->response.message));
        s->stats.sent++;
        s->stats.rejected_samples += result->response.rejected;
        outbox_remove(&s->outbox, b);
}

/* Caller holds the lock, which is released while sending. */
static void send_oldest_batch(struct sender *s)
{
        struct outbox_batch *b = outbox_take(&s->outbox);
        struct post_result result;

        if (!b) {
                if (s->outbox.first) /* out of memory or descriptors */
                        pause_sending(s, LONGEST_PAUSE_MS);
                pthread_cond_broadcast(&s->service.changed);
                return;
        }
        pthread_mutex_unlock(&s->service.lock);
        result = post_batch(s->service.client, b);
        pthread_mutex_lock(&s->service.lock);
        if (result.verdict == VERDICT_FAILED && ++b->server_errors >= SERVER_ERRORS_MAX)
                result.verdict = VERDICT_REFUSED;
        if (result.verdict == VERDICT_LATER || result.verdict == VERDICT_FAILED) {
                retry_later(s, b, &result);
                return;
        }
        if (result.verdict == VERDICT_ACCEPTED)
                finish_sent_batch(s, b, &result);
        else if (result.verdict == VERDICT_TOO_BIG)
                split_large_batch(s, b);
        else
                drop_refused_batch(s, b, DROP_REFUSED, &result.err);
        s->stats.failing = false;
        s->pause_ms = 0;
        pthread_cond_broadcast(&s->service.changed);
}

static void *run_sender(void *arg)
{
        struct sender *s = arg;

        pthread_mutex_lock(&s->service.lock);
        while (!atomic_load(&s->service.stop)) {
                if (s->outbox.first)
                        send_oldest_batch(s);
                else
                        pthread_cond_wait(&s->service.changed, &s->service.lock);
        }
        sync_spool(s);
        pthread_mutex_unlock(&s->service.lock);
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
                .tenant = o->tenant,
                .user_agent = o->user_agent ? o->user_agent : "cairn-agent/" CAIRN_VERSION,
                .request_timeout_ms = SENDER_TRY_MS,
                .attempts = 1,
        };
        struct hash128 seed = batch_id_generate();
        enum status st;

        if (!s)
                return error_no_memory(err);
        memcpy(&s->random, seed.bytes, sizeof s->random);
        st = service_thread_init(&s->service, &http, err);
        if (st) {
                free(s);
                return st;
        }
        st = outbox_init(&s->outbox, o->spool, o->spool_bytes, err);
        if (!st)
                st = service_thread_start(&s->service, "sender", run_sender, s, err);
        if (st) {
                sender_destroy(s);
                return st;
        }
        *ret = s;
        return ST_OK;
}

enum status sender_set_token(struct sender *s, const char *token, struct error *err)
{
        return http_client_set_token(s->service.client, token, err);
}

void sender_destroy(struct sender *s)
{
        if (!s)
                return;
        if (!service_thread_stop(&s->service)) /* the thread uses s until the disk of the spool responds */
                return;
        outbox_deinit(&s->outbox);
        service_thread_deinit(&s->service);
        free(s);
}

enum status sender_queue_batch(struct sender *s, const struct hash128 *id, struct buf *packed, struct error *err)
{
        enum status st;

        pthread_mutex_lock(&s->service.lock);
        st = outbox_put(&s->outbox, id, packed, err);
        pthread_cond_broadcast(&s->service.changed);
        pthread_mutex_unlock(&s->service.lock);
        return st;
}

static enum status queue_profile_part(struct sender *s, const struct profile *p, uint32_t first, uint32_t count,
                                      struct error *err)
{
        struct profile part;
        enum status st = profile_copy_samples(p, first, count, &part, err);

        if (st)
                return st;
        st = sender_put_profile(s, &part, err);
        profile_deinit(&part);
        return st;
}

/* A partial failure is counted, not returned: the caller would queue the delivered half again. */
static enum status queue_profile_halves(struct sender *s, const struct profile *p, struct error *err)
{
        uint32_t half = p->samples.count / 2, rest = p->samples.count - half, lost;
        struct error failures[2];
        enum status first = queue_profile_part(s, p, 0, half, &failures[0]);
        enum status second = queue_profile_part(s, p, half, rest, &failures[1]);

        if (first && second) {
                if (err)
                        *err = failures[0];
                return first;
        }
        lost = first ? half : second ? rest : 0;
        if (!lost)
                return ST_OK;
        log_error("sender", "%s lost: %s", COUNTED(lost, "sample of a profile is", "samples of a profile are"),
                  failures[!first].text);
        pthread_mutex_lock(&s->service.lock);
        s->stats.lost_samples += lost;
        pthread_mutex_unlock(&s->service.lock);
        return ST_OK;
}

enum status sender_put_profile(struct sender *s, const struct profile *p, struct error *err)
{
        struct hash128 id = batch_id_generate();
        char hex[BATCH_ID_HEX];
        struct buf packed;
        enum status st = batch_pack(p, &packed, err);

        if (!st) {
                st = sender_queue_batch(s, &id, &packed, err);
                if (!st)
                        log_debug("sender", "batch %s waits: %s", batch_id_to_hex(&id, hex),
                                  COUNTED(p->samples.count, "sample", "samples"));
                return st;
        }
        return st == ST_TOO_BIG && p->samples.count > 1 ? queue_profile_halves(s, p, err) : st;
}

enum status sender_flush(struct sender *s, uint64_t deadline_ms, struct error *err)
{
        int64_t until = monotonic_ns() + (int64_t)deadline_ms * 1000000;
        enum status st = ST_OK;

        pthread_mutex_lock(&s->service.lock);
        s->flushing = true;
        pthread_cond_broadcast(&s->service.changed);
        while (s->outbox.first && !st)
                if (!condition_wait_until(&s->service.changed, &s->service.lock, until))
                        st = error_set(err, ST_BUSY, "%s could not be sent: %.150s",
                                       COUNTED(s->outbox.stats.queued, "batch", "batches"),
                                       s->last_error[0] ? s->last_error : "the server does not respond in time");
        pthread_mutex_unlock(&s->service.lock);
        return st;
}

void sender_get_stats(struct sender *s, struct sender_stats *ret)
{
        pthread_mutex_lock(&s->service.lock);
        *ret = s->stats;
        ret->outbox = s->outbox.stats;
        pthread_mutex_unlock(&s->service.lock);
}
