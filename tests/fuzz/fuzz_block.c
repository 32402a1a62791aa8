/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a block of the index: the first 12 are the key. The checksum is
 * made right, so that what lies behind it is reached; then every row is found
 * and its frames are read.
 */
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "symbolizer/block.h"
#include "symbolizer/block_bits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk(const struct block *b)
{
        struct symbol_frame *frames = calloc(b->node_count + 1u, sizeof *frames);
        struct block_cursor cursor = { 0 };
        uint64_t address = b->base;
        uint32_t row, count;

        if (!frames)
                abort();
        for (uint32_t i = 0; i < b->row_count; i++)
                if (block_frames(b, i, frames, &count) == ST_OK && count > b->node_count + 1u)
                        abort();
        for (unsigned steps = 0; steps < 100000; steps++) {
                uint64_t end;

                if (block_seek(b, &cursor, address, &row, &end))
                        break;
                if (row >= b->row_count)
                        abort();
                if (end <= address || end > b->last)
                        break;
                address = end + (steps % 3 == 0 ? (end - address) / 2 : 0);
                if (address > b->last)
                        break;
        }
        for (unsigned i = 0; i < 64; i++) {
                uint64_t end;

                cursor = (struct block_cursor){ 0 };
                address = b->base + (b->last - b->base) / 64 * i;
                if (block_seek(b, &cursor, address, &row, &end) == ST_OK && row >= b->row_count)
                        abort();
        }
        free(frames);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct block b;
        uint64_t checksum;
        uint8_t *copy;

        if (size < BLOCK_KEY_BYTES + BLOCK_CHECKSUM_BYTES)
                return 0;
        size -= BLOCK_KEY_BYTES;
        copy = malloc(size);
        if (!copy)
                abort();
        memcpy(copy, data + BLOCK_KEY_BYTES, size);
        if (block_open(&b, data, copy, size, NULL) == ST_OK)
                walk(&b);
        checksum = htole64(hash64(copy, size - BLOCK_CHECKSUM_BYTES) ^ hash64(data, BLOCK_KEY_BYTES));
        memcpy(copy + size - BLOCK_CHECKSUM_BYTES, &checksum, sizeof checksum);
        if (block_open(&b, data, copy, size, NULL) == ST_OK)
                walk(&b);
        free(copy);
        return 0;
}
