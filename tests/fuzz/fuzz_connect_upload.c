/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a Connect client says before and after it sends debuginfo. The first
 * byte says how the rest is written (1: protobuf) and what it is (2: the
 * message with a file).
 */
#include <stdlib.h>
#include <string.h>

#include "server/routes/connect_question.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_end(const char *text, size_t size)
{
        if (!memchr(text, 0, size))
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct connect_question q;
        struct error err;

        if (!size)
                return 0;
        if (connect_question_read(data + 1, size - 1, data[0] & 1, data[0] & 2, &q, &err) && !err.text[0])
                abort();
        must_end(q.gnu_id, sizeof q.gnu_id);
        must_end(q.otel_id, sizeof q.otel_id);
        must_end(q.name, sizeof q.name);
        if (!(data[0] & 2) && (data[0] & 1) &&
            (q.otel_id[0] || q.name[0])) /* of a file, which the second message has not */
                abort();
        return 0;
}
