/* SPDX-License-Identifier: Apache-2.0 */
/*
 * push.v1.PushRequest: ProtoJSON if the input begins with a brace, otherwise protobuf, also decoded as Parca's
 * WriteRawRequest.
 */
#include "profile-formats/input/push.h"
#include "tests/support/profile_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* pprof files that are compressed are bounded by their decompressed size. */
static void walk_pushed(const struct profile *p, const uint8_t *data, size_t size)
{
        if (!size || memmem(data, size, "\x1f\x8b", 2) || memmem(data, size, "H4s", 3))
                profile_walk(p);
        else
                profile_walk_decoded(p, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        bool is_json = size && data[0] == '{';
        struct profile p;

        if (!push_decode(data, size, is_json, NULL, &p, NULL)) {
                walk_pushed(&p, data, size);
                profile_deinit(&p);
        }
        if (!is_json && !push_decode_write_raw(data, size, NULL, &p, NULL)) {
                walk_pushed(&p, data, size);
                profile_deinit(&p);
        }
        return 0;
}
