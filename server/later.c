/* SPDX-License-Identifier: Apache-2.0 */
#include "server/later.h"

#include <stdlib.h>

#include "common/array.h"

void later_deinit(struct later *l)
{
        free(l->items);
        *l = (struct later){ 0 };
}

static struct later_item *find(const struct later *l, const struct build_id *id)
{
        for (size_t i = 0; i < l->count; i++)
                if (build_id_equal(&l->items[i].id, id))
                        return &l->items[i];
        return NULL;
}

bool later_has(const struct later *l, const struct build_id *id)
{
        return find(l, id) != NULL;
}

enum status later_add(struct later *l, const struct build_id *id, int64_t now_ns)
{
        struct later_item *item = find(l, id);

        if (item) {
                item->last_ns = now_ns;
                return ST_OK;
        }
        if (!array_reserve(&l->items, &l->capacity, l->count))
                return ST_NO_MEMORY;
        l->items[l->count++] = (struct later_item){ *id, now_ns, now_ns };
        return ST_OK;
}

static void take_out(struct later *l, struct later_item *item)
{
        *item = l->items[--l->count];
}

void later_remove(struct later *l, const struct build_id *id)
{
        struct later_item *item = find(l, id);

        if (item)
                take_out(l, item);
}

static int64_t due_ns(const struct later_item *item)
{
        int64_t quiet = item->last_ns + LATER_QUIET_NS, most = item->first_ns + LATER_MOST_NS;

        return quiet < most ? quiet : most;
}

int64_t later_due_ns(const struct later *l)
{
        int64_t ret = 0;

        for (size_t i = 0; i < l->count; i++)
                if (!ret || due_ns(&l->items[i]) < ret)
                        ret = due_ns(&l->items[i]);
        return ret;
}

bool later_take(struct later *l, int64_t now_ns, struct build_id *ret)
{
        for (size_t i = 0; i < l->count; i++) {
                if (due_ns(&l->items[i]) > now_ns)
                        continue;
                *ret = l->items[i].id;
                take_out(l, &l->items[i]);
                return true;
        }
        return false;
}
