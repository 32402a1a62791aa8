/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/unwinding/unwind_quota.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/memory/array.h"

#define UNWIND_OWNER_REST 1

struct unwind_quota_owner {
        uint64_t used[UNWIND_RESOURCE_COUNT];
};

void unwind_quota_init(struct unwind_quota *q, const uint64_t sizes[static UNWIND_RESOURCE_COUNT], uid_t own)
{
        *q = (struct unwind_quota){ .own = own };
        memcpy(q->sizes, sizes, sizeof q->sizes);
}

void unwind_quota_deinit(struct unwind_quota *q)
{
        id_table_deinit(&q->by_key);
        free(q->owners);
        *q = (struct unwind_quota){ 0 };
}

/* No padding: the bytes are the key. */
struct owner_key {
        uint64_t uid, container;
};

/* Make room for one more owner; the first also for the two fixed ones. */
static bool reserve_owner(struct unwind_quota *q)
{
        if (!q->count) {
                if (!array_reserve_many(&q->owners, &q->capacity, 0, UNWIND_OWNER_REST + 1))
                        return false;
                while (q->count <= UNWIND_OWNER_REST)
                        q->owners[q->count++] = (struct unwind_quota_owner){ 0 };
        }
        return array_reserve(&q->owners, &q->capacity, q->count);
}

uint32_t unwind_quota_get_owner(struct unwind_quota *q, uid_t uid, const char *container)
{
        const struct owner_key key = { uid, container[0] ? hash_bytes64(container, strlen(container)) : 0 };
        uint32_t number;

        if (!container[0] && (uid == 0 || uid == q->own))
                return UNWIND_OWNER_SYSTEM;
        if (id_table_find(&q->by_key, &key, sizeof key, &number))
                return number;
        if (q->count == LIMIT_AGENT_UNWIND_OWNERS || !reserve_owner(q) ||
            !id_table_put(&q->by_key, &key, sizeof key, q->count))
                return UNWIND_OWNER_REST;
        q->owners[q->count] = (struct unwind_quota_owner){ 0 };
        return q->count++;
}

static uint64_t subtract_saturating(uint64_t a, uint64_t b)
{
        return a > b ? a - b : 0;
}

uint64_t unwind_quota_get_remaining(const struct unwind_quota *q, uint32_t owner, enum unwind_resource r)
{
        uint64_t own = owner < q->count ? subtract_saturating(q->sizes[r] / 4, q->owners[owner].used[r]) : 0;
        uint64_t all = subtract_saturating(q->sizes[r] / 4 * 3, q->used_by_others[r]);

        if (owner == UNWIND_OWNER_SYSTEM)
                return UINT64_MAX;
        return own < all ? own : all;
}

void unwind_quota_charge(struct unwind_quota *q, uint32_t owner, enum unwind_resource r, uint64_t n)
{
        if (owner == UNWIND_OWNER_SYSTEM || owner >= q->count)
                return;
        q->owners[owner].used[r] += n;
        q->used_by_others[r] += n;
}

void unwind_quota_refund(struct unwind_quota *q, uint32_t owner, enum unwind_resource r, uint64_t n)
{
        if (owner == UNWIND_OWNER_SYSTEM || owner >= q->count)
                return;
        assert(q->owners[owner].used[r] >= n && q->used_by_others[r] >= n);
        q->owners[owner].used[r] -= n;
        q->used_by_others[r] -= n;
}
