/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary bytes as the response of a scan worker: it is refused, or everything in it is within bounds. */
#include <stdlib.h>
#include <string.h>

#include "elf-image/section_list.h"
#include "package-trees/package_contents.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        void *copy = malloc(size ? size : 1);
        uint64_t offset, bytes;
        struct package_contents f;
        size_t sum = 0;

        if (!copy)
                return 0;
        if (size)
                memcpy(copy, data, size);
        if (package_contents_read(copy, size, &f, NULL))
                return 0;
        for (size_t i = 0; i < f.object_count; i++) {
                if (!f.objects[i].build_id.size || !f.objects[i].kinds || f.objects[i].kinds > 3)
                        abort();
                sum += strlen(f.objects[i].path);
                if (!section_list_find(f.objects[i].sections, f.objects[i].sections_bytes, ".text", &offset, &bytes,
                                       NULL))
                        sum += offset + bytes;
        }
        for (size_t i = 0; i < f.source_count; i++)
                sum += f.sources[i].ordinal;
        if (sum == SIZE_MAX)
                abort();
        package_contents_deinit(&f);
        return 0;
}
