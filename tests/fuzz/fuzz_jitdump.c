/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "sampling/processes/jitdump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PID 4711

/* Feeds data until no more is consumed, each time with one byte more than the last record requires. */
static void feed_dump(struct jitdump *j, const uint8_t *data, size_t size)
{
        uint64_t at = 0, used = 1;

        while (at < size && used) {
                used = 0;
                if (jitdump_feed(j, data + at, size - at, size - at, PID, &used, NULL))
                        return;
                if (used > size - at)
                        __builtin_trap(); /* everything else was reported */
                at += used;
        }
}

static void check_dump(struct jitdump *a, struct jitdump *b, uint64_t addr)
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
        feed_dump(&whole, data, size);
        /* As a growing file: first part of it, then the rest. */
        if (size) {
                uint64_t used = 0;
                size_t half = size / 2;
                uint8_t *first = malloc(half ? half : 1);

                if (!first)
                        __builtin_trap();
                memcpy(first, data, half);
                if (!jitdump_feed(&grown, first, half, half, PID, &used, NULL) && used <= half) {
                        if (grown.has_header)
                                feed_dump(&grown, data + used, size - used);
                        else
                                feed_dump(&grown, data, size);
                }
                free(first);
        }
        if (!whole.dropped && !grown.dropped)
                for (size_t i = 0; i < whole.code_count && i < 64; i++)
                        for (uint64_t near = 0; near < 3; near++)
                                check_dump(&whole, &grown, whole.codes[i].addr + near - 1);
        jitdump_deinit(&whole);
        jitdump_deinit(&grown);
        if (budget.used)
                __builtin_trap();
        return 0;
}
