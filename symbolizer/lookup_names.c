/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/lookup.h"

#include <assert.h>

static const char *const state_names[] = {
        [SYMBOL_RESOLVED] = "resolved",
        [SYMBOL_NO_BUILD_ID] = "no_build_id",
        [SYMBOL_NO_DEBUGINFO] = "no_debuginfo",
        [SYMBOL_PENDING] = "pending",
        [SYMBOL_FAILED] = "failed",
        [SYMBOL_OUTSIDE] = "outside",
        [SYMBOL_SENDER] = "sender",
        [SYMBOL_NO_ADDRESS] = "no_address",
        [SYMBOL_STRIPPED] = "stripped",
        [SYMBOL_UNCOVERED] = "uncovered",
        [SYMBOL_NOT_IN_OBJECT] = "not_in_object",
        [SYMBOL_TOO_LARGE] = "too_large",
};

static const char *const object_state_names[] = {
        [OBJECT_ABSENT] = "absent",
        [OBJECT_PENDING] = "pending",
        [OBJECT_INDEXED] = "indexed",
        [OBJECT_FAILED] = "failed",
};

const char *symbol_state_name(enum symbol_state s)
{
        assert((unsigned)s < SYMBOL_STATE_COUNT);
        return state_names[s];
}

const char *symbol_object_state_name(enum symbol_object_state s)
{
        assert((unsigned)s <= OBJECT_FAILED);
        return object_state_names[s];
}
