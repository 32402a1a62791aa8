/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/clock.h"
#include "profile-store/store_internal.h"

static bool set_failure(int64_t *since, char *text, size_t size, enum status st, const struct error *err)
{
        if (!st) {
                *since = 0;
                text[0] = 0;
                return false;
        }
        snprintf(text, size, "%s", err->text);
        if (*since)
                return false;
        *since = wall_clock_ns();
        return true;
}

bool health_set_flush(struct profile_store *s, enum status st, const struct error *err)
{
        struct profile_store_health *h = &s->health;
        bool first;

        pthread_mutex_lock(&s->health_lock);
        first = set_failure(&h->flush_failing_since, h->flush_failure, sizeof h->flush_failure, st, err);
        pthread_mutex_unlock(&s->health_lock);
        return first;
}

bool health_set_sync(struct profile_store *s, enum status st, const struct error *err)
{
        struct profile_store_health *h = &s->health;
        bool first;

        pthread_mutex_lock(&s->health_lock);
        first = set_failure(&h->sync_failing_since, h->sync_failure, sizeof h->sync_failure, st, err);
        pthread_mutex_unlock(&s->health_lock);
        return first;
}

void health_set_quarantine(struct profile_store *s, struct quarantine_totals totals, const char *reason)
{
        struct profile_store_health *h = &s->health;

        pthread_mutex_lock(&s->health_lock);
        h->quarantined_batches = totals.batches;
        h->quarantined_bytes = totals.bytes;
        if (reason)
                snprintf(h->quarantine_reason, sizeof h->quarantine_reason, "%s", reason);
        pthread_mutex_unlock(&s->health_lock);
}

void profile_store_health(struct profile_store *s, struct profile_store_health *ret)
{
        pthread_mutex_lock(&s->health_lock);
        *ret = s->health;
        pthread_mutex_unlock(&s->health_lock);
        ret->queued_bytes = atomic_load(&s->head_bytes);
        ret->queue_limit_bytes = s->options.max_queued_bytes;
        ret->queue_full = ret->queued_bytes >= ret->queue_limit_bytes;
}
