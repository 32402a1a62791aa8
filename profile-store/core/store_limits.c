/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/core/store_limits.h"

#include <assert.h>
#include <stdlib.h>

#include "profile-store/core/profile_store_internal.h"

struct store_limits *store_limits_create(const struct sample_limits *limits, uint16_t generation)
{
        struct store_limits *l = calloc(1, sizeof *l);

        if (!l)
                return NULL;
        assert(limits->rule_count <= LABEL_RULES_MAX);
        atomic_init(&l->references, 1);
        l->generation = generation;
        l->limits = *limits;
        return l;
}

struct store_limits *store_limits_acquire(struct profile_store *s)
{
        struct store_limits *l;

        pthread_mutex_lock(&s->lock);
        l = s->limits;
        atomic_fetch_add(&l->references, 1);
        pthread_mutex_unlock(&s->lock);
        return l;
}

void store_limits_release(struct store_limits *l)
{
        if (!l || atomic_fetch_sub(&l->references, 1) > 1)
                return;
        if (l->release)
                l->release(l->context);
        free(l);
}

enum status profile_store_set_limits(struct profile_store *s, const struct sample_limits *limits,
                                     void (*release)(void *context), void *context, struct error *err)
{
        struct store_limits *fresh = store_limits_create(limits, 0), *old;

        if (!fresh)
                return error_no_memory(err);
        fresh->release = release;
        fresh->context = context;
        pthread_mutex_lock(&s->lock);
        old = s->limits;
        fresh->generation = (uint16_t)(old->generation + 1);
        s->limits = fresh;
        s->has_new_limits = true;
        pthread_cond_signal(&s->maintenance_wake);
        pthread_mutex_unlock(&s->lock);
        store_limits_release(old);
        return ST_OK;
}
