/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages that a fetch worker writes to its pipe after a response has compromised it: consecutive messages, the
 * last one possibly truncated. The first eight bytes are the file size limit.
 */
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "debuginfo-store/federation/fetch_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require_displayable(const char *text, size_t size)
{
        if (!memchr(text, 0, size))
                abort();
        for (; *text; text++)
                if ((unsigned char)*text < ' ' || *text == 0x7f)
                        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct fetch_message m;
        uint64_t max_bytes;

        if (size < sizeof max_bytes)
                return 0;
        memcpy(&max_bytes, data, sizeof max_bytes);
        for (data += 8, size -= 8; size >= sizeof m; data += sizeof m, size -= sizeof m) {
                memcpy(&m, data, sizeof m);
                fetch_message_sanitize(&m, max_bytes);
                require_displayable(m.response.name, sizeof m.response.name);
                require_displayable(m.text, sizeof m.text);
                if (m.type > FETCH_FAILED || m.response.received_bytes > max_bytes ||
                    m.response.retry_after_s > LIMIT_UPSTREAM_PAUSE_S)
                        abort();
        }
        return 0;
}
