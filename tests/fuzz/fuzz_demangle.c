/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arbitrary text as a linkage name: the demangled name must not exceed its limit. The short forms of the text and of
 * its demangled name must not be empty or longer than the original.
 */
#include <assert.h>

#include "common/limits.h"
#include "symbol-index/demangle.h"
#include "symbol-index/short_name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_short(const char *name, const char *linkage_name)
{
        _cleanup_buf_ struct buf scratch;
        const char *text;

        buf_init(&scratch, LIMIT_DEMANGLED_BYTES + 1);
        text = symbol_short_name(name, linkage_name, &scratch);
        assert(text == name || (*text && strlen(text) < strlen(name)));
}

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
        assert(symbol_can_be_demangled(name) || readable == name);
        check_short(readable, name);
        check_short(name, "");
        check_short(name, "_Z");
        return 0;
}
