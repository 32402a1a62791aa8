/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_COMPRESS_ZSTD_CONTEXTS_H
#define CAIRN_COMMON_COMPRESS_ZSTD_CONTEXTS_H

/**
 * @file
 * Contexts of zstd that are used again. A new one is 160 KB of memory that the kernel has to clear: longer than
 * unpacking a small column takes.
 *
 * At most ZSTD_CONTEXTS_KEPT unused contexts are kept, for the life of the process.
 *
 * Threads: any.
 */
#include <zstd.h>

#define ZSTD_CONTEXTS_KEPT 8

/**
 * A context for ZSTD_decompressDCtx(), which needs no reset after whatever was done before.
 * @return NULL: no memory; else to be returned with give_zstd_context()
 */
ZSTD_DCtx *take_zstd_context(void);

/** @param context  no parameters were set; may be NULL */
void give_zstd_context(ZSTD_DCtx *context);

#endif
