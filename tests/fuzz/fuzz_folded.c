/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "profile-formats/folded.h"
#include "tests/support/profile_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_buf_ struct buf text;
        struct profile p;

        buf_init(&text, 64 << 20);
        if (folded_decode_addresses(data, size, NULL, &p, NULL) == ST_OK) {
                profile_walk_decoded(&p, size);
                if (folded_encode(&p, NULL, "comm", &text, NULL))
                        abort();
                profile_deinit(&p);
                if (folded_decode(text.data, text.size, NULL, &p, NULL)) /* encoded output must be decodable */
                        abort();
                profile_deinit(&p);
        }
        if (folded_decode(data, size, NULL, &p, NULL) == ST_OK) {
                profile_walk_decoded(&p, size);
                profile_deinit(&p);
        }
        return 0;
}
