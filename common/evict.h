/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_EVICT_H
#define CAIRN_COMMON_EVICT_H

#include <stdint.h>

/** Remove regular files below a directory, by their time of change the oldest first, until all take at most max_bytes. */
void evict_oldest(const char *directory, uint64_t max_bytes);

#endif
