/* SPDX-License-Identifier: Apache-2.0 */
/* Two bytes with the length of the labels (little-endian), the labels, and a recording. */
#include "profile-formats/jfr/jfr_decode.h"
#include "tests/support/profile_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        size_t n = size < 2 ? 0 : data[0] | (size_t)data[1] << 8;
        struct jfr_options o = { 0 };
        struct profile p;

        if (size < 2 || n > size - 2)
                return 0;
        o.labels = n ? data + 2 : NULL;
        o.labels_size = n;
        if (jfr_decode(data + 2 + n, size - 2 - n, &o, &p, NULL))
                return 0;
        profile_walk_decoded(&p, size);
        profile_deinit(&p);
        return 0;
}
