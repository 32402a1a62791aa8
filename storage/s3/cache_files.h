/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_STORAGE_S3_CACHE_FILES_H
#define CAIRN_STORAGE_S3_CACHE_FILES_H

/**
 * @file
 * The files of a cache of remote objects (remote_cache.h), which outlive the process: NUMBER.data is a sparse file of
 * the object's size, NUMBER.blocks says of which object it is and has a checksum for each block that is present.
 *
 * Nothing is synced: what a power cut or a damaged disk leaves does not have its checksum, and is then fetched again. A
 * directory is used by one cache at a time, which holds its lock.
 *
 * NUMBER.blocks: "cairnblk", version u32 = 1, size u64, modified u64, length of the key u32, key, length of the ETag
 * u32, ETag, then for each block its presence u8 and XXH3 u64, then the XXH3 u64 of all before. Little-endian.
 */
#include <stdbool.h>
#include <stdint.h>

#include "storage/storage.h"

#define CACHE_BLOCK_BYTES KiB(64)

/** What is known of the blocks of an object. */
struct cached_blocks {
        uint64_t number; /* of the files; 0: they have no names */
        char *key;       /* owned, as are the arrays */
        struct storage_info info;
        uint64_t count;
        uint8_t *present; /* a bit for each block */
        uint64_t *checksums;
};

/** Number of blocks of an object of this size. */
uint64_t count_cache_blocks(uint64_t size);

/** Allocate the arrays and copy key and info. */
enum status cached_blocks_init(struct cached_blocks *ret, const char *key, const struct storage_info *info,
                               struct error *err) MUST_CHECK;
void cached_blocks_deinit(struct cached_blocks *b);

/** @return the lock, to be closed; -1 when another cache uses the directory. */
int cache_files_lock(const char *dir);

/** Create the file of an object and set its number. Without a lock it has no name. @param fd_ret  owned. */
enum status cache_files_create(const char *dir, bool is_locked, struct cached_blocks *b, int *fd_ret,
                               struct error *err) MUST_CHECK;

/** Keep what is known of the blocks. A failure leaves the file for no other process. */
void cache_files_save(const char *dir, const struct cached_blocks *b);

void cache_files_remove(const char *dir, uint64_t number);

/** Takes blocks and descriptor. */
typedef enum status cache_files_take(void *context, struct cached_blocks *b, int fd, struct error *err);

/** Take all objects of an earlier process, those that were saved first before others; remove all other files. */
enum status cache_files_load(const char *dir, cache_files_take *take, void *context, struct error *err) MUST_CHECK;

#endif
