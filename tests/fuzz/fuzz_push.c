/* SPDX-License-Identifier: Apache-2.0 */
/* push.v1.PushRequest: ProtoJSON when the input begins with a brace, else protobuf. */
#include "profile-formats/push.h"
#include "tests/support/profile_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct profile p;

        if (push_decode(data, size, size && data[0] == '{', NULL, &p, NULL))
                return 0;
        profile_walk(&p);
        profile_deinit(&p);
        return 0;
}
