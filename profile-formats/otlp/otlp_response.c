/* SPDX-License-Identifier: Apache-2.0 */
#include "common/limits.h"
#include "profile-formats/otlp/otlp.h"
#include "profile-formats/proto/grpc_status.pb-c.h"
#include "profile-formats/proto/otlp_service.pb-c.h"
#include "profile-formats/proto_message.h"

#define RESPONSE_MEMORY_BYTES MiB(16)

void otlp_put_response(struct buf *ret, uint64_t rejected, const char *message)
{
        Otlp__ExportProfilesServiceResponse response = OTLP__EXPORT_PROFILES_SERVICE_RESPONSE__INIT;
        Otlp__ExportProfilesPartialSuccess partial = OTLP__EXPORT_PROFILES_PARTIAL_SUCCESS__INIT;

        if (rejected || message) {
                partial.rejected_profiles = (int64_t)rejected;
                partial.error_message = (char *)(message ? message : "");
                response.partial_success = &partial;
        }
        proto_message_append(ret, &response.base);
}

enum status otlp_read_response(const void *data, size_t n, struct otlp_response *ret, struct error *err)
{
        _cleanup_arena_ struct arena memory;
        const Otlp__ExportProfilesServiceResponse *response;
        const void *message;
        enum status st;

        arena_init(&memory, RESPONSE_MEMORY_BYTES);
        st = proto_message_decode(&otlp__export_profiles_service_response__descriptor, data, n, &memory, "response",
                                  &message, err);
        if (st)
                return st;
        response = message;
        *ret = (struct otlp_response){ 0 };
        if (response->partial_success) {
                if (response->partial_success->rejected_profiles > 0)
                        ret->rejected = (uint64_t)response->partial_success->rejected_profiles;
                snprintf(ret->message, sizeof ret->message, "%s", response->partial_success->error_message);
        }
        return ST_OK;
}

void otlp_put_status(struct buf *ret, uint32_t code, const char *message)
{
        GrpcStatus__Status status = GRPC_STATUS__STATUS__INIT;

        status.code = (int32_t)code;
        status.message = (char *)message;
        proto_message_append(ret, &status.base);
}
