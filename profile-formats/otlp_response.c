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

enum status otlp_read_response(const void *data, size_t n, uint64_t *rejected_ret, struct error *err)
{
        struct wire_field field, inner;
        uint64_t rejected = 0;
        struct reader r;

        reader_init(&r, data, n);
        while (wire_next(&r, &field)) {
                if (field.number != RESPONSE_PARTIAL_SUCCESS || field.type != WIRE_BYTES)
                        continue;
                while (wire_next(&field.bytes, &inner))
                        if (inner.number == PARTIAL_REJECTED && inner.type == WIRE_VARINT)
                                rejected = inner.value;
                if (field.bytes.failed)
                        return reader_error(&field.bytes, err, "partial success");
        }
        if (r.failed)
                return reader_error(&r, err, "response");
        *rejected_ret = rejected <= INT64_MAX ? rejected : 0; /* an int64 on the wire */
        return ST_OK;
}

void otlp_put_status(struct buf *ret, uint32_t code, const char *message)
{
        wire_put_uint(ret, STATUS_CODE, code);
        wire_put_str(ret, STATUS_MESSAGE, message);
}
