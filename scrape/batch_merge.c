/* SPDX-License-Identifier: Apache-2.0 */
#include "scrape/batch_merge.h"

#include <assert.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/limits.h"
#include "common/program/log.h"
#include "common/text/number_text.h"
#include "profile-formats/profile_copy.h"

/* A batch is complete when it has either number. */
#define MERGED_PROFILES 20
#define MERGED_SAMPLES 20000

#define MERGED_LABEL_KEYS 48        /* distinct label keys of a profile that may be merged */
#define MERGED_LABEL_KEY_BYTES 3072 /* total size of those keys */

/* Half of the share, since the tables of the merged profile may double the memory. */
#define MERGED_BYTES (LIMIT_PROFILE_MEMORY_BYTES / MERGED_PROFILES / 2)

_Static_assert(MERGED_PROFILES *MERGED_LABEL_KEYS <= LIMIT_BATCH_LABEL_KEYS, "the service accepts a merged batch");
_Static_assert(MERGED_PROFILES *MERGED_LABEL_KEY_BYTES <= LIMIT_BATCH_LABEL_KEY_BYTES, "likewise");

struct merged_batch {
        STAILQ_ENTRY(merged_batch) next;
        struct profile profile;
        unsigned count;      /* profiles in it */
        int64_t began_ns;    /* when the first was added */
        int64_t complete_ns; /* when it was held */
};

static struct merged_batch *create_merged_batch(struct error *err)
{
        struct merged_batch *m = calloc(1, sizeof *m);

        if (!m) {
                error_no_memory(err);
        } else if (profile_init(&m->profile, LIMIT_PROFILE_MEMORY_BYTES, err)) {
                free(m);
                m = NULL;
        } else {
                m->began_ns = monotonic_ns();
        }
        return m;
}

static void destroy_merged_batch(struct merged_batch *m)
{
        if (m)
                profile_deinit(&m->profile);
        free(m);
}

/* Returns the number of samples that were discarded. */
static uint64_t discard_batches(struct batch_merge *b)
{
        uint64_t samples = b->pending ? b->pending->profile.samples.count : 0;

        destroy_merged_batch(b->pending);
        b->pending = NULL;
        for (struct merged_batch *m; (m = STAILQ_FIRST(&b->held));) {
                STAILQ_REMOVE_HEAD(&b->held, next);
                samples += m->profile.samples.count;
                destroy_merged_batch(m);
        }
        return samples;
}

void batch_merge_init(struct batch_merge *b, struct sender *sender, bool holds)
{
        *b = (struct batch_merge){ .sender = sender, .holds = holds, .term = !holds };
        STAILQ_INIT(&b->held);
        pthread_mutex_init(&b->lock, NULL);
}

void batch_merge_deinit(struct batch_merge *b)
{
        (void)discard_batches(b);
        pthread_mutex_destroy(&b->lock);
}

static bool has_few_label_keys(const struct profile *p)
{
        uint32_t keys[MERGED_LABEL_KEYS];
        size_t count = 0, bytes = 0;

        for (uint32_t i = 0; i < p->labels.count; i++) {
                uint32_t key = p->labels.items[i].key;
                size_t k = 0;

                while (k < count && keys[k] != key)
                        k++;
                if (k < count)
                        continue;
                bytes += p->strings.items[key].size;
                if (count == MERGED_LABEL_KEYS || bytes > MERGED_LABEL_KEY_BYTES)
                        return false;
                keys[count++] = key;
        }
        return true;
}

static bool is_share_of(uint32_t count, uint32_t limit)
{
        return count <= limit / MERGED_PROFILES;
}

/* Whether a profile is within its share of every limit of a batch. */
static bool is_mergeable(const struct profile *p)
{
        return p->samples.count < MERGED_SAMPLES && p->arena.used <= MERGED_BYTES &&
               is_share_of(p->types.count, LIMIT_PROFILE_TYPES) && is_share_of(p->strings.count, LIMIT_STRINGS) &&
               is_share_of(p->mappings.count, LIMIT_LOCATIONS) && is_share_of(p->locations.count, LIMIT_LOCATIONS) &&
               is_share_of(p->stacks.count, LIMIT_SAMPLES) && has_few_label_keys(p);
}

/* End the pending batch: it is held, or else returned, to be sent. Caller holds b->lock. */
static struct merged_batch *complete_pending(struct batch_merge *b)
{
        struct merged_batch *m = b->pending;

        b->pending = NULL;
        if (!m)
                return NULL;
        if (b->holds) {
                m->complete_ns = monotonic_ns();
                STAILQ_INSERT_TAIL(&b->held, m, next);
                return NULL;
        }
        b->sending++;
        return m;
}

static void send_merged(struct batch_merge *b, struct merged_batch *m)
{
        uint32_t lost = 0;
        struct error err;

        if (sender_put_profile(b->sender, &m->profile, &err)) {
                lost = m->profile.samples.count;
                log_error("scrape", "%s lost: %s", COUNTED(lost, "sample", "samples"), err.text);
        }
        destroy_merged_batch(m);
        pthread_mutex_lock(&b->lock);
        b->lost_samples += lost;
        b->sending--;
        pthread_mutex_unlock(&b->lock);
}

/* After a failure, such as a limit that is reached, no sample of p is added. Caller holds b->lock. */
static enum status merge_into_pending(struct batch_merge *b, const struct profile *p, struct error *err)
{
        struct merged_batch *m = b->pending ? b->pending : create_merged_batch(err);
        uint32_t before = m ? m->profile.samples.count : 0;
        enum status st = m ? profile_merge(&m->profile, p, err) : ST_NO_MEMORY;

        if (!st) {
                m->count++;
                b->pending = m;
        } else if (b->pending) {
                m->profile.samples.count = before; /* table entries of p may stay: they are harmless */
        } else {
                destroy_merged_batch(m);
        }
        return st;
}

/*
 * After a failure it is in no batch: without `holds` it may still be sent alone.
 * @param full_ret  set to a batch that is to be sent. Caller holds b->lock.
 */
static enum status add_to_batches(struct batch_merge *b, const struct profile *p, struct merged_batch **full_ret,
                                  struct error *err)
{
        enum status st = ST_TOO_BIG;

        if (is_mergeable(p)) {
                st = merge_into_pending(b, p, err);
                /* After a failure the next profile would fail for the same reason. */
                if (st || b->pending->count == MERGED_PROFILES || b->pending->profile.samples.count >= MERGED_SAMPLES)
                        *full_ret = complete_pending(b);
        }
        if (!st || !b->holds)
                return st;
        (void)complete_pending(b);
        st = merge_into_pending(b, p, err); /* alone in its batch */
        (void)complete_pending(b);
        return st;
}

enum status batch_merge_add(struct batch_merge *b, const struct profile *p, uint64_t term, struct error *err)
{
        struct merged_batch *full = NULL;
        bool is_over;
        enum status st = ST_BUSY;

        pthread_mutex_lock(&b->lock);
        is_over = !term || term != b->term;
        if (!is_over)
                st = add_to_batches(b, p, &full, err);
        pthread_mutex_unlock(&b->lock);
        if (full)
                send_merged(b, full);
        if (is_over)
                return error_set(err, ST_BUSY, "the lease ended during the scrape");
        return st && !b->holds ? sender_put_profile(b->sender, p, err) : st;
}

int64_t batch_merge_flush(struct batch_merge *b, int64_t min_age_ns)
{
        struct merged_batch *full = NULL;
        int64_t due = INT64_MAX;

        pthread_mutex_lock(&b->lock);
        if (b->pending && monotonic_ns() - b->pending->began_ns >= min_age_ns)
                full = complete_pending(b);
        if (b->pending)
                due = b->pending->began_ns + min_age_ns;
        pthread_mutex_unlock(&b->lock);
        if (full)
                send_merged(b, full);
        return due;
}

/* ---- terms ---- */

void batch_merge_begin_term(struct batch_merge *b, uint64_t term)
{
        pthread_mutex_lock(&b->lock);
        assert(b->holds && !b->term && term);
        b->term = term;
        pthread_mutex_unlock(&b->lock);
}

void batch_merge_end_term(struct batch_merge *b)
{
        pthread_mutex_lock(&b->lock);
        assert(b->holds);
        b->term = 0;
        b->discarded_samples += discard_batches(b);
        pthread_mutex_unlock(&b->lock);
}

static struct merged_batch *take_confirmed(struct batch_merge *b, int64_t until_ns)
{
        struct merged_batch *m;

        pthread_mutex_lock(&b->lock);
        m = STAILQ_FIRST(&b->held);
        if (m && m->complete_ns > until_ns)
                m = NULL;
        if (m) {
                STAILQ_REMOVE_HEAD(&b->held, next);
                b->sending++;
        }
        pthread_mutex_unlock(&b->lock);
        return m;
}

void batch_merge_confirm(struct batch_merge *b, int64_t until_ns)
{
        for (struct merged_batch *m; (m = take_confirmed(b, until_ns));)
                send_merged(b, m);
}

/* ---- counts ---- */

uint64_t batch_merge_count_lost(struct batch_merge *b)
{
        struct sender_stats stats;
        uint64_t lost;

        sender_get_stats(b->sender, &stats);
        pthread_mutex_lock(&b->lock);
        lost = b->lost_samples;
        pthread_mutex_unlock(&b->lock);
        return lost + stats.lost_samples;
}

uint64_t batch_merge_count_discarded(struct batch_merge *b)
{
        uint64_t discarded;

        pthread_mutex_lock(&b->lock);
        discarded = b->discarded_samples;
        pthread_mutex_unlock(&b->lock);
        return discarded;
}

bool batch_merge_has_pending(struct batch_merge *b)
{
        bool has;

        pthread_mutex_lock(&b->lock);
        has = b->pending || !STAILQ_EMPTY(&b->held) || b->sending;
        pthread_mutex_unlock(&b->lock);
        return has;
}
