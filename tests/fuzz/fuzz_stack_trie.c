/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/stack_trie.h"
#include "tests/support/profile_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        for (int kind = STACK_TRIE; kind <= STACK_TREE; kind++) {
                struct profile p;

                if (stack_trie_decode(data, size, (enum stack_trie_kind)kind, "a:b:c::", &p, NULL))
                        continue;
                profile_walk_decoded(&p, size);
                profile_deinit(&p);
        }
        return 0;
}
