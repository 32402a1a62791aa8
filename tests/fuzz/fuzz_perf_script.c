/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/perf_script.h"
#include "tests/support/profile_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct profile p;

        if (perf_script_decode(data, size, 1700000000000000000, &p, NULL))
                return 0;
        profile_walk_decoded(&p, size);
        profile_deinit(&p);
        return 0;
}
