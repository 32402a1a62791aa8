/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_SOURCE_POSITION_H
#define CAIRN_COMMON_SOURCE_POSITION_H

/**
 * @file
 * A place in a source file. Zeros are unknown. The discriminator distinguishes the blocks of one line.
 * Source: DWARF 5, 6.2.2.
 */
#include <stdint.h>

struct source_position {
        uint32_t line, column, discriminator;
};

#endif
