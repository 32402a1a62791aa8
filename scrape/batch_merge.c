/* SPDX-License-Identifier: Apache-2.0 */
#include "scrape/batch_merge.h"

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

/* Move the pending profile to *ret. Caller holds b->lock. */
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
        uint32_t lost = 0;
        struct error err;

        if (sender_put_profile(b->sender, p, &err)) {
                lost = p->samples.count;
                log_error("scrape", "%s lost: %s", COUNTED(lost, "sample", "samples"), err.text);
        }
        profile_deinit(p);
        pthread_mutex_lock(&b->lock);
        b->lost_samples += lost;
        b->sending--;
        pthread_mutex_unlock(&b->lock);
}

/* False when a limit is reached or memory is exhausted: no sample of p is added. Caller holds b->lock. */
static bool merge_into_pending(struct batch_merge *b, const struct profile *p)
{
        uint32_t before;

        if (!b->count) {
                if (profile_init(&b->pending, LIMIT_PROFILE_MEMORY_BYTES, NULL))
                        return false;
                b->began_ns = monotonic_ns();
        }
        before = b->pending.samples.count;
        if (!profile_merge(&b->pending, p, NULL)) {
                b->count++;
                return true;
        }
        if (b->count)
                b->pending.samples.count = before; /* table entries of p may stay: they are harmless */
        else
                profile_deinit(&b->pending);
        return false;
}

enum status batch_merge_add(struct batch_merge *b, const struct profile *p, struct error *err)
{
        bool is_merged = false, is_full = false;
        struct profile full;

        if (is_mergeable(p)) {
                pthread_mutex_lock(&b->lock);
                is_merged = merge_into_pending(b, p);
                /* After a failure the next profile would fail for the same reason. */
                if (!is_merged || b->count == MERGED_PROFILES || b->pending.samples.count >= MERGED_SAMPLES)
                        is_full = take_pending(b, &full);
                pthread_mutex_unlock(&b->lock);
        }
        if (is_full)
                send_merged(b, &full);
        return is_merged ? ST_OK : sender_put_profile(b->sender, p, err);
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

bool batch_merge_has_pending(struct batch_merge *b)
{
        bool has;

        pthread_mutex_lock(&b->lock);
        has = b->count || b->sending;
        pthread_mutex_unlock(&b->lock);
        return has;
}
