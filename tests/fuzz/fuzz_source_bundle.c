/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary bytes as a source bundle: it is refused, or every file of it is within its bounds. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/bytes_source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct bytes_source m = { data, size };
        struct source_bundle b;
        uint64_t offset, bytes;

        if (source_bundle_open(bytes_source_read, &m, size, &b, NULL))
                return 0;
        if (source_bundle_find(&b, "/src/a.c", &offset, &bytes) && (offset > size || bytes > size - offset))
                abort();
        source_bundle_close(&b);
        return 0;
}
