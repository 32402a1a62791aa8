/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/processes/kallsyms.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct kernel_symbol s;
        struct kallsyms k;

        if (kallsyms_parse((const char *)data, size, &k, NULL))
                return 0;
        for (size_t i = 0; i < k.count; i++)
                if ((kallsyms_find(&k, k.entries[i].addr, &s) == ST_OK) != (k.entries[i].name != 0))
                        __builtin_trap();
        kallsyms_deinit(&k);
        return 0;
}
