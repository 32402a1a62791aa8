/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <string.h>

#include "profile-store/queue/head_page.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A page that is read whole is written again, byte for byte. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_buf_ struct buf again;
        struct head_page_writer w = { .to = &again };
        struct head_page_reader r;
        struct raw_record record;
        bool found = true;
        uint64_t before = 0;

        buf_init(&again, size + 1024);
        if (head_page_read(&r, data, size, NULL))
                return 0;
        head_page_write_header(&again, &r.header);
        while (found) {
                if (head_page_next(&r, &record, &found, NULL))
                        return 0;
                if (!found)
                        break;
                assert(record.position > before && record.position <= r.header.last);
                before = record.position;
                head_page_write_record(&w, &record);
        }
        assert(!again.failed && again.size <= size);
        return 0;
}
