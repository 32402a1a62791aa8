/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PACKAGE_TREES_EXTRACTED_CACHE_H
#define CAIRN_PACKAGE_TREES_EXTRACTED_CACHE_H

/**
 * @file
 * LRU cache of files that are generated on demand, such as members of archives. Single flight: concurrent requests for
 * a file wait for its one generation. The cache is emptied at start.
 *
 * Threads: any.
 */
#include <stdatomic.h>
#include <stdint.h>

#include "common/error.h"

#define EXTRACTED_CACHE_KEY_SIZE 40

struct extracted_cache;

/** @param dir emptied first. @param max_bytes of all files; a larger file is returned without being cached. */
enum status extracted_cache_open(const char *dir, uint64_t max_bytes, struct extracted_cache **ret,
                                 struct error *err) MUST_CHECK;
/** No thread may use the cache. NULL is allowed. */
void extracted_cache_close(struct extracted_cache *c);

/**
 * Write a file to out, which is empty. Runs on the first requester's thread; a failure is returned to all waiting
 * requesters. It must not call extracted_cache_get(): the number of concurrent makers is limited, so nested calls could
 * deadlock.
 */
typedef enum status extracted_cache_make(void *context, int out, const atomic_bool *cancel, struct error *err);

/**
 * @param key    a file name, shorter than EXTRACTED_CACHE_KEY_SIZE.
 * @param fd_ret owned; the file remains readable after its eviction.
 * @return the status of make; ST_BUSY when cancelled; ST_OS if a file cannot be created or opened.
 */
enum status extracted_cache_get(struct extracted_cache *c, const char *key, extracted_cache_make *make, void *context,
                                const atomic_bool *cancel, int *fd_ret, struct error *err) MUST_CHECK;

/** Open a file if it is cached. ST_NOT_FOUND if it is not; ST_OS if it cannot be opened. */
enum status extracted_cache_open_ready(struct extracted_cache *c, const char *key, int *fd_ret) MUST_CHECK;

#endif
