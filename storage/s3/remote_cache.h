/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_STORAGE_S3_REMOTE_CACHE_H
#define CAIRN_STORAGE_S3_REMOTE_CACHE_H

/**
 * @file
 * Parts of remote objects in local sparse files, so that maps of them are ordinary memory.
 *
 * An object has one file of its size; blocks of REMOTE_CACHE_BLOCK_BYTES are fetched when a range in them is required.
 * The least recently used objects are dropped when all present blocks together exceed the limit; objects in use stay,
 * so the cache may exceed it by those.
 *
 * The files stay for the next process (cache_files.h); those of a process that is killed stay as of the last release of
 * each object. When another process uses the directory, files have no names and go with this one.
 *
 * Threads: any. A fetch holds the object, not the cache.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"
#include "common/limits.h"
#include "common/files/file.h"
#include "storage/storage.h"

#define REMOTE_CACHE_BLOCK_BYTES KiB(64)
#define REMOTE_CACHE_GAP_BLOCKS 4 /* ranges that are this near are fetched together */

struct remote_cache;
struct remote_object;

/** @param dir  for the files; created. */
enum status remote_cache_create(const char *dir, uint64_t max_bytes, struct remote_cache **ret,
                                struct error *err) MUST_CHECK;
/** All objects have been released. Takes NULL. */
void remote_cache_destroy(struct remote_cache *c);

/** The object of a key, if it is known. @return release it; NULL when it is unknown. */
struct remote_object *remote_cache_get(struct remote_cache *c, const char *key);

/** Make an object known, none of whose bytes are present; one of the same key is replaced. @param ret  release it. */
enum status remote_cache_add(struct remote_cache *c, const char *key, const struct storage_info *info,
                             struct remote_object **ret, struct error *err) MUST_CHECK;

/** Forget the object of a key; those who have it keep it. */
void remote_cache_remove(struct remote_cache *c, const char *key);

/** Forget an object that is in use; its users keep it. */
void remote_cache_forget(struct remote_cache *c, struct remote_object *o);

void remote_cache_release(struct remote_cache *c, struct remote_object *o);

/** Borrowed until the release. */
const struct storage_info *remote_object_info(const struct remote_object *o);

/** Of the file, to read and map; borrowed until the release. */
int remote_object_fd(const struct remote_object *o);

/** Write the bytes of a range of the object of a key into fd, at their offset in the object. */
typedef enum status remote_cache_fetch(void *context, const char *key, const struct storage_info *info, int fd,
                                       const struct file_range *range, struct error *err);

/**
 * Make ranges within the object present; they stay until the release.
 * @param fetch  NULL: ST_OS with EREMOTEIO unless they are present.
 */
enum status remote_cache_require(struct remote_cache *c, struct remote_object *o, const struct file_range *ranges,
                                 size_t count, remote_cache_fetch *fetch, void *context, struct error *err) MUST_CHECK;

/**
 * Let ranges be fetched again when they are required next: what was fetched is not what was put.
 * @return false after REMOTE_CACHE_DROPS_MAX times: the object itself is damaged.
 */
bool remote_cache_drop(struct remote_cache *c, struct remote_object *o, const struct file_range *ranges, size_t count);
#define REMOTE_CACHE_DROPS_MAX 16

/** Note that a range was written into the file already. Blocks that it covers in part do not count. */
void remote_cache_note_present(struct remote_cache *c, struct remote_object *o, const struct file_range *range);

#endif
