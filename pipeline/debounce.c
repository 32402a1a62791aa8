/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/debounce.h"

#include <assert.h>
#include <stdlib.h>

#include "common/array.h"

void debounce_deinit(struct debounce *l)
{
        free(l->items);
        *l = (struct debounce){ 0 };
}

static struct debounce_item *find_debounce_item(const struct debounce *l, const struct build_id *id)
{
        for (size_t i = 0; i < l->count; i++)
                if (build_id_equal(&l->items[i].id, id))
                        return &l->items[i];
        return NULL;
}

bool debounce_contains(const struct debounce *l, const struct build_id *id)
{
        return find_debounce_item(l, id) != NULL;
}

enum status debounce_add(struct debounce *l, const struct build_id *id, int64_t now_ns)
{
        struct debounce_item *item = find_debounce_item(l, id);

        if (item) {
                item->last_ns = now_ns;
                return ST_OK;
        }
        if (!array_reserve(&l->items, &l->capacity, l->count))
                return ST_NO_MEMORY;
        l->items[l->count++] = (struct debounce_item){ *id, now_ns, now_ns };
        return ST_OK;
}

static void remove_debounce_item(struct debounce *l, struct debounce_item *item)
{
        assert(item >= l->items && item < l->items + l->count);
        *item = l->items[--l->count];
}

void debounce_remove(struct debounce *l, const struct build_id *id)
{
        struct debounce_item *item = find_debounce_item(l, id);

        if (item)
                remove_debounce_item(l, item);
}

static int64_t compute_due_ns(const struct debounce_item *item)
{
        int64_t quiet = item->last_ns + DEBOUNCE_QUIET_NS, most = item->first_ns + DEBOUNCE_MAX_NS;

        return quiet < most ? quiet : most;
}

int64_t debounce_next_due_ns(const struct debounce *l)
{
        int64_t ret = 0;

        for (size_t i = 0; i < l->count; i++)
                if (!ret || compute_due_ns(&l->items[i]) < ret)
                        ret = compute_due_ns(&l->items[i]);
        return ret;
}

bool debounce_take_due(struct debounce *l, int64_t now_ns, struct build_id *ret)
{
        for (size_t i = 0; i < l->count; i++) {
                if (compute_due_ns(&l->items[i]) > now_ns)
                        continue;
                *ret = l->items[i].id;
                remove_debounce_item(l, &l->items[i]);
                return true;
        }
        return false;
}
