/* SPDX-License-Identifier: Apache-2.0 */
#include "common/compress/zstd_contexts.h"

#include <stdatomic.h>
#include <stddef.h>

static _Atomic(ZSTD_DCtx *) unused[ZSTD_CONTEXTS_KEPT];

ZSTD_DCtx *take_zstd_context(void)
{
        for (size_t i = 0; i < ZSTD_CONTEXTS_KEPT; i++) {
                ZSTD_DCtx *context = atomic_exchange(&unused[i], NULL);

                if (context)
                        return context;
        }
        return ZSTD_createDCtx();
}

void give_zstd_context(ZSTD_DCtx *context)
{
        for (size_t i = 0; context && i < ZSTD_CONTEXTS_KEPT; i++) {
                ZSTD_DCtx *none = NULL;

                if (atomic_compare_exchange_strong(&unused[i], &none, context))
                        context = NULL;
        }
        ZSTD_freeDCtx(context);
}
