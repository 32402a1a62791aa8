/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_CONTENT_CODING_H
#define CAIRN_COMMON_CONTENT_CODING_H

/**
 * @file
 * Content codings of senders such as the OpenTelemetry Collector that HTTP itself does not have: zlib, lz4 (frames) and
 * snappy (a block, or a stream of chunks). Apart from compress.h, so that only programs that use it link the libraries.
 *
 * Threads: no shared state.
 * Source: lz4 1.9.4 doc/lz4_Frame_format.md; snappy 1.1.9 framing_format.txt, format_description.txt;
 *         opentelemetry-collector config/configcompression.
 */
#include <stddef.h>

#include "common/buf.h"

/**
 * Append what data holds; ret's maximum is kept whatever sizes the input claims, and on failure ret has its previous
 * size.
 * @param coding  "zlib", "lz4", "snappy" or "x-snappy-framed" in any case; "snappy" takes both forms of it.
 * @return ST_UNSUPPORTED for another one; ST_BAD_DATA damaged, cut off or with a wrong checksum; ST_TOO_BIG.
 */
enum status content_coding_decode(const char *coding, const void *data, size_t n, struct buf *ret,
                                  struct error *err) MUST_CHECK;

#endif
