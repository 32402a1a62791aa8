/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_COMPRESS_COMPRESS_H
#define CAIRN_COMMON_COMPRESS_COMPRESS_H

/**
 * @file
 * gzip and zstd of whole buffers, with bounded output.
 *
 * Decompression appends to ret and never exceeds its max, regardless of the sizes the input claims; beyond it:
 * ST_TOO_BIG. On failure ret is truncated to its previous size. Truncated or damaged input is ST_BAD_DATA.
 *
 * Threads: no shared state.
 * Source: RFC 1952 (concatenated members form one text), RFC 1950, RFC 8878.
 */
#include <stdbool.h>
#include <stddef.h>

#include "common/memory/buf.h"

/** The error for a stream with a window larger than LIMIT_ZSTD_WINDOW_LOG. */
#define ZSTD_WINDOW_TEXT                                                                                               \
        "the zstd stream needs a window of more than 8 MiB: compress it without --long and --ultra, or with --long=23"
#include "common/error.h"

/** Whether data begins with the magic of a gzip member / of a zstd frame. */
bool gzip_detect(const void *data, size_t n);
bool zstd_detect(const void *data, size_t n);
/** Whether data has the header of zlib, and its beginning unpacks: the header alone may be text. */
bool zlib_detect(const void *data, size_t n);

/** gzip, or zlib ("deflate" of HTTP). */
enum status gzip_decompress(const void *data, size_t n, struct buf *ret, struct error *err) MUST_CHECK;
enum status gzip_compress(const void *data, size_t n, int level, struct buf *ret, struct error *err) MUST_CHECK;

/** The window is limited to LIMIT_ZSTD_WINDOW_LOG, so that a frame header cannot cause a larger allocation. */
enum status zstd_decompress(const void *data, size_t n, struct buf *ret, struct error *err) MUST_CHECK;

#endif
