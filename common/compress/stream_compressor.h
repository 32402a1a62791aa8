/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_COMPRESS_STREAM_COMPRESSOR_H
#define CAIRN_COMMON_COMPRESS_STREAM_COMPRESSOR_H

/**
 * @file
 * Streaming compression with gzip or zstd, for Content-Encoding of HTTP: each chunk can be decompressed as soon as its
 * bytes have arrived, and all chunks together form one member or frame. Uses fast levels, since the client is waiting.
 *
 * Threads: a compressor belongs to one thread at a time.
 * Source: RFC 1952, RFC 8878.
 */
#include <stdbool.h>
#include <stddef.h>

#include "common/memory/buf.h"
#include "common/error.h"

enum compression { COMPRESSION_NONE, COMPRESSION_GZIP, COMPRESSION_ZSTD };

struct stream_compressor;

enum status stream_compressor_create(enum compression compression, struct stream_compressor **ret,
                                     struct error *err) MUST_CHECK;
void stream_compressor_destroy(struct stream_compressor *c); /* takes NULL */

/** Compress n bytes of data and append the output to ret; last finishes the stream. */
enum status stream_compressor_add(struct stream_compressor *c, const void *data, size_t n, bool last, struct buf *ret,
                                  struct error *err) MUST_CHECK;

#endif
