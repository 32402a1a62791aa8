/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_SOURCE_BYTES_H
#define CAIRN_SYMBOLIZER_SOURCE_BYTES_H

/**
 * @file
 * What a file holds at an address, by its section headers; by its segments
 * only when it has no section headers. In split debug files the segments tell
 * where bytes were before the split, and most sections are without content.
 */
#include "elf-image/elf_image.h"

/** A run of data (not code) with its bytes, borrowed. */
struct source_piece {
        uint64_t address;
        const uint8_t *bytes;
        size_t size;
        bool writable;
};

/** Begin with *cursor 0; false at the end. */
bool source_next_piece(const struct elf_image *img, size_t *cursor, struct source_piece *ret);

/** n bytes of data at address, borrowed, all in one piece. */
bool source_bytes_at(const struct elf_image *img, uint64_t address, uint64_t n, const uint8_t **ret);

#endif
