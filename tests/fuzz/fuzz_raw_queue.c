/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>

#include "profile-store/queue/raw_segment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct raw_segment s;
        struct raw_record r;
        uint64_t position;
        volatile uint8_t sum = 0;

        if (raw_segment_begin(&s, data, size, "input", NULL))
                return 0;
        position = s.next_position;
        while (raw_segment_next(&s, &r)) {
                assert(r.position == position++);
                for (uint32_t i = 0; i < r.payload_size; i++)
                        sum = (uint8_t)(sum + r.payload[i]);
                assert(s.valid_end <= size);
        }
        return 0;
}
