/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker that fetches says through its pipe, when whoever it asked has
 * taken it over: messages one behind the other, the last one cut off. The
 * first eight bytes are the limit of the file.
 */
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "debuginfo-store/fetch_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_be_shown(const char *text, size_t size)
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
                must_be_shown(m.response.name, sizeof m.response.name);
                must_be_shown(m.text, sizeof m.text);
                if (m.type > FETCH_FAILED || m.response.received_bytes > max_bytes ||
                    m.response.retry_after_s > LIMIT_UPSTREAM_PAUSE_S)
                        abort();
        }
        return 0;
}
