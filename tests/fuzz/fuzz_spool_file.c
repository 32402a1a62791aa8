/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <string.h>

#include "sending/spool_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        uint8_t header[SPOOL_FILE_HEADER_BYTES];
        struct spool_batch b;

        if (spool_file_parse(data, size, 1, "input", &b, NULL))
                return 0;
        assert(spool_file_judge_version(data) == SPOOL_VERSION_OWN);
        assert(b.payload >= data && b.payload + b.payload_size == data + size);
        spool_file_write_header(&b, header);
        assert(memcmp(header, data, sizeof header) == 0);
        return 0;
}
