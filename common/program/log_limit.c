/* SPDX-License-Identifier: Apache-2.0 */
#include "common/program/log_limit.h"

#include <stddef.h>

#define TOKEN_NS (INT64_C(1000000000) / LIMIT_LOG_LINES_PER_S)
#define BURST_NS (LIMIT_LOG_BURST * TOKEN_NS)

/* Buckets are never freed: the kinds are fixed in the program text. NULL if there are too many. */
static struct log_bucket *find_bucket(struct log_limit *l, uint64_t key)
{
        for (size_t i = 0; i < LIMIT_LOG_KINDS; i++) {
                struct log_bucket *b = &l->buckets[(key + i) % LIMIT_LOG_KINDS];
                uint64_t found = 0;

                if (atomic_compare_exchange_strong(&b->key, &found, key) || found == key)
                        return b;
        }
        return NULL;
}

/* Generic cell rate algorithm: a token bucket in one number. */
bool log_limit_admit(struct log_limit *l, uint64_t key, int64_t now_ns, uint64_t *suppressed_ret)
{
        struct log_bucket *b = find_bucket(l, key);
        int64_t full_ns, next_ns;

        *suppressed_ret = 0;
        if (!b)
                return true;
        full_ns = atomic_load(&b->full_ns);
        do {
                next_ns = (full_ns > now_ns ? full_ns : now_ns) + TOKEN_NS;
                if (next_ns - now_ns > BURST_NS) {
                        atomic_fetch_add(&b->suppressed, 1);
                        return false;
                }
        } while (!atomic_compare_exchange_weak(&b->full_ns, &full_ns, next_ns));
        *suppressed_ret = atomic_exchange(&b->suppressed, 0);
        return true;
}
