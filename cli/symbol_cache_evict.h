/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_SYMBOL_CACHE_EVICT_H
#define CAIRN_CLI_SYMBOL_CACHE_EVICT_H

#include <stdint.h>

#define SYMBOL_CACHE_SUFFIX ".book"
#define SYMBOL_CACHE_TEMPORARY ".tmp-"

/**
 * Remove books, by their time of change the oldest first, until those left take
 * at most max_bytes of disk and are not so many that listing them takes long;
 * and temporary files that somebody left an hour ago. Other files are left
 * alone. Whoever uses a removed book goes on with it.
 */
void symbol_cache_evict(int directory_fd, uint64_t max_bytes);

#endif
