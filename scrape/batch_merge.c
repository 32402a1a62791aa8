/* SPDX-License-Identifier: Apache-2.0 */
#include "scrape/batch_merge.h"

#include <assert.h>

#include "common/clock.h"
#include "common/limits.h"
#include "common/log.h"
#include "profile-formats/profile_copy.h"

#define MERGED_PROFILES 20          /* in one batch, */
#define MERGED_SAMPLES 20000        /* unless it has so many samples before */
#define MERGED_LABEL_KEYS 48        /* distinct keys of a profile that is joined with others, */
#define MERGED_LABEL_KEY_BYTES 3072 /* and their names together */

_Static_assert(MERGED_PROFILES *MERGED_LABEL_KEYS <= LIMIT_BATCH_LABEL_KEYS, "a service takes what was joined");
_Static_assert(MERGED_PROFILES *MERGED_LABEL_KEY_BYTES <= LIMIT_BATCH_LABEL_KEY_BYTES, "and its names");

void batch_merge_init(struct batch_merge *b, struct sender *sender)
{
        *b = (struct batch_merge){ .sender = sender };
        pthread_mutex_init(&b->lock, NULL);
}

void batch_merge_deinit(struct batch_merge *b)
{
        if (b->count)
                profile_deinit(&b->pending);
        pthread_mutex_destroy(&b->lock);
}

/* Whether a profile has few labels and samples: its share of a batch, or less. */
static bool is_mergeable(const struct profile *p)
{
        uint32_t keys[MERGED_LABEL_KEYS];
        size_t count = 0, bytes = 0;

        if (p->samples.count >= MERGED_SAMPLES)
                return false;
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

/* Called with the lock held: take what waits away. */
static bool take_pending(struct batch_merge *b, struct profile *ret)
{
        if (!b->count)
                return false;
        *ret = b->pending;
        b->count = 0;
        b->sending++;
        return true;
}

static void send_merged(struct batch_merge *b, struct profile *p)
{
        struct error err;

        if (sender_put_profile(b->sender, p, &err))
                log_error("scrape", "%u samples are lost: %s", p->samples.count, err.text);
        profile_deinit(p);
        pthread_mutex_lock(&b->lock);
        b->sending--;
        pthread_mutex_unlock(&b->lock);
}

/* Called with the lock held. On failure nothing of p is left. */
static enum status merge_into_pending(struct batch_merge *b, const struct profile *p, struct error *err)
{
        uint32_t before;
        enum status st;

        if (!b->count) {
                st = profile_init(&b->pending, LIMIT_PROFILE_MEMORY_BYTES, err);
                if (st)
                        return st;
                b->began_ns = monotonic_ns();
        }
        before = b->pending.samples.count;
        st = profile_merge(&b->pending, p, err);
        if (!st) {
                b->count++;
                return ST_OK;
        }
        if (b->count)
                b->pending.samples.count = before; /* other entries may stay: only samples count */
        else
                profile_deinit(&b->pending);
        return st;
}

enum status batch_merge_add(struct batch_merge *b, const struct profile *p, struct error *err)
{
        struct profile full;
        bool is_full;
        enum status st;

        if (!is_mergeable(p))
                return sender_put_profile(b->sender, p, err);
        pthread_mutex_lock(&b->lock);
        st = merge_into_pending(b, p, err);
        is_full = (b->count == MERGED_PROFILES || (b->count && b->pending.samples.count >= MERGED_SAMPLES)) &&
                  take_pending(b, &full);
        pthread_mutex_unlock(&b->lock);
        if (is_full)
                send_merged(b, &full);
        return st;
}

int64_t batch_merge_flush(struct batch_merge *b, int64_t min_age_ns)
{
        struct profile full;
        int64_t due = INT64_MAX;
        bool is_due;

        pthread_mutex_lock(&b->lock);
        is_due = b->count && monotonic_ns() - b->began_ns >= min_age_ns && take_pending(b, &full);
        if (b->count)
                due = b->began_ns + min_age_ns;
        pthread_mutex_unlock(&b->lock);
        if (is_due)
                send_merged(b, &full);
        return due;
}

bool batch_merge_has_pending(struct batch_merge *b)
{
        bool has;

        pthread_mutex_lock(&b->lock);
        has = b->count || b->sending;
        pthread_mutex_unlock(&b->lock);
        return has;
}
