/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_SEEKABLE_H
#define CAIRN_DEBUGINFO_STORE_SEEKABLE_H

/**
 * @file
 * Seekable zstd files: independent frames of SEEKABLE_FRAME_BYTES uncompressed bytes, then a seek table in a skippable
 * frame. Reading a range decompresses only the frames it touches; plain `zstd -d` reads the whole file.
 *
 * Threads: a writer or reader belongs to one thread.
 * Source: zstd seekable format 0.1.0.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"
#include "storage/storage.h"

#define SEEKABLE_FRAME_BYTES (1u << 18)

/** Compress all of in_fd (from its start, size bytes) to out_fd at its position. stored_ret: bytes written. */
enum status seekable_compress(int in_fd, uint64_t size, int out_fd, const char *name, uint64_t *stored_ret,
                              struct error *err) MUST_CHECK;

struct seekable_reader;
struct frame_cache;

/** Takes fd, also on failure. The seek table is checked against the file's size. */
enum status seekable_open(int fd, const char *name, struct seekable_reader **ret, struct error *err) MUST_CHECK;
/** The same of an object whose ranges are required before they are read. Takes map, also on failure. */
enum status seekable_open_map(struct storage_map *map, const char *name, struct seekable_reader **ret,
                              struct error *err) MUST_CHECK;
void seekable_close(struct seekable_reader *r);
uint64_t seekable_get_size(const struct seekable_reader *r);
/** Read frames through a cache. Both arguments are borrowed. */
void seekable_use_cache(struct seekable_reader *r, struct frame_cache *frames, const uint8_t sha256[static 32]);

/** Read uncompressed bytes at offset, fewer only at the end; -1 and err if the file is damaged. */
ssize_t seekable_pread(struct seekable_reader *r, void *to, size_t n, uint64_t offset, struct error *err);

#endif
