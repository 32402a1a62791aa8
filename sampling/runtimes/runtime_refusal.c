/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/runtimes/runtime_refusal.h"

const char *runtime_refusal_name(enum runtime_refusal_reason reason)
{
        static const char *const names[REFUSAL_COUNT] = {
                [REFUSAL_NONE] = "none",       [REFUSAL_VERSION] = "version",     [REFUSAL_BUILD] = "build",
                [REFUSAL_SYMBOLS] = "symbols", [REFUSAL_RIGHTS] = "rights",       [REFUSAL_MEMORY] = "memory",
                [REFUSAL_THREADS] = "threads", [REFUSAL_PROCESSOR] = "processor", [REFUSAL_LIMIT] = "limit",
        };

        return names[reason];
}
