/* SPDX-License-Identifier: Apache-2.0 */
/* The lease of the node that fetches debuginfo in the background for all (profile_store.h). */
#include <stdatomic.h>

#include "common/clock.h"
#include "profile-store/core/profile_store_internal.h"
#include "profile-store/core/table_follow.h"

#define FETCH_LOOKS 3 /* in the time of a lease */

static void wait_with_fetches(struct profile_store *s)
{
        atomic_store(&s->next_fetch_look_ns, monotonic_ns() + (int64_t)s->options.lease_ms * 1000000 / FETCH_LOOKS);
}

bool profile_store_leads_fetches(struct profile_store *s)
{
        struct error unused;

        if (monotonic_ns() < atomic_load(&s->next_fetch_look_ns))
                return false;
        if (store_hold_lease(s, &s->fetch_lease, &unused) != ST_BUSY)
                return true;
        wait_with_fetches(s);
        return false;
}

void profile_store_leave_fetches(struct profile_store *s)
{
        if (!has_shared_tables(s))
                return;
        store_end_lease(s, &s->fetch_lease);
        wait_with_fetches(s);
}
