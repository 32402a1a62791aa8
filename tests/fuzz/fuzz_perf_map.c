/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "sampling/processes/perf_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ranges must follow the rule that the last symbol that covers an address names it. */
static void check_ranges(struct perf_map *m, const struct named_range *symbols, size_t count, uint64_t addr)
{
        const struct named_range *expected = NULL, *found = code_names_find(&m->code, addr);

        for (size_t i = 0; i < count; i++)
                if (addr >= symbols[i].start && addr < symbols[i].end)
                        expected = &symbols[i];
        if (!expected != !found || (expected && expected->name != found->name))
                __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct code_budget budget = { .max = 1 << 20 };
        struct named_range *symbols = NULL;
        struct perf_map m;
        size_t used;

        perf_map_init(&m, &budget);
        m.code.keeps_names = true;
        /* In two chunks, as a growing file. */
        if (perf_map_feed(&m, (const char *)data, size / 2, &used, NULL) == ST_OK &&
            perf_map_feed(&m, (const char *)data + used, size - used, &used, NULL) == ST_OK && m.code.pending_count) {
                size_t count = m.code.pending_count;

                symbols = malloc(count * sizeof *symbols);
                if (!symbols)
                        __builtin_trap();
                memcpy(symbols, m.code.pending, count * sizeof *symbols);
                for (size_t i = 0; i < count && i < 64; i++) {
                        check_ranges(&m, symbols, count, symbols[i].start);
                        check_ranges(&m, symbols, count, symbols[i].end);
                        check_ranges(&m, symbols, count, symbols[i].end - 1);
                }
        }
        free(symbols);
        perf_map_deinit(&m);
        if (budget.used)
                __builtin_trap();
        return 0;
}
