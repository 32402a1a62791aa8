/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_FRAMES_H
#define CAIRN_DEBUGINFO_STORE_FRAMES_H

/**
 * @file
 * Unpacked frames of stored objects (debuginfo-store/seekable.h), kept while
 * there is room: a debugger asks for one small section of an object after the
 * other, and these lie close together. What was used last stays.
 *
 * A frame is known by the SHA-256 of its object's content and by where it
 * begins there, so what is kept stays true whatever happens to files.
 *
 * Threads: any, but for create and destroy.
 */
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct frames;

/** @param max_bytes of all frames, with what it takes to find them. */
enum status frames_create(size_t max_bytes, struct frames **ret, struct error *err) MUST_CHECK;
/** NULL is fine. */
void frames_destroy(struct frames *f);

/** Bytes of the content from offset on, until the first that is not kept. @return how many were copied, at most n. */
size_t frames_copy(struct frames *f, const uint8_t sha256[static 32], void *to, size_t n, uint64_t offset);

/** Keep a frame that begins at `at`. @param bytes from malloc(); taken. */
void frames_put(struct frames *f, const uint8_t sha256[static 32], uint64_t at, void *bytes, size_t n);

#endif
