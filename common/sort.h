/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_SORT_H
#define CAIRN_COMMON_SORT_H

#include <stddef.h>

/**
 * Sort elements of 24 bytes that begin with a uint64_t by it: in place, without
 * memory, in linear time whatever the input. Equal ones come in any order.
 */
void sort_by_start(void *elements, size_t count, size_t element_size);

#endif
