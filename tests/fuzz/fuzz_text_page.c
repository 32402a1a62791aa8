/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arbitrary bytes as a page of texts of the index: the first 4 are its key. The checksum is corrected, to reach the
 * code after its check. Then every text is read and looked up.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/limits.h"
#include "symbol-index/text_page.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_texts(const struct text_page *page)
{
        for (uint32_t i = 0; i < page->count; i++) {
                uint32_t text_size;
                const char *text = text_page_get(page, i, &text_size);
                uint32_t found = text_page_find(page, text, text_size);

                if (text_size == 0 || text_size > LIMIT_NAME_BYTES || memchr(text, 0, text_size))
                        abort();
                if (found != UINT32_MAX && found >= page->count)
                        abort();
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct text_unpacker *unpacker;
        struct text_page *page;
        uint64_t checksum;
        uint32_t last;
        uint8_t *copy;

        if (size < sizeof last + sizeof checksum)
                return 0;
        memcpy(&last, data, sizeof last);
        last = be32toh(last);
        size -= sizeof last;
        /* An exact copy on the heap, so that reads past the end are detected. */
        copy = malloc(size);
        if (!copy || text_unpacker_create(&unpacker, NULL))
                abort();
        memcpy(copy, data + sizeof last, size);
        checksum = htole64(hash_bytes64(copy, size - sizeof checksum) ^ last);
        memcpy(copy + size - sizeof checksum, &checksum, sizeof checksum);
        if (text_page_unpack(unpacker, last, copy, size, &page, NULL) == ST_OK) {
                read_texts(page);
                free(page);
        }
        text_unpacker_destroy(unpacker);
        free(copy);
        return 0;
}
