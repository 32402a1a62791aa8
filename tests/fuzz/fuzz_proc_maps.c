/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/objects/proc_maps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct proc_maps m;

        if (proc_maps_parse((const char *)data, size, &m, NULL))
                return 0;
        for (size_t i = 0; i < m.count; i++)
                if (proc_maps_find(&m, m.items[i].start) != &m.items[i] ||
                    proc_maps_find(&m, m.items[i].end - 1) != &m.items[i])
                        __builtin_trap();
        proc_maps_deinit(&m);
        return 0;
}
