/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "profile-formats/wire.h"
#include "server/api/symbolize/symbolize_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_proto(const struct symbolize_request *r, struct buf *b)
{
        for (size_t i = 0, k = 0; i < r->object_count; i++) {
                size_t object = wire_begin(b, 1);

                wire_put_bytes(b, 1, r->objects[i].id.bytes, r->objects[i].id.size);
                for (; k < r->objects[i].end; k++)
                        wire_put_varint(b, 2, r->addresses[k]);
                wire_put_uint(b, 3, r->objects[i].file_offsets);
                wire_end(b, object);
        }
}

/* A decoded request is consistent, and survives a round trip through the other encoding. */
static void check_round_trip(const struct symbolize_request *r)
{
        struct symbolize_request again = { 0 };
        _cleanup_buf_ struct buf b;

        buf_init(&b, MiB(256));
        write_proto(r, &b);
        if (b.failed || symbolize_request_read_proto(b.data, b.size, &again, NULL) ||
            again.object_count != r->object_count || again.address_count != r->address_count ||
            (r->address_count && memcmp(again.addresses, r->addresses, r->address_count * sizeof *r->addresses) != 0))
                abort();
        for (size_t i = 0; i < r->object_count; i++)
                if (again.objects[i].end != r->objects[i].end ||
                    again.objects[i].file_offsets != r->objects[i].file_offsets ||
                    !build_id_equal(&again.objects[i].id, &r->objects[i].id))
                        abort();
        symbolize_request_deinit(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct symbolize_request r = { 0 };

        if (!symbolize_request_read_json(data, size, &r, NULL))
                check_round_trip(&r);
        symbolize_request_deinit(&r);
        if (!symbolize_request_read_proto(data, size, &r, NULL))
                check_round_trip(&r);
        symbolize_request_deinit(&r);
        return 0;
}
