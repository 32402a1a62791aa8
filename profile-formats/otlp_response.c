/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/otlp.h"
#include "profile-formats/otlp_fields.h"
#include "profile-formats/wire.h"

void otlp_put_response(struct buf *ret, uint64_t rejected, const char *message)
{
        size_t partial;

        if (!rejected && !message)
                return;
        partial = wire_begin(ret, RESPONSE_PARTIAL_SUCCESS);
        wire_put_uint(ret, PARTIAL_REJECTED, rejected);
        wire_put_str(ret, PARTIAL_MESSAGE, message ? message : "");
        wire_end(ret, partial);
}

void otlp_put_status(struct buf *ret, uint32_t code, const char *message)
{
        wire_put_uint(ret, STATUS_CODE, code);
        wire_put_str(ret, STATUS_MESSAGE, message);
}
