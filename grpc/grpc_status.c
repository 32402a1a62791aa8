/* SPDX-License-Identifier: Apache-2.0 */
#include "grpc/grpc_status.h"

#include <openssl/evp.h>
#include <string.h>

#include "common/limits.h"

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

/* Protobuf fields with numbers below 16. */
static void put_number_field(struct buf *to, unsigned field, uint64_t value)
{
        buf_append_u8(to, (uint8_t)(field << 3));
        buf_append_uleb128(to, value);
}

static void put_bytes_field(struct buf *to, unsigned field, const void *data, size_t n)
{
        buf_append_u8(to, (uint8_t)(field << 3 | 2));
        buf_append_uleb128(to, n);
        buf_append(to, data, n);
}

/* Any { type_url = 1, value = 2 } of RetryInfo { retry_delay = 1 } of Duration { seconds = 1 }. */
static void put_retry_info(struct buf *to, uint64_t seconds)
{
        _cleanup_buf_ struct buf duration, info, any;

        buf_init(&duration, 64);
        buf_init(&info, 64);
        buf_init(&any, 256);
        put_number_field(&duration, 1, seconds);
        put_bytes_field(&info, 1, duration.data, duration.size);
        put_bytes_field(&any, 1, RETRY_INFO_TYPE, strlen(RETRY_INFO_TYPE));
        put_bytes_field(&any, 2, info.data, info.size);
        put_bytes_field(to, 3, any.data, any.size);
}

void put_grpc_status_details(struct buf *to, enum grpc_code code, const char *text, uint64_t retry_after_s)
{
        _cleanup_buf_ struct buf status;
        uint8_t *at;
        size_t n;

        buf_init(&status, KiB(4));
        put_number_field(&status, 1, code);
        put_bytes_field(&status, 2, text, strlen(text));
        if (retry_after_s)
                put_retry_info(&status, retry_after_s);
        at = buf_reserve(to, status.size / 3 * 4 + 5);
        if (!at)
                return;
        n = (size_t)EVP_EncodeBlock(at, status.data, (int)status.size);
        while (n && at[n - 1] == '=') /* binary headers are sent without padding */
                n--;
        buf_commit(to, n);
}
