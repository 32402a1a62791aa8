/* SPDX-License-Identifier: Apache-2.0 */
#include "server/access/sessions.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/hash/hash_table.h"
#include "common/hash/lru_table.h"
#include "common/limits.h"
#include "common/metrics.h"
#include "common/text.h"

enum end_reason { END_SIGNED_OUT, END_EXPIRED, END_EVICTED, END_REVOKED };

#define ENDED(reason) METRIC_COUNTER("cairn_sessions_ended_total", "Sessions of browsers that ended.", reason)

static struct metric ended[] = { ENDED("reason=\"signed_out\""), ENDED("reason=\"expired\""),
                                 ENDED("reason=\"evicted\""), ENDED("reason=\"revoked\"") };
static struct metric open_sessions = METRIC_GAUGE("cairn_sessions", "Sessions of browsers.", "");

struct kept_session {
        struct lru_entry lru;
        uint8_t digest[SHA256_BYTES]; /* of the id */
        struct token_id token;
        int64_t end_ns;
};

struct sessions {
        pthread_mutex_t lock;
        int64_t max_age_ns;
        struct lru_table table;
};

enum status sessions_create(uint64_t max_age_s, struct sessions **ret, struct error *err)
{
        struct sessions *s = calloc(1, sizeof *s);

        if (!s)
                return error_no_memory(err);
        if (lru_table_init(&s->table, LIMIT_SESSIONS, err)) {
                free(s);
                return ST_NO_MEMORY;
        }
        pthread_mutex_init(&s->lock, NULL);
        s->max_age_ns = (int64_t)max_age_s * 1000000000;
        for (size_t i = 0; i < sizeof ended / sizeof *ended; i++)
                metric_register(&ended[i]);
        metric_set(&open_sessions, 0);
        *ret = s;
        return ST_OK;
}

static void remove_session(struct sessions *s, struct lru_entry *session)
{
        lru_table_remove(&s->table, session);
        free(session);
}

/* Caller holds s->lock, as for the other static functions below. */
static void end_session(struct sessions *s, struct kept_session *k, enum end_reason reason)
{
        remove_session(s, &k->lru);
        metric_set(&open_sessions, (int64_t)s->table.count);
        metric_add(&ended[reason], 1);
}

void sessions_destroy(struct sessions *s)
{
        if (!s)
                return;
        while (s->table.count)
                remove_session(s, lru_table_oldest(&s->table));
        lru_table_deinit(&s->table);
        pthread_mutex_destroy(&s->lock);
        free(s);
}

static struct kept_session *get_oldest_session(const struct sessions *s)
{
        return (struct kept_session *)lru_table_oldest(&s->table);
}

static struct kept_session *get_next_session(const struct kept_session *k)
{
        return (struct kept_session *)lru_entry_newer(&k->lru);
}

static bool is_same_token(const struct token_id *a, const struct token_id *b)
{
        return memcmp(a->digest, b->digest, sizeof a->digest) == 0;
}

static void make_room_for_session(struct sessions *s, const struct token_id *token)
{
        struct kept_session *oldest = NULL;
        size_t of_token = 0;

        for (struct kept_session *k = get_oldest_session(s); k; k = get_next_session(k)) {
                if (!is_same_token(&k->token, token))
                        continue;
                of_token++;
                if (!oldest)
                        oldest = k;
        }
        if (of_token >= LIMIT_SESSIONS_PER_TOKEN)
                end_session(s, oldest, END_EVICTED);
        else if (s->table.count >= LIMIT_SESSIONS)
                end_session(s, get_oldest_session(s), END_EVICTED);
}

static void end_expired_sessions(struct sessions *s, int64_t now_ns)
{
        struct kept_session *k, *next;

        for (k = get_oldest_session(s); k; k = next) {
                next = get_next_session(k);
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
        lru_table_insert(&s->table, &k->lru, keyed_hash(k->digest, SHA256_BYTES));
        metric_set(&open_sessions, (int64_t)s->table.count);
        pthread_mutex_unlock(&s->lock);
        return ST_OK;
}

static bool has_session_digest(const struct lru_entry *entry, const void *digest)
{
        return memcmp(((const struct kept_session *)entry)->digest, digest, SHA256_BYTES) == 0;
}

static struct kept_session *get_session(const struct sessions *s, const uint8_t digest[static SHA256_BYTES])
{
        return (struct kept_session *)lru_table_find(&s->table, keyed_hash(digest, SHA256_BYTES), has_session_digest,
                                                     digest);
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
                lru_table_touch(&s->table, &k->lru);
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
        for (k = get_oldest_session(s); k; k = next) {
                next = get_next_session(k);
                if (!tokens_has(tokens, &k->token))
                        end_session(s, k, END_REVOKED);
        }
        pthread_mutex_unlock(&s->lock);
}
