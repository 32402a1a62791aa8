/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_FRAME_CACHE_H
#define CAIRN_DEBUGINFO_STORE_FRAME_CACHE_H

/**
 * @file
 * LRU cache of decompressed zstd frames of stored objects (seekable.h). Debuggers request many small adjacent sections
 * of one object, which lie in the same frames.
 *
 * The key is the SHA-256 of the object's content and the frame's offset in it, so entries never become stale.
 *
 * Threads: any, except create and destroy.
 */
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct frame_cache;

/**
 * @param max_bytes of all frames, including bookkeeping and the frames of other caches in the process: beyond it this
 *                  cache keeps only its newest frame.
 */
enum status frame_cache_create(size_t max_bytes, struct frame_cache **ret, struct error *err) MUST_CHECK;
/** NULL is allowed. */
void frame_cache_destroy(struct frame_cache *f);

/** Copy cached bytes of the content from offset, up to the first byte that is not cached. @return number of bytes
 * copied, at most n. */
size_t frame_cache_read(struct frame_cache *f, const uint8_t sha256[static 32], void *to, size_t n, uint64_t offset);

/** Insert the frame at content offset `at`. Takes bytes, from malloc(). */
void frame_cache_insert(struct frame_cache *f, const uint8_t sha256[static 32], uint64_t at, void *bytes, size_t n);

#endif
