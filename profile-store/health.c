/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/clock.h"
#include "profile-store/store_internal.h"

static void set_failure(int64_t *since, char *text, size_t size, enum status st, const struct error *err)
{
        if (!st) {
                *since = 0;
                text[0] = 0;
                return;
        }
        if (!*since)
                *since = wall_clock_ns();
        snprintf(text, size, "%s", err->text);
}

void health_set_flush(struct profile_store *s, enum status st, const struct error *err)
{
        struct profile_store_health *h = &s->health;

        pthread_mutex_lock(&s->health_lock);
        set_failure(&h->flush_failing_since, h->flush_failure, sizeof h->flush_failure, st, err);
        pthread_mutex_unlock(&s->health_lock);
}

void health_set_sync(struct profile_store *s, enum status st, const struct error *err)
{
        struct profile_store_health *h = &s->health;

        pthread_mutex_lock(&s->health_lock);
        set_failure(&h->sync_failing_since, h->sync_failure, sizeof h->sync_failure, st, err);
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
