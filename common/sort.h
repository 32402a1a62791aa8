/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_SORT_H
#define CAIRN_COMMON_SORT_H

#include <stddef.h>

/**
 * Sort elements of 24 bytes by the uint64_t they begin with: in place, without allocation, in linear time for any
 * input. Not stable.
 */
void sort_by_start(void *elements, size_t count, size_t element_size);

#endif
