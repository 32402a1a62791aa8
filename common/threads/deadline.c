/* SPDX-License-Identifier: Apache-2.0 */
#include "common/threads/deadline.h"

enum status deadline_check(const struct deadline *d, struct error *err)
{
        if (!deadline_expired(d))
                return ST_OK;
        if (d->cancelled && atomic_load(d->cancelled))
                return error_set(err, ST_TIMEOUT, "cancelled: the client closed its connection");
        if (!d->timeout_s)
                return error_set(err, ST_TIMEOUT, "the time limit was exceeded");
        return error_set(err, ST_TIMEOUT, "stopped after the time limit of %llu s", (unsigned long long)d->timeout_s);
}
