/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/index_retry.h"

#include <assert.h>

void index_retry_deinit(struct index_retry *r)
{
        id_set_deinit(&r->ids);
}

static void begin_retry_pause(struct index_retry *r, int64_t now_ns)
{
        r->pause_s = r->pause_s ? 2 * r->pause_s : INDEX_RETRY_PAUSE_S;
        if (r->pause_s > INDEX_RETRY_PAUSE_MAX_S)
                r->pause_s = INDEX_RETRY_PAUSE_MAX_S;
        assert(r->pause_s > 0 && r->pause_s <= INDEX_RETRY_PAUSE_MAX_S);
        r->due_ns = now_ns + (int64_t)r->pause_s * 1000000000;
}

enum status index_retry_add(struct index_retry *r, const struct build_id *id, const struct error *why, int64_t now_ns,
                            bool *starts_ret)
{
        if (id_set_add(&r->ids, id))
                return ST_NO_MEMORY;
        r->why = *why;
        *starts_ret = !r->due_ns;
        if (!r->due_ns)
                begin_retry_pause(r, now_ns);
        return ST_OK;
}

/* The oldest object: one that fails again is appended, so all take turns. */
static bool take_first_retry(struct index_retry *r, struct build_id *ret)
{
        if (!r->ids.count)
                return false;
        *ret = r->ids.items[0];
        id_set_remove(&r->ids, ret);
        return true;
}

bool index_retry_take(struct index_retry *r, int64_t now_ns, struct build_id *ret)
{
        if (!r->due_ns || r->due_ns > now_ns)
                return false;
        r->due_ns = 0;
        return take_first_retry(r, ret);
}

size_t index_retry_release(struct index_retry *r, struct build_id ret[static INDEX_RETRY_RELEASED])
{
        size_t n = 0;

        while (n < INDEX_RETRY_RELEASED && take_first_retry(r, &ret[n]))
                n++;
        r->pause_s = 0;
        r->due_ns = 0;
        if (!n)
                r->why.text[0] = 0;
        return n;
}

void index_retry_continue(struct index_retry *r, int64_t now_ns)
{
        if (r->ids.count && !r->due_ns)
                begin_retry_pause(r, now_ns);
}
