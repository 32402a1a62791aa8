/* SPDX-License-Identifier: Apache-2.0 */
/* All content codings on the same bytes, with output limited to 1 MiB. */
#include <stdlib.h>

#include "common/compress/content_coding.h"
#include "common/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const char *const codings[] = { "zlib", "lz4", "snappy", "x-snappy-framed" };

        for (size_t i = 0; i < sizeof codings / sizeof *codings; i++) {
                _cleanup_buf_ struct buf out;

                buf_init(&out, MiB(1));
                buf_append_u8(&out, 7);
                if (content_coding_decode(codings[i], data, size, &out, NULL) ? out.size != 1 : out.size > MiB(1))
                        abort();
        }
        return 0;
}
