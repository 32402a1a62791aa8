/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "agent/processes/jitdump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PID 4711

/* Read on until nothing is used, seeing one byte more than the last record needs at least. */
static void feed(struct jitdump *j, const uint8_t *data, size_t size)
{
        uint64_t at = 0, used = 1;

        while (at < size && used) {
                used = 0;
                if (jitdump_feed(j, data + at, size - at, size - at, PID, &used, NULL))
                        return;
                if (used > size - at)
                        __builtin_trap(); /* all that is left was told */
                at += used;
        }
}

static void check(struct jitdump *a, struct jitdump *b, uint64_t addr)
{
        struct jit_location x = { 0 }, y = { 0 };
        bool found = jitdump_find(a, addr, &x);

        if (found != jitdump_find(b, addr, &y))
                __builtin_trap();
        if (found && (strcmp(x.name, y.name) != 0 || strcmp(x.file, y.file) != 0 || x.line != y.line))
                __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct code_budget budget = { .max = 1 << 20 };
        struct jitdump whole, grown;

        jitdump_init(&whole, &budget);
        jitdump_init(&grown, NULL);
        feed(&whole, data, size);
        /* As a file grows: what is there at first, then the rest. */
        if (size) {
                uint64_t used = 0;
                size_t half = size / 2;
                uint8_t *first = malloc(half ? half : 1);

                if (!first)
                        __builtin_trap();
                memcpy(first, data, half);
                if (!jitdump_feed(&grown, first, half, half, PID, &used, NULL) && used <= half) {
                        if (grown.has_header)
                                feed(&grown, data + used, size - used);
                        else
                                feed(&grown, data, size);
                }
                free(first);
        }
        if (!whole.dropped && !grown.dropped)
                for (size_t i = 0; i < whole.code_count && i < 64; i++)
                        for (uint64_t near = 0; near < 3; near++)
                                check(&whole, &grown, whole.codes[i].addr + near - 1);
        jitdump_deinit(&whole);
        jitdump_deinit(&grown);
        if (budget.used)
                __builtin_trap();
        return 0;
}
