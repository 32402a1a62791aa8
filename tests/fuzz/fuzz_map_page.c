/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arbitrary bytes as a map page of the index: the first 12 are the key. The checksum is corrected. Then every entry is
 * read, and positions between entries are looked up.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "symbol-index/block_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk_page(const struct map_page *page)
{
        for (uint32_t i = 0; i < page->count; i++) {
                uint64_t start = map_page_start(page, i);

                (void)map_page_block(page, i);
                for (uint32_t from = 0; from < page->count; from += 7)
                        for (uint64_t address = start - 1; address != start + 2; address++) {
                                uint32_t found = map_page_find(page, from, address);

                                if (found > page->count || (found < page->count && found < from))
                                        abort();
                                if (found < page->count && map_page_start(page, found) > address)
                                        abort();
                        }
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct map_page page;
        uint64_t checksum;
        uint8_t *copy;

        if (size < MAP_KEY_BYTES + MAP_CHECKSUM_BYTES)
                return 0;
        size -= MAP_KEY_BYTES;
        /* An exact copy on the heap, so that reads past the end are detected. */
        copy = malloc(size);
        if (!copy)
                abort();
        memcpy(copy, data + MAP_KEY_BYTES, size);
        checksum = hash_bytes64(copy, size - sizeof checksum) ^ hash_bytes64(data, MAP_KEY_BYTES);
        checksum = htole64(checksum);
        memcpy(copy + size - sizeof checksum, &checksum, sizeof checksum);
        if (map_page_open(&page, data, MAP_KEY_BYTES, copy, size, NULL) == ST_OK)
                walk_page(&page);
        free(copy);
        return 0;
}
