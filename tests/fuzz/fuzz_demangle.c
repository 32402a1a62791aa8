/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as a linkage name: the readable form stays within its bound. */
#include <assert.h>

#include "common/limits.h"
#include "symbolizer/demangle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_free_ char *name = malloc(size + 1);
        _cleanup_buf_ struct buf scratch;
        const char *readable;

        if (size)
                memcpy(name, data, size);
        name[size] = 0;
        buf_init(&scratch, LIMIT_DEMANGLED_BYTES + 1);
        readable = symbol_demangle(name, &scratch);
        assert(readable == name || strlen(readable) <= LIMIT_DEMANGLED_BYTES);
        return 0;
}
