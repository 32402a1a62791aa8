/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arbitrary bytes as a chunk of text ids of the index: the first 4 are its key. The checksum is corrected; accepted ids
 * are ascending and within bounds.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "symbol-index/text_hash_index.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_chunk(const struct text_hash_chunk *c)
{
        if (c->count > TEXT_CHUNK_ENTRIES || c->first > c->last)
                abort();
        for (uint32_t i = 0; i < c->count; i++)
                if (c->ids[i].hash < (i ? c->ids[i - 1].hash : c->first) || c->ids[i].hash > c->last)
                        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct text_hash_chunk *chunk = malloc(sizeof *chunk);
        uint64_t checksum;
        uint32_t last;
        uint8_t *copy;

        if (size < sizeof last + sizeof checksum) {
                free(chunk);
                return 0;
        }
        memcpy(&last, data, sizeof last);
        last = be32toh(last);
        size -= sizeof last;
        /* An exact copy on the heap, so that reads past the end are detected. */
        copy = malloc(size);
        if (!copy || !chunk)
                abort();
        memcpy(copy, data + sizeof last, size);
        checksum = htole64(hash_bytes64(copy, size - sizeof checksum) ^ last);
        memcpy(copy + size - sizeof checksum, &checksum, sizeof checksum);
        if (text_hash_chunk_open(chunk, last, copy, size, NULL) == ST_OK)
                check_chunk(chunk);
        free(copy);
        free(chunk);
        return 0;
}
