/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/id_set.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory/array.h"

void id_set_deinit(struct id_set *s)
{
        free(s->items);
        *s = (struct id_set){ 0 };
}

static size_t find_id_index(const struct id_set *s, const struct build_id *id)
{
        size_t i = 0;

        while (i < s->count && !build_id_equal(&s->items[i], id))
                i++;
        return i;
}

bool id_set_contains(const struct id_set *s, const struct build_id *id)
{
        return find_id_index(s, id) < s->count;
}

enum status id_set_add(struct id_set *s, const struct build_id *id)
{
        if (id_set_contains(s, id))
                return ST_OK;
        if (!array_reserve(&s->items, &s->capacity, s->count))
                return ST_NO_MEMORY;
        assert(s->count < s->capacity);
        s->items[s->count++] = *id;
        return ST_OK;
}

void id_set_remove(struct id_set *s, const struct build_id *id)
{
        size_t i = find_id_index(s, id);

        if (i == s->count)
                return;
        memmove(&s->items[i], &s->items[i + 1], (s->count - i - 1) * sizeof *s->items);
        s->count--;
}
