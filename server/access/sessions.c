/* SPDX-License-Identifier: Apache-2.0 */
#include "server/access/sessions.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/random.h>

#include "common/limits.h"
#include "common/metrics.h"
#include "common/text.h"

#define BUCKETS 1024

enum end_reason { END_SIGNED_OUT, END_EXPIRED, END_EVICTED, END_REVOKED };

#define ENDED(reason) METRIC_COUNTER("cairn_sessions_ended_total", "Sessions of browsers that ended.", reason)

static struct metric ended[] = { ENDED("reason=\"signed_out\""), ENDED("reason=\"expired\""),
                                 ENDED("reason=\"evicted\""), ENDED("reason=\"revoked\"") };
static struct metric open_sessions = METRIC_GAUGE("cairn_sessions", "Sessions of browsers.", "");

struct kept_session {
        LIST_ENTRY(kept_session) in_bucket;
        TAILQ_ENTRY(kept_session) by_use; /* least recently used first */
        uint8_t digest[SHA256_BYTES];     /* of the id */
        struct token_id token;
        int64_t end_ns;
};

TAILQ_HEAD(session_queue, kept_session);
LIST_HEAD(session_list, kept_session);

struct sessions {
        pthread_mutex_t lock;
        int64_t max_age_ns;
        size_t count;
        struct session_queue used;
        struct session_list buckets[BUCKETS];
};

enum status sessions_create(uint64_t max_age_s, struct sessions **ret, struct error *err)
{
        struct sessions *s = calloc(1, sizeof *s);

        if (!s)
                return error_no_memory(err);
        pthread_mutex_init(&s->lock, NULL);
        TAILQ_INIT(&s->used);
        s->max_age_ns = (int64_t)max_age_s * 1000000000;
        for (size_t i = 0; i < sizeof ended / sizeof *ended; i++)
                metric_register(&ended[i]);
        metric_set(&open_sessions, 0);
        *ret = s;
        return ST_OK;
}

/* Keys are digests of random ids, which no client can choose, so their first bytes serve as the hash. */
static struct session_list *get_session_bucket(struct sessions *s, const uint8_t digest[static SHA256_BYTES])
{
        return &s->buckets[(digest[0] | (unsigned)digest[1] << 8) % BUCKETS];
}

static void remove_session(struct sessions *s, struct kept_session *k)
{
        TAILQ_REMOVE(&s->used, k, by_use);
        LIST_REMOVE(k, in_bucket);
        assert(s->count > 0);
        s->count--;
        free(k);
}

/* Caller holds s->lock, as for the other static functions below. */
static void end_session(struct sessions *s, struct kept_session *k, enum end_reason reason)
{
        remove_session(s, k);
        metric_set(&open_sessions, (int64_t)s->count);
        metric_add(&ended[reason], 1);
}

void sessions_destroy(struct sessions *s)
{
        if (!s)
                return;
        while (!TAILQ_EMPTY(&s->used))
                remove_session(s, TAILQ_FIRST(&s->used));
        pthread_mutex_destroy(&s->lock);
        free(s);
}

static bool is_same_token(const struct token_id *a, const struct token_id *b)
{
        return memcmp(a->digest, b->digest, sizeof a->digest) == 0;
}

static void make_room_for_session(struct sessions *s, const struct token_id *token)
{
        struct kept_session *k, *oldest = NULL;
        size_t of_token = 0;

        TAILQ_FOREACH(k, &s->used, by_use)
        if (is_same_token(&k->token, token)) {
                of_token++;
                if (!oldest)
                        oldest = k;
        }
        if (of_token >= LIMIT_SESSIONS_PER_TOKEN)
                end_session(s, oldest, END_EVICTED);
        else if (s->count >= LIMIT_SESSIONS)
                end_session(s, TAILQ_FIRST(&s->used), END_EVICTED);
}

static void end_expired_sessions(struct sessions *s, int64_t now_ns)
{
        struct kept_session *k, *next;

        for (k = TAILQ_FIRST(&s->used); k; k = next) {
                next = TAILQ_NEXT(k, by_use);
                if (k->end_ns <= now_ns)
                        end_session(s, k, END_EXPIRED);
        }
}

static bool digest_session_id(const char *id, uint8_t ret[static SHA256_BYTES])
{
        struct token_id digest;

        if (!id || strlen(id) != SESSION_ID_SIZE - 1 || !token_identify(id, &digest))
                return false;
        memcpy(ret, digest.digest, SHA256_BYTES);
        return true;
}

enum status sessions_begin(struct sessions *s, const struct token_id *token, int64_t now_ns,
                           char id_ret[static SESSION_ID_SIZE], struct error *err)
{
        uint8_t random[SHA256_BYTES];
        struct kept_session *k = calloc(1, sizeof *k);

        if (!k)
                return error_no_memory(err);
        if (getrandom(random, sizeof random, 0) != sizeof random) {
                free(k);
                return error_set(err, ST_OS, "cannot get random bytes from the kernel");
        }
        hex_encode(random, sizeof random, id_ret);
        explicit_bzero(random, sizeof random);
        if (!digest_session_id(id_ret, k->digest)) {
                free(k);
                return error_no_memory(err);
        }
        k->token = *token;
        k->end_ns = now_ns + s->max_age_ns;
        pthread_mutex_lock(&s->lock);
        end_expired_sessions(s, now_ns);
        make_room_for_session(s, token);
        LIST_INSERT_HEAD(get_session_bucket(s, k->digest), k, in_bucket);
        TAILQ_INSERT_TAIL(&s->used, k, by_use);
        metric_set(&open_sessions, (int64_t)++s->count);
        pthread_mutex_unlock(&s->lock);
        return ST_OK;
}

static struct kept_session *get_session(struct sessions *s, const uint8_t digest[static SHA256_BYTES])
{
        struct kept_session *k;

        LIST_FOREACH(k, get_session_bucket(s, digest), in_bucket)
        if (memcmp(k->digest, digest, SHA256_BYTES) == 0)
                return k;
        return NULL;
}

bool sessions_find(struct sessions *s, const char *id, int64_t now_ns, struct session *ret)
{
        uint8_t digest[SHA256_BYTES];
        struct kept_session *k;

        if (!digest_session_id(id, digest))
                return false;
        pthread_mutex_lock(&s->lock);
        k = get_session(s, digest);
        if (k && k->end_ns <= now_ns) {
                end_session(s, k, END_EXPIRED);
                k = NULL;
        }
        if (k) {
                TAILQ_REMOVE(&s->used, k, by_use);
                TAILQ_INSERT_TAIL(&s->used, k, by_use);
                *ret = (struct session){ k->token, (uint64_t)(k->end_ns - now_ns) / 1000000000 };
        }
        pthread_mutex_unlock(&s->lock);
        return k;
}

bool sessions_end(struct sessions *s, const char *id)
{
        uint8_t digest[SHA256_BYTES];
        struct kept_session *k;

        if (!digest_session_id(id, digest))
                return false;
        pthread_mutex_lock(&s->lock);
        k = get_session(s, digest);
        if (k)
                end_session(s, k, END_SIGNED_OUT);
        pthread_mutex_unlock(&s->lock);
        return k;
}

void sessions_end_revoked(struct sessions *s, struct tokens *tokens)
{
        struct kept_session *k, *next;

        pthread_mutex_lock(&s->lock);
        for (k = TAILQ_FIRST(&s->used); k; k = next) {
                next = TAILQ_NEXT(k, by_use);
                if (!tokens_has(tokens, &k->token))
                        end_session(s, k, END_REVOKED);
        }
        pthread_mutex_unlock(&s->lock);
}
