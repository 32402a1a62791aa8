/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_COMPRESS_CONTENT_CODING_H
#define CAIRN_COMMON_COMPRESS_CONTENT_CODING_H

/**
 * @file
 * Content codings outside of the HTTP standard, used by senders such as the OpenTelemetry Collector: zlib, lz4 (frames)
 * and snappy (a block, or a stream of chunks). Separate from compress.h, so that only programs that use it link the
 * libraries.
 *
 * Threads: no shared state.
 * Source: lz4 1.9.4 doc/lz4_Frame_format.md; snappy 1.1.9 framing_format.txt, format_description.txt;
 *         opentelemetry-collector config/configcompression.
 */
#include <stddef.h>

#include "common/memory/buf.h"

/**
 * Decode data and append it; ret's maximum is kept regardless of the sizes the input claims. On failure ret has its
 * previous size.
 * @param coding  "zlib", "lz4", "snappy" or "x-snappy-framed" in any case; "snappy" accepts both formats.
 * @return ST_UNSUPPORTED: another coding; ST_BAD_DATA: damaged, truncated or wrong checksum; ST_TOO_BIG.
 */
enum status content_coding_decode(const char *coding, const void *data, size_t n, struct buf *ret,
                                  struct error *err) MUST_CHECK;

#endif
