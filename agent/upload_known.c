/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/upload_known.h"

#include <stdlib.h>

#include "common/array.h"
#include "common/limits.h"

#define SECOND_NS INT64_C(1000000000)
#define DAY_NS (86400 * SECOND_NS)
#define FIRST_PAUSE_NS (60 * SECOND_NS)

void upload_known_deinit(struct upload_known *k)
{
        id_table_deinit(&k->ids);
        free(k->entries);
        *k = (struct upload_known){ 0 };
}

static bool add(struct upload_known *k, const struct build_id *id)
{
        if (k->count >= LIMIT_AGENT_UPLOAD_IDS) {
                id_table_deinit(&k->ids);
                k->count = 0;
        }
        if (!array_reserve(&k->entries, &k->capacity, k->count))
                return false;
        if (!id_table_put(&k->ids, id->bytes, id->size, (uint32_t)k->count))
                return false;
        k->entries[k->count++] = (struct upload_known_entry){ .not_before_ns = INT64_MAX };
        return true;
}

bool upload_known_begin(struct upload_known *k, const struct build_id *id, int64_t now_ns)
{
        uint32_t i;

        if (!id_table_find(&k->ids, id->bytes, id->size, &i))
                return add(k, id);
        if (k->entries[i].not_before_ns > now_ns)
                return false;
        k->entries[i].not_before_ns = INT64_MAX;
        return true;
}

void upload_known_end(struct upload_known *k, const struct build_id *id, enum upload_end end, int64_t now_ns)
{
        struct upload_known_entry *e;
        int64_t pause;
        uint32_t i;

        if (!id_table_find(&k->ids, id->bytes, id->size, &i)) /* forgotten meanwhile */
                return;
        e = &k->entries[i];
        if (end != UPLOAD_END_FAILED)
                e->failures = 0;
        pause = end == UPLOAD_END_LATER ? 0 : end == UPLOAD_END_SETTLED ? DAY_NS : FIRST_PAUSE_NS << e->failures;
        if (end == UPLOAD_END_FAILED && e->failures < 10)
                e->failures++;
        e->not_before_ns = now_ns + (pause < DAY_NS ? pause : DAY_NS);
}
