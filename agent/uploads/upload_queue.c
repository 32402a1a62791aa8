/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/uploads/upload_queue.h"

#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/memory/array.h"

void queued_upload_deinit(struct queued_upload *f)
{
        if (f->fd >= 0)
                close(f->fd);
        free(f->item.path);
        *f = (struct queued_upload){ .fd = -1 };
}

void upload_queue_deinit(struct upload_queue *q)
{
        for (size_t i = 0; i < q->count; i++)
                queued_upload_deinit(&q->items[i]);
        free(q->items);
        *q = (struct upload_queue){ 0 };
}

bool upload_queue_add(struct upload_queue *q, struct queued_upload *f)
{
        if (!array_reserve(&q->items, &q->capacity, q->count)) {
                queued_upload_deinit(f);
                return false;
        }
        q->items[q->count++] = *f;
        *f = (struct queued_upload){ .fd = -1 };
        return true;
}

/* Whether a has more samples per byte than b. */
static bool is_more_urgent(const struct queued_upload *a, const struct queued_upload *b)
{
        return (unsigned __int128)a->samples * b->item.size_bytes > (unsigned __int128)b->samples * a->item.size_bytes;
}

void upload_queue_remove(struct upload_queue *q, size_t index, struct queued_upload *ret)
{
        assert(index < q->count);
        *ret = q->items[index];
        q->items[index] = q->items[--q->count];
}

bool upload_queue_take(struct upload_queue *q, struct queued_upload *ret)
{
        size_t next = 0;

        if (!q->count)
                return false;
        for (size_t i = 1; i < q->count; i++)
                if (is_more_urgent(&q->items[i], &q->items[next]))
                        next = i;
        upload_queue_remove(q, next, ret);
        return true;
}
