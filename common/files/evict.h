/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_FILES_EVICT_H
#define CAIRN_COMMON_FILES_EVICT_H

#include <stdint.h>

/**
 * LRU eviction: remove regular files below a directory, least recently modified first, until the rest uses at most
 * max_bytes.
 */
void evict_oldest_files(const char *directory, uint64_t max_bytes);

#endif
