/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sender.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/clock.h"
#include "common/compress.h"
#include "common/limits.h"
#include "common/log.h"
#include "http/client.h"

#define FIRST_PAUSE_MS 500
#define LONGEST_PAUSE_MS 30000
#define PATH "/v1development/profiles"

struct batch {
        struct batch *next;
        char id[33];
        struct buf packed;
};

struct sender {
        struct http_client *client; /* used by the thread alone */
        pthread_t thread;
        pthread_mutex_t lock;       /* everything below */
        pthread_cond_t changed;
        struct batch *first, *last;
        bool first_in_flight;
        bool flushing;              /* somebody waits: pauses are short */
        atomic_bool stop;           /* also read by the client */
        struct sender_stats stats;
        char why[240];              /* of the last failure */
};

static void batch_destroy(struct batch *b)
{
        if (!b)
                return;
        buf_deinit(&b->packed);
        free(b);
}

/* Under the lock. */
static void take_first(struct sender *s)
{
        struct batch *b = s->first;

        s->first = b->next;
        if (!s->first)
                s->last = NULL;
        s->stats.queued--;
        s->stats.queued_bytes -= b->packed.size;
        batch_destroy(b);
}

/* Under the lock: make room, oldest first, but leave alone what is being sent. */
static void drop_oldest(struct sender *s)
{
        struct batch *keep = s->first_in_flight ? s->first : NULL, *b = keep ? keep->next : s->first;

        if (!b)
                return;
        if (keep) {
                keep->next = b->next;
                if (s->last == b)
                        s->last = keep;
        } else {
                s->first = b->next;
                if (!s->first)
                        s->last = NULL;
        }
        s->stats.queued--;
        s->stats.queued_bytes -= b->packed.size;
        s->stats.dropped++;
        batch_destroy(b);
}

static enum status send_batch(struct sender *s, const struct batch *b, uint64_t *retry_after_ms, struct error *err)
{
        char id_header[64];
        const char *const headers[] = {
                "Content-Type: application/x-protobuf",
                "Content-Encoding: gzip",
                "Expect:", /* a batch is small: no asking first */
                id_header,
                NULL,
        };
        const struct http_client_request request = {
                .method = "POST",
                .path = PATH,
                .headers = headers,
                .body = b->packed.data,
                .body_size = b->packed.size,
                .repeatable = true,
        };
        _cleanup_http_client_response_ struct http_client_response response = { 0 };
        enum status st;

        snprintf(id_header, sizeof id_header, "X-Cairn-Batch: %s", b->id);
        st = http_client_send(s->client, &request, &response, err);
        *retry_after_ms = response.retry_after_ms;
        return st;
}

/* Under the lock. */
static void pause_sending(struct sender *s, uint64_t ms)
{
        int64_t until = monotonic_ns() + (int64_t)ms * 1000000;
        struct timespec t = { .tv_sec = until / 1000000000, .tv_nsec = until % 1000000000 };

        bool was_flushing = s->flushing;

        while (!atomic_load(&s->stop) && s->flushing == was_flushing &&
               pthread_cond_timedwait(&s->changed, &s->lock, &t) == 0)
                ; /* a new batch changes nothing for the one that waits */
}

/* Under the lock, which is let go while a batch is on its way. */
static void send_first(struct sender *s, uint64_t *pause_ms)
{
        struct error err = { 0 };
        uint64_t retry_after_ms = 0;
        struct batch *b = s->first;
        enum status st;

        s->first_in_flight = true;
        pthread_mutex_unlock(&s->lock);
        st = send_batch(s, b, &retry_after_ms, &err);
        pthread_mutex_lock(&s->lock);
        s->first_in_flight = false;
        if (st == ST_OK) {
                if (*pause_ms)
                        log_info("agent", "the server takes batches again, %" PRIu64 " are waiting", s->stats.queued - 1);
                s->stats.sent++;
                *pause_ms = 0;
                take_first(s);
        } else if (st == ST_BUSY || st == ST_OS) {
                if (atomic_load(&s->stop))
                        return;
                if (!*pause_ms)
                        log_warn("agent", "%s; the batch stays queued and is sent again", err.text);
                snprintf(s->why, sizeof s->why, "%s", err.text);
                s->stats.retried++;
                *pause_ms = *pause_ms ? 2 * *pause_ms : FIRST_PAUSE_MS;
                if (*pause_ms > LONGEST_PAUSE_MS)
                        *pause_ms = LONGEST_PAUSE_MS;
                if (s->flushing)
                        *pause_ms = FIRST_PAUSE_MS;
                pause_sending(s, retry_after_ms > *pause_ms ? retry_after_ms : *pause_ms);
        } else {
                log_error("agent", "the server refuses a batch, dropping it: %s", err.text);
                snprintf(s->why, sizeof s->why, "%s", err.text);
                s->stats.refused++;
                take_first(s);
        }
        pthread_cond_broadcast(&s->changed);
}

static void *run(void *arg)
{
        struct sender *s = arg;
        uint64_t pause_ms = 0;

        pthread_mutex_lock(&s->lock);
        while (!atomic_load(&s->stop)) {
                if (s->first)
                        send_first(s, &pause_ms);
                else
                        pthread_cond_wait(&s->changed, &s->lock);
        }
        pthread_mutex_unlock(&s->lock);
        return NULL;
}

enum status sender_create(const struct sender_options *o, struct sender **ret, struct error *err)
{
        struct sender *s = calloc(1, sizeof *s);
        struct http_client_options http = {
                .size = sizeof http,
                .base_url = o->server,
                .token = o->token,
                .user_agent = "cairn-agent/" CAIRN_VERSION,
                .request_timeout_ms = 60000,
                .attempts = 1,
        };
        pthread_condattr_t attr;
        enum status st;
        int e;

        if (!s)
                return error_no_memory(err);
        http.stop = &s->stop;
        st = http_client_create(&http, &s->client, err);
        if (st) {
                free(s);
                return st;
        }
        pthread_mutex_init(&s->lock, NULL);
        pthread_condattr_init(&attr);
        pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
        pthread_cond_init(&s->changed, &attr);
        pthread_condattr_destroy(&attr);
        e = pthread_create(&s->thread, NULL, run, s);
        if (e) {
                pthread_cond_destroy(&s->changed);
                pthread_mutex_destroy(&s->lock);
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
        while (s->first)
                take_first(s);
        pthread_cond_destroy(&s->changed);
        pthread_mutex_destroy(&s->lock);
        http_client_destroy(s->client);
        free(s);
}

enum status sender_put(struct sender *s, const void *body, size_t n, struct error *err)
{
        struct batch *b = calloc(1, sizeof *b);
        uint64_t id[2];
        enum status st;

        if (!b)
                return error_no_memory(err);
        buf_init(&b->packed, LIMIT_AGENT_QUEUE_BYTES);
        st = gzip_pack(body, n, 4, &b->packed, err);
        if (!st && getrandom(id, sizeof id, 0) != sizeof id)
                st = error_os(err, errno, "cannot get random bytes");
        if (st) {
                batch_destroy(b);
                return st;
        }
        snprintf(b->id, sizeof b->id, "%016" PRIx64 "%016" PRIx64, id[0], id[1]);
        pthread_mutex_lock(&s->lock);
        while (s->stats.queued_bytes + b->packed.size > LIMIT_AGENT_QUEUE_BYTES && s->first != NULL &&
               (s->first->next || !s->first_in_flight))
                drop_oldest(s);
        if (s->last)
                s->last->next = b;
        else
                s->first = b;
        s->last = b;
        s->stats.queued++;
        s->stats.queued_bytes += b->packed.size;
        pthread_cond_broadcast(&s->changed);
        pthread_mutex_unlock(&s->lock);
        return ST_OK;
}

enum status sender_flush(struct sender *s, uint64_t deadline_ms, struct error *err)
{
        int64_t until = monotonic_ns() + (int64_t)deadline_ms * 1000000;
        struct timespec t = { .tv_sec = until / 1000000000, .tv_nsec = until % 1000000000 };
        enum status st = ST_OK;

        pthread_mutex_lock(&s->lock);
        s->flushing = true;
        pthread_cond_broadcast(&s->changed);
        while (s->first && !st)
                if (pthread_cond_timedwait(&s->changed, &s->lock, &t) == ETIMEDOUT)
                        st = error_set(err, ST_BUSY, "%" PRIu64 " batches could not be sent: %.150s", s->stats.queued,
                                       s->why[0] ? s->why : "the server does not answer in time");
        pthread_mutex_unlock(&s->lock);
        return st;
}

void sender_stats(struct sender *s, struct sender_stats *ret)
{
        pthread_mutex_lock(&s->lock);
        *ret = s->stats;
        pthread_mutex_unlock(&s->lock);
}
