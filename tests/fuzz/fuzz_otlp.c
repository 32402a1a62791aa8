/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "profile-formats/otlp/otlp.h"
#include "tests/support/profile_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whatever can be decoded can be encoded, and decodes again to the same number of samples. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_buf_ struct buf wire;
        struct profile p, q;

        buf_init(&wire, MiB(256));
        if (otlp_decode(data, size, &p, NULL))
                return 0;
        profile_walk_decoded(&p, size);
        if (otlp_encode(&p, &wire, NULL) || otlp_decode(wire.data, wire.size, &q, NULL))
                abort();
        if (p.samples.count != q.samples.count)
                abort();
        profile_walk_decoded(&q, wire.size);
        profile_deinit(&p);
        profile_deinit(&q);
        return 0;
}
