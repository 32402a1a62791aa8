/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/uploads/upload_history.h"

#include <stdlib.h>

#include "common/memory/array.h"
#include "common/limits.h"

#define SECOND_NS INT64_C(1000000000)
#define DAY_NS (86400 * SECOND_NS)
#define FIRST_PAUSE_NS (60 * SECOND_NS)

void upload_history_deinit(struct upload_history *h)
{
        id_table_deinit(&h->ids);
        free(h->entries);
        *h = (struct upload_history){ 0 };
}

static bool add_history_entry(struct upload_history *h, const struct build_id *id)
{
        if (h->count >= LIMIT_AGENT_UPLOAD_IDS) {
                id_table_deinit(&h->ids);
                h->count = 0;
        }
        if (!array_reserve(&h->entries, &h->capacity, h->count))
                return false;
        if (!id_table_put(&h->ids, id->bytes, id->size, (uint32_t)h->count))
                return false;
        h->entries[h->count++] = (struct upload_history_entry){ .not_before_ns = INT64_MAX };
        return true;
}

bool upload_history_is_due(const struct upload_history *h, const struct build_id *id, int64_t now_ns)
{
        uint32_t i;

        return !id_table_find(&h->ids, id->bytes, id->size, &i) || h->entries[i].not_before_ns <= now_ns;
}

bool upload_history_begin(struct upload_history *h, const struct build_id *id, int64_t now_ns)
{
        uint32_t i;

        if (!id_table_find(&h->ids, id->bytes, id->size, &i))
                return add_history_entry(h, id);
        if (h->entries[i].not_before_ns > now_ns)
                return false;
        h->entries[i].not_before_ns = INT64_MAX;
        return true;
}

void upload_history_end(struct upload_history *h, const struct build_id *id, enum upload_history_outcome end,
                        int64_t now_ns)
{
        struct upload_history_entry *e;
        int64_t pause;
        uint32_t i;

        if (!id_table_find(&h->ids, id->bytes, id->size, &i)) /* evicted meanwhile */
                return;
        e = &h->entries[i];
        if (end != UPLOAD_OUTCOME_FAILED)
                e->failures = 0;
        pause = end == UPLOAD_OUTCOME_LATER     ? 0
                : end == UPLOAD_OUTCOME_SETTLED ? DAY_NS
                                                : FIRST_PAUSE_NS << e->failures;
        if (end == UPLOAD_OUTCOME_FAILED && e->failures < 10)
                e->failures++;
        e->not_before_ns = now_ns + (pause < DAY_NS ? pause : DAY_NS);
}
