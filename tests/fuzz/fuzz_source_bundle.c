/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a source bundle: refused, or every file of it lies inside. */
#include <stdlib.h>
#include <string.h>

#include "source-bundle/bundle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct memory {
        const uint8_t *bytes;
        size_t size;
};

static ssize_t read_memory(void *context, void *to, size_t n, uint64_t offset, struct error *err)
{
        const struct memory *m = context;

        (void)err;
        if (offset >= m->size)
                return 0;
        n = n < m->size - offset ? n : m->size - offset;
        memcpy(to, m->bytes + offset, n);
        return (ssize_t)n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct memory m = { data, size };
        struct source_bundle b;
        uint64_t offset, bytes;

        if (source_bundle_open(read_memory, &m, size, &b, NULL))
                return 0;
        if (source_bundle_find(&b, "/src/a.c", &offset, &bytes) && (offset > size || bytes > size - offset))
                abort();
        source_bundle_close(&b);
        return 0;
}
