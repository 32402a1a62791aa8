/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary bytes as a filter of build-ids, with a right checksum or without: lookups stay within the file. */
#include <string.h>

#include "common/bytes.h"
#include "common/hash.h"
#include "debuginfo-store/build_id_filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static uint8_t file[4096];
        struct build_id_filter f;
        struct build_id id = { .size = 20 };
        size_t n = size < sizeof file ? size : sizeof file;

        if (n)
                memcpy(file, data, n);
        if (n >= BUILD_ID_FILTER_HEADER_BYTES) {
                uint64_t parts[2] = { htole64(hash_bytes64(file, BUILD_ID_FILTER_HEADER_BYTES - 8)),
                                      htole64(hash_bytes64(file + BUILD_ID_FILTER_HEADER_BYTES,
                                                           n - BUILD_ID_FILTER_HEADER_BYTES)) };

                if (n % 2)
                        store_le64(file + BUILD_ID_FILTER_HEADER_BYTES - 8, hash_bytes64(parts, sizeof parts));
        }
        if (build_id_filter_open(file, n, &f, NULL))
                return 0;
        for (unsigned i = 0; i < 256; i++) {
                id.bytes[0] = (uint8_t)i;
                build_id_filter_may_contain(&f, &id);
        }
        return 0;
}
