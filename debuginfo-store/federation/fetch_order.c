/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo-store/federation/fetch_order.h"

#include <assert.h>
#include <stdlib.h>

#include "common/limits.h"

void fetch_order_init(struct fetch_order *o)
{
        *o = (struct fetch_order){ 0 };
        TAILQ_INIT(&o->senders);
}

void fetch_order_deinit(struct fetch_order *o)
{
        struct fetch_sender *s;

        while ((s = TAILQ_FIRST(&o->senders))) {
                TAILQ_REMOVE(&o->senders, s, next);
                free(s);
        }
}

static struct fetch_sender *find_fetch_sender(const struct fetch_order *o, uint32_t number)
{
        struct fetch_sender *s;

        TAILQ_FOREACH(s, &o->senders, next)
        if (s->number == number)
                break;
        return s;
}

/* NULL: without memory. */
static struct fetch_sender *open_fetch_sender(struct fetch_order *o, uint32_t number)
{
        struct fetch_sender *s = find_fetch_sender(o, number);

        if (!s && o->sender_count >= LIMIT_FETCH_SENDERS) {
                number = 0;
                s = find_fetch_sender(o, number);
        }
        if (s)
                return s;
        s = calloc(1, sizeof *s);
        if (!s)
                return NULL;
        s->number = number;
        TAILQ_INIT(&s->entries);
        TAILQ_INSERT_TAIL(&o->senders, s, next);
        o->sender_count++;
        return s;
}

static void close_empty_sender(struct fetch_order *o, struct fetch_sender *s)
{
        if (s->count)
                return;
        TAILQ_REMOVE(&o->senders, s, next);
        o->sender_count--;
        free(s);
}

bool fetch_order_add(struct fetch_order *o, struct fetch_entry *entry)
{
        struct fetch_sender *s = open_fetch_sender(o, entry->sender);

        if (!s || s->count >= LIMIT_FETCH_SENDER_IDS)
                return false;
        entry->sender = s->number;
        TAILQ_INSERT_TAIL(&s->entries, entry, next_queued);
        s->count++;
        return true;
}

void fetch_order_remove(struct fetch_order *o, struct fetch_entry *entry)
{
        struct fetch_sender *s = find_fetch_sender(o, entry->sender);

        assert(s && s->count);
        TAILQ_REMOVE(&s->entries, entry, next_queued);
        s->count--;
        close_empty_sender(o, s);
}

struct fetch_entry *fetch_order_take(struct fetch_order *o)
{
        struct fetch_sender *s = TAILQ_FIRST(&o->senders);
        struct fetch_entry *first, *entry;

        if (!s)
                return NULL;
        TAILQ_REMOVE(&o->senders, s, next); /* its next turn is after those of all others */
        TAILQ_INSERT_TAIL(&o->senders, s, next);
        first = TAILQ_FIRST(&s->entries);
        TAILQ_FOREACH(entry, &s->entries, next_queued)
        if (entry->weight > first->weight)
                first = entry;
        fetch_order_remove(o, first);
        return first;
}

struct fetch_entry *fetch_order_find_excess(const struct fetch_order *o, uint32_t sender)
{
        const struct fetch_sender *own = find_fetch_sender(o, sender), *longest = NULL, *s;

        TAILQ_FOREACH(s, &o->senders, next)
        if (!longest || s->count > longest->count)
                longest = s;
        return longest && longest->count > (own ? own->count : 0) + 1 ? TAILQ_LAST(&longest->entries, fetch_entries)
                                                                      : NULL;
}
