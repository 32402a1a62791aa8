/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SCAN_CACHE_H
#define CAIRN_SCAN_CACHE_H

/**
 * @file
 * Files made on demand, out of archives for example, and kept while there is
 * room: what was used last stays. Who asks for one that is being made waits for
 * it. The cache is empty at each start.
 *
 * Threads: any.
 */
#include <stdatomic.h>
#include <stdint.h>

#include "common/error.h"

#define SCAN_CACHE_KEY_SIZE 40

struct scan_cache;

/** @param dir is emptied. @param max_bytes of all files together; a longer one is handed out and not kept. */
enum status scan_cache_open(const char *dir, uint64_t max_bytes, struct scan_cache **ret, struct error *err) MUST_CHECK;
/** Nobody uses it any more. NULL is allowed. */
void scan_cache_close(struct scan_cache *c);

/**
 * Write a file: out is empty. Runs on the thread that asked first; a failure goes to all who wait. It must not ask the
 * cache for another file: few are made at one time, and makers that wait for each other's places wait for ever.
 */
typedef enum status scan_cache_make(void *context, int out, const atomic_bool *cancel, struct error *err);

/**
 * @param key    a file name, shorter than SCAN_CACHE_KEY_SIZE.
 * @param fd_ret of a file that stays whole as long as it is open; owned.
 * @return what make returned; ST_BUSY when cancelled; ST_OS when a file cannot be made or opened, and stays as it is.
 */
enum status scan_cache_get(struct scan_cache *c, const char *key, scan_cache_make *make, void *context,
                           const atomic_bool *cancel, int *fd_ret, struct error *err) MUST_CHECK;

/** ST_NOT_FOUND when it is not there now; ST_OS when it cannot be opened. */
enum status scan_cache_look(struct scan_cache *c, const char *key, int *fd_ret) MUST_CHECK;

#endif
