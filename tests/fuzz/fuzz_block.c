/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arbitrary bytes as a block of the index: the first 4 are its number. The checksum is corrected, to reach the code
 * after its check. Then every row is found and its frames are read.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "symbol-index/block.h"
#include "symbol-index/block_bits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads each row with both readers: they must accept the same rows and return the same values. */
static void compare_readers(const struct block *b, struct symbol_frame *frames, struct symbol_frame *others)
{
        struct block_rows *rows = calloc(1, sizeof *rows);
        uint32_t count, scope, line;

        if (!rows)
                abort();
        if (block_unpack(b, rows) == ST_OK) {
                for (uint32_t i = 0; i < rows->row_count; i++) {
                        struct block_cursor cursor;
                        uint32_t row;
                        uint64_t end;

                        block_cursor_init(&cursor, b);
                        if (block_get_frames(b, &cursor, i, frames, &count) ||
                            count != block_row_frames(rows, i, others))
                                abort();
                        for (uint32_t k = 0; k < count; k++)
                                if (frames[k].function != others[k].function || frames[k].file != others[k].file ||
                                    frames[k].line != others[k].line || frames[k].inlined != others[k].inlined ||
                                    frames[k].start_line != others[k].start_line)
                                        abort();
                        if (block_get_row_scope(b, &cursor, i, &scope, &line) ||
                            count != block_scope_frames(rows, scope, line, others) ||
                            (count && frames[0].line != others[0].line))
                                abort();
                        if (block_seek(b, &cursor, rows->starts[i], &row, &end) || row != i ||
                            end != (i + 1 < rows->row_count ? rows->starts[i + 1] : rows->end))
                                abort();
                        if (block_row_find(rows, rows->starts[i], 0) != i ||
                            (end - 1 < UINT32_MAX && block_row_find(rows, (uint32_t)(end - 1), i) != i))
                                abort();
                }
        }
        free(rows);
}

static void walk_block(const struct block *b)
{
        struct symbol_frame *frames = calloc(b->node_count + 1u, sizeof *frames);
        struct symbol_frame *others = calloc(b->node_count + 1u + BLOCK_CHAIN, sizeof *others);
        struct block_cursor cursor;
        uint64_t offset = 0;
        uint32_t row, count;

        if (!frames || !others)
                abort();
        block_cursor_init(&cursor, b);
        for (uint32_t i = 0; i < b->row_count; i++)
                if (block_get_frames(b, &cursor, i, frames, &count) == ST_OK && count > b->node_count + 1u)
                        abort();
        for (unsigned steps = 0; steps < 100000; steps++) {
                uint64_t end;

                if (block_seek(b, &cursor, offset, &row, &end))
                        break;
                if (row >= b->row_count)
                        abort();
                if (end <= offset || end > b->span)
                        break;
                offset = end + (steps % 3 == 0 ? (end - offset) / 2 : 0);
                if (offset > b->span)
                        break;
        }
        for (unsigned i = 0; i < 64; i++) {
                uint64_t end;

                block_cursor_init(&cursor, b);
                offset = b->span / 64 * i;
                if (block_seek(b, &cursor, offset, &row, &end) == ST_OK && row >= b->row_count)
                        abort();
        }
        compare_readers(b, frames, others);
        free(frames);
        free(others);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct block b;
        uint64_t checksum;
        uint32_t number;
        uint8_t *copy;

        if (size < sizeof number + BLOCK_CHECKSUM_BYTES)
                return 0;
        memcpy(&number, data, sizeof number);
        number = be32toh(number);
        size -= sizeof number;
        /* An exact copy on the heap, so that reads past the end are detected. */
        copy = malloc(size);
        if (!copy)
                abort();
        memcpy(copy, data + sizeof number, size);
        checksum = htole64(hash_bytes64(copy, size - sizeof checksum) ^ number);
        memcpy(copy + size - sizeof checksum, &checksum, sizeof checksum);
        if (block_open(&b, number, copy, size, NULL) == ST_OK)
                walk_block(&b);
        free(copy);
        return 0;
}
