/* SPDX-License-Identifier: Apache-2.0 */
#include "server/announced.h"

static struct announced_file *find(struct announced *a, const struct build_id *id)
{
        for (size_t i = 0; i < ANNOUNCED_MAX; i++)
                if (a->files[i].build_id.size && build_id_equal(&a->files[i].build_id, id))
                        return &a->files[i];
        return NULL;
}

void announced_put(struct announced *a, const struct announced_file *file)
{
        struct announced_file *at;

        pthread_mutex_lock(&a->lock);
        at = find(a, &file->build_id);
        if (!at) {
                at = &a->files[a->next];
                a->next = (a->next + 1) % ANNOUNCED_MAX;
        }
        *at = *file;
        pthread_mutex_unlock(&a->lock);
}

void announced_get(struct announced *a, const struct build_id *id, struct announced_file *ret)
{
        const struct announced_file *found;

        pthread_mutex_lock(&a->lock);
        found = find(a, id);
        *ret = found ? *found : (struct announced_file){ .build_id = *id };
        pthread_mutex_unlock(&a->lock);
}
