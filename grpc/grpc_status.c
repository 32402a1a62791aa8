/* SPDX-License-Identifier: Apache-2.0 */
#include "grpc/grpc_status.h"

#include <openssl/evp.h>
#include <string.h>

#include "common/limits.h"
#include "profile-formats/proto/grpc_status.pb-c.h"
#include "profile-formats/proto_message.h"

#define RETRY_INFO_TYPE "type.googleapis.com/google.rpc.RetryInfo"

unsigned grpc_code_to_http(enum grpc_code code)
{
        static const unsigned short codes[GRPC_CODES] = {
                [GRPC_OK] = 200,
                [GRPC_CANCELLED] = 499,
                [GRPC_UNKNOWN] = 500,
                [GRPC_INVALID_ARGUMENT] = 400,
                [GRPC_DEADLINE_EXCEEDED] = 504,
                [GRPC_NOT_FOUND] = 404,
                [GRPC_ALREADY_EXISTS] = 409,
                [GRPC_PERMISSION_DENIED] = 403,
                [GRPC_RESOURCE_EXHAUSTED] = 429,
                [GRPC_FAILED_PRECONDITION] = 400,
                [GRPC_ABORTED] = 409,
                [GRPC_OUT_OF_RANGE] = 400,
                [GRPC_UNIMPLEMENTED] = 501,
                [GRPC_INTERNAL] = 500,
                [GRPC_UNAVAILABLE] = 503,
                [GRPC_DATA_LOSS] = 500,
                [GRPC_UNAUTHENTICATED] = 401,
        };

        return codes[code];
}

enum grpc_code grpc_code_from_status(enum status st)
{
        switch (st) {
        case ST_OK:
                return GRPC_OK;
        case ST_BAD_DATA:
        case ST_USAGE:
                return GRPC_INVALID_ARGUMENT;
        case ST_NOT_FOUND:
                return GRPC_NOT_FOUND;
        case ST_TOO_BIG:
                return GRPC_RESOURCE_EXHAUSTED;
        case ST_UNSUPPORTED:
                return GRPC_UNIMPLEMENTED;
        case ST_TIMEOUT:
                return GRPC_DEADLINE_EXCEEDED;
        case ST_BUSY:
        case ST_NO_MEMORY:
        case ST_OS:
                return GRPC_UNAVAILABLE;
        }
        return GRPC_INTERNAL;
}

bool parse_grpc_timeout(const char *text, int64_t *ns_ret)
{
        static const struct {
                char name;
                int64_t ns;
        } units[] = { { 'H', 3600000000000 }, { 'M', 60000000000 }, { 'S', 1000000000 },
                      { 'm', 1000000 },       { 'u', 1000 },        { 'n', 1 } };
        size_t digits = strspn(text, "0123456789");
        int64_t number = 0;

        if (digits == 0 || digits > 8 || !text[digits] || text[digits + 1])
                return false;
        for (size_t i = 0; i < digits; i++)
                number = number * 10 + (text[i] - '0');
        for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
                if (units[i].name != text[digits])
                        continue;
                if (__builtin_mul_overflow(number, units[i].ns, ns_ret))
                        *ns_ret = INT64_MAX;
                return true;
        }
        return false;
}

void put_grpc_message(struct buf *to, const char *text)
{
        for (const char *p = text; *p; p++) {
                if (*p >= ' ' && *p <= '~' && *p != '%')
                        buf_append(to, p, 1);
                else
                        buf_printf(to, "%%%02X", (unsigned char)*p);
        }
}

void put_grpc_status_details(struct buf *to, enum grpc_code code, const char *text, uint64_t retry_after_s)
{
        GrpcStatus__Duration delay = GRPC_STATUS__DURATION__INIT;
        GrpcStatus__RetryInfo info = GRPC_STATUS__RETRY_INFO__INIT;
        GrpcStatus__Any any = GRPC_STATUS__ANY__INIT, *details[] = { &any };
        GrpcStatus__Status status = GRPC_STATUS__STATUS__INIT;
        _cleanup_buf_ struct buf retry_info, message;
        uint8_t *at;
        size_t n;

        buf_init(&retry_info, 64);
        buf_init(&message, KiB(4));
        status.code = (int32_t)code;
        status.message = (char *)text;
        if (retry_after_s) {
                delay.seconds = (int64_t)retry_after_s;
                info.retry_delay = &delay;
                proto_message_append(&retry_info, &info.base);
                any.type_url = RETRY_INFO_TYPE;
                any.value = proto_bytes(retry_info.data, retry_info.size);
                status.details = details;
                status.n_details = 1;
        }
        proto_message_append(&message, &status.base);
        at = buf_reserve(to, message.size / 3 * 4 + 5);
        if (!at)
                return;
        n = (size_t)EVP_EncodeBlock(at, message.data, (int)message.size);
        while (n && at[n - 1] == '=') /* binary headers are sent without padding */
                n--;
        buf_commit(to, n);
}
