/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "profile-formats/pprof.h"
#include "tests/support/profile_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_buf_ struct buf file;
        struct profile p, q;

        buf_init(&file, MiB(256));
        if (pprof_decode(data, size, NULL, &p, NULL))
                return 0;
        profile_walk(&p);
        if (pprof_encode(&p, &file, NULL) || pprof_decode(file.data, file.size, NULL, &q, NULL))
                abort();
        profile_walk(&q);
        profile_deinit(&p);
        profile_deinit(&q);
        return 0;
}
