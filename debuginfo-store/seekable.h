/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_SEEKABLE_H
#define CAIRN_DEBUGINFO_STORE_SEEKABLE_H

/**
 * @file
 * Seekable zstd files: independent frames of SEEKABLE_FRAME_BYTES unpacked
 * bytes, then a seek table in a skippable frame, so any range is read by
 * unpacking only the frames it touches, and plain `zstd -d` reads the whole.
 *
 * Threads: a writer or reader belongs to one thread.
 * Source: zstd seekable format 0.1.0.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"

#define SEEKABLE_FRAME_BYTES (1u << 18)
#define SEEKABLE_FRAME_MAX_BYTES (1u << 20) /* of what an older version wrote */

/** Compress all of in_fd (from its start, size bytes) to out_fd at its position. stored_ret: bytes written. */
enum status seekable_compress(int in_fd, uint64_t size, int out_fd, const char *name, uint64_t *stored_ret,
                              struct error *err) MUST_CHECK;

struct seekable_reader;
struct frames;

/** Takes fd, also on failure. The seek table is checked against the file's size. */
enum status seekable_open(int fd, const char *name, struct seekable_reader **ret, struct error *err) MUST_CHECK;
void seekable_close(struct seekable_reader *r);
uint64_t seekable_size(const struct seekable_reader *r);
/** From now on take frames from those that are kept, and keep those that are unpacked. Both are borrowed. */
void seekable_share(struct seekable_reader *r, struct frames *frames, const uint8_t sha256[static 32]);

/** Unpacked bytes from offset, fewer only at the end; -1 and err when the file is damaged. */
ssize_t seekable_pread(struct seekable_reader *r, void *to, size_t n, uint64_t offset, struct error *err);

#endif
