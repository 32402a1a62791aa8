/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/debounce.h"

#include <assert.h>
#include <stdlib.h>

#include "common/memory/array.h"

void debounce_deinit(struct debounce *d)
{
        free(d->items);
        *d = (struct debounce){ 0 };
}

static struct debounce_item *find_debounce_item(const struct debounce *d, const struct build_id *id)
{
        for (size_t i = 0; i < d->count; i++)
                if (build_id_equal(&d->items[i].id, id))
                        return &d->items[i];
        return NULL;
}

bool debounce_contains(const struct debounce *d, const struct build_id *id)
{
        return find_debounce_item(d, id) != NULL;
}

enum status debounce_add(struct debounce *d, const struct build_id *id, int64_t now_ns)
{
        struct debounce_item *item = find_debounce_item(d, id);

        if (item) {
                item->last_ns = now_ns;
                return ST_OK;
        }
        if (!array_reserve(&d->items, &d->capacity, d->count))
                return ST_NO_MEMORY;
        d->items[d->count++] = (struct debounce_item){ *id, now_ns, now_ns };
        return ST_OK;
}

static void remove_debounce_item(struct debounce *d, struct debounce_item *item)
{
        assert(item >= d->items && item < d->items + d->count);
        *item = d->items[--d->count];
}

void debounce_remove(struct debounce *d, const struct build_id *id)
{
        struct debounce_item *item = find_debounce_item(d, id);

        if (item)
                remove_debounce_item(d, item);
}

static int64_t compute_due_ns(const struct debounce_item *item)
{
        int64_t quiet = item->last_ns + DEBOUNCE_QUIET_NS, most = item->first_ns + DEBOUNCE_MAX_NS;

        return quiet < most ? quiet : most;
}

int64_t debounce_next_due_ns(const struct debounce *d)
{
        int64_t ret = 0;

        for (size_t i = 0; i < d->count; i++)
                if (!ret || compute_due_ns(&d->items[i]) < ret)
                        ret = compute_due_ns(&d->items[i]);
        return ret;
}

bool debounce_take_due(struct debounce *d, int64_t now_ns, struct build_id *ret)
{
        for (size_t i = 0; i < d->count; i++) {
                if (compute_due_ns(&d->items[i]) > now_ns)
                        continue;
                *ret = d->items[i].id;
                remove_debounce_item(d, &d->items[i]);
                return true;
        }
        return false;
}
