/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/heap_trim.h"

#include <malloc.h>
#include <stdio.h>

#include "common/clock.h"
#include "common/limits.h"
#include "common/memory/memory_budget.h"
#include "common/metrics.h"

static struct metric trims = METRIC_COUNTER(
        "cairn_memory_trims_total", "How often freed memory was returned to the kernel, since much was resident.", "");

static size_t read_resident_bytes(void)
{
        FILE *f = fopen("/proc/self/status", "re");
        unsigned long kib = 0;
        char line[256];

        while (f && !kib && fgets(line, sizeof line, f))
                if (sscanf(line, "RssAnon: %lu", &kib) == 1)
                        break;
        if (f)
                fclose(f);
        return kib * KiB(1);
}

static size_t sum_held_bytes(void)
{
        size_t sum = 0;

        for (unsigned use = 0; use < MEMORY_USES; use++)
                sum += memory_use_held((enum memory_use)use);
        return sum;
}

bool heap_trim_is_due(const struct heap_trim *t, size_t resident, size_t held)
{
        return resident > held && resident - held > t->other_bytes + LIMIT_HEAP_FREE_BYTES;
}

void heap_trim_check(struct heap_trim *t)
{
        const int64_t now = monotonic_ns();
        size_t resident, held;

        if (now < t->next_ns)
                return;
        t->next_ns = now + LIMIT_HEAP_TRIM_INTERVAL_S * INT64_C(1000000000);
        metric_register(&trims);
        if (!heap_trim_is_due(t, read_resident_bytes(), sum_held_bytes()))
                return;
        (void)malloc_trim(0);
        resident = read_resident_bytes();
        held = sum_held_bytes();
        t->other_bytes = resident > held ? resident - held : 0;
        metric_add(&trims, 1);
}
