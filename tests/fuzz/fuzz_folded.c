/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/folded.h"
#include "profile-formats/perf_script.h"
#include "tests/support/profile_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The two text formats take any bytes; each input goes to both. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct profile p;

        if (folded_decode(data, size, NULL, &p, NULL) == ST_OK) {
                profile_walk(&p);
                profile_deinit(&p);
        }
        if (perf_script_decode(data, size, 1700000000000000000, &p, NULL) == ST_OK) {
                profile_walk(&p);
                profile_deinit(&p);
        }
        return 0;
}
