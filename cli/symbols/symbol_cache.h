/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_SYMBOLS_SYMBOL_CACHE_H
#define CAIRN_CLI_SYMBOLS_SYMBOL_CACHE_H

/**
 * @file
 * Cache of symcaches on disk (docs/formats/symcache.md, "The cache").
 *
 * An unusable cache is treated as empty; no function reports an error. The directory and each symcache must be owned by
 * the effective user and writable by no other, so root leaves no files in the cache of the calling user, and no other
 * user can plant one.
 *
 * Nothing is synced: a symcache truncated by a power failure is detected by its checksums and replaced.
 *
 * Threads: a cache belongs to one thread. Processes share a directory: symcaches are created by rename and never
 * modified.
 */
#include <stdbool.h>
#include <stdint.h>

#include "common/hash/sha256.h"
#include "symbolizer/extraction/extract.h"
#include "symbolizer/formats/symcache.h"

#define SYMBOL_CACHE_SUFFIX ".symcache"
#define SYMBOL_CACHE_TEMPORARY ".tmp-"

/** LRU eviction: remove the least recently used symcaches until the rest takes at most max_bytes of disk and is quick
 * to list, and temporary files older than an hour. Other files are left alone. Processes that use a removed symcache
 * keep it open. */
void symbol_cache_evict(int directory_fd, uint64_t max_bytes);

struct symbol_cache {
        int directory_fd; /* -1: no cache */
        bool is_settled;  /* the files changed long enough ago that a later change will be visible */
        char name[SHA256_HEX_MAX + sizeof SYMBOL_CACHE_SUFFIX]; /* file name of the symcache */
};

/**
 * Open the cache for these inputs: $CAIRN_CACHE_DIR, else $XDG_CACHE_HOME/cairn, else $HOME/.cache/cairn.
 * The key covers the files (device, inode, size, mtime, ctime, build-id) and this program's binary.
 */
void symbol_cache_open(const struct extract_inputs *in, struct symbol_cache *ret);
void symbol_cache_close(struct symbol_cache *c);

/**
 * Look the inputs up. False: absent, or damaged and removed.
 * @param ret  symcache_close().
 */
bool symbol_cache_get(struct symbol_cache *c, struct symcache *ret);

/** Store a symcache, evicting others so that all take at most max_bytes. */
void symbol_cache_put(struct symbol_cache *c, const struct symcache *symcache, uint64_t max_bytes);

/** Remove a symcache that turned out to be damaged. */
void symbol_cache_drop(struct symbol_cache *c);

#endif
