/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "agent/perf_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ranges must agree with the rule: the last symbol that covers an address names it. */
static void check(struct perf_map *m, uint64_t addr)
{
        const char *expected = NULL, *found = perf_map_find(m, addr);

        for (size_t i = 0; i < m->symbol_count; i++)
                if (addr >= m->symbols[i].start && addr < m->symbols[i].end)
                        expected = (const char *)m->names.data + m->symbols[i].name;
        if (!expected != !found || (expected && strcmp(expected, found) != 0))
                __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct perf_map m;
        size_t used;

        perf_map_init(&m);
        /* In two pieces, as a file grows. */
        if (perf_map_feed(&m, (const char *)data, size / 2, &used, NULL) == ST_OK &&
            perf_map_feed(&m, (const char *)data + used, size - used, &used, NULL) == ST_OK)
                for (size_t i = 0; i < m.symbol_count && i < 64; i++) {
                        check(&m, m.symbols[i].start);
                        check(&m, m.symbols[i].end);
                        check(&m, m.symbols[i].end - 1);
                }
        perf_map_deinit(&m);
        return 0;
}
