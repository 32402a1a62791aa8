/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Differences of cumulative totals. The input is bytes of operations on a few stacks: the values of one profile, then
 * of the next. The sum of all differences must be what a process has counted, and no difference may be negative.
 */
#include <stdlib.h>

#include "common/limits.h"
#include "profile-formats/profile_type.h"
#include "scrape/counter_delta.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
        if (!ok)
                abort();
}

#define STACKS 8

/* One profile: each byte adds a value to the sample of one stack; several samples of a stack are summed. */
static void add_values(struct profile *p, const uint8_t *data, size_t n, int64_t totals[static STACKS])
{
        uint32_t type, gauge, location, number;

        require(!profile_type_add_id(p, "memory:alloc_space:bytes:space:bytes", 1, &type, NULL));
        require(!profile_type_add_id(p, "memory:inuse_space:bytes:space:bytes", 1, &gauge, NULL));
        for (size_t i = 0; i < n; i++) {
                const struct profile_location l = { .mapping = PROFILE_NONE,
                                                    .kind = ADDRESS_OBJECT,
                                                    .address = data[i] % STACKS };
                struct profile_sample s = { .value = 1 + data[i] / STACKS, .type = data[i] & 64 ? type : gauge };

                require(!profile_add_location(p, &l, &location, NULL));
                require(!profile_add_stack(p, &location, 1, &s.stack, NULL));
                require(!profile_add_sample(p, &s, &number, NULL));
                if (s.type == type)
                        totals[data[i] % STACKS] += s.value;
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct counter_totals last = { 0 };
        int64_t before[STACKS] = { 0 };

        for (size_t at = 0, round = 0; at < size && round < 64; round++) {
                size_t n = data[at] % 32, gauges = 0;
                int64_t totals[STACKS] = { 0 }, sum = 0, want = 0;
                struct counter_totals now = { 0 };
                enum counter_change change;
                struct profile p;
                bool less = false;

                at++;
                n = n < size - at ? n : size - at;
                require(!profile_init(&p, LIMIT_PROFILE_MEMORY_BYTES, NULL));
                add_values(&p, data + at, n, totals);
                for (size_t i = 0; i < n; i++)
                        gauges += !(data[at + i] & 64);
                at += n;
                require(!counter_totals_subtract(&last, &p, &now, &change, NULL));
                for (int i = 0; i < STACKS; i++) {
                        less |= totals[i] < before[i];
                        want += totals[i];
                }
                for (int i = 0; i < STACKS && !less; i++)
                        want -= before[i];
                for (uint32_t i = 0; i < p.samples.count; i++) {
                        require(p.samples.items[i].value > 0);
                        if (counter_type_is_total(&p, p.samples.items[i].type))
                                sum += p.samples.items[i].value;
                        else
                                gauges--;
                }
                require(gauges == 0);
                require((change == COUNTER_FIRST) == !round);
                require(!round ? sum == 0 : (change == COUNTER_RESET) == less && sum == want);
                for (int i = 0; i < STACKS; i++)
                        before[i] = totals[i];
                profile_deinit(&p);
                counter_totals_deinit(&last);
                last = now;
        }
        counter_totals_deinit(&last);
        return 0;
}
