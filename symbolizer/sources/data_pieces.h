/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_SOURCES_DATA_PIECES_H
#define CAIRN_SYMBOLIZER_SOURCES_DATA_PIECES_H

/**
 * @file
 * Content of a file by address: by its section headers, or by its segments
 * only when it has no section headers. In split debug files the segments describe
 * the file before the split, and most sections have no content.
 */
#include "elf-image/elf_image.h"

/** A run of data (not code) with its bytes, borrowed. */
struct data_piece {
        uint64_t address;
        const uint8_t *bytes;
        size_t size;
        bool writable;
};

/** Begin with *cursor 0; false at the end. */
bool next_data_piece(const struct elf_image *img, size_t *cursor, struct data_piece *ret);

/** n bytes of data at address, borrowed, all in one piece. */
bool read_image_bytes(const struct elf_image *img, uint64_t address, uint64_t n, const uint8_t **ret);

#endif
