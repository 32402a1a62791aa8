/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_BYTES_SOURCE_H
#define CAIRN_TESTS_SUPPORT_BYTES_SOURCE_H

/* A source bundle in memory. */
#include <string.h>

#include "source-bundle/bundle.h"

struct bytes_source {
        const uint8_t *bytes;
        size_t size;
};

static inline ssize_t bytes_source_read(void *context, void *to, size_t n, uint64_t offset, struct error *err)
{
        const struct bytes_source *s = context;

        (void)err;
        if (offset >= s->size)
                return 0;
        n = n < s->size - offset ? n : s->size - offset;
        memcpy(to, s->bytes + offset, n);
        return (ssize_t)n;
}

#endif
