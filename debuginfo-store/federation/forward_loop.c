/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo-store/federation/forward_loop.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define NAME_PREFIX "_cairn-"

enum status forward_loop_make_name(char ret[static FORWARDED_NAME_SIZE], struct error *err)
{
        uint64_t random;

        if (getrandom(&random, sizeof random, 0) != sizeof random)
                return error_os(err, errno, "cannot generate a name for this service");
        snprintf(ret, FORWARDED_NAME_SIZE, NAME_PREFIX "%016" PRIx64, random);
        return ST_OK;
}

static bool is_service_name(const char *item, size_t n)
{
        return n == FORWARDED_NAME_SIZE - 1 && strncmp(item, NAME_PREFIX, strlen(NAME_PREFIX)) == 0;
}

enum status forward_loop_check(const char *header, const char *self, struct forward_list *ret, struct error *err)
{
        size_t via_size = 0, size = header ? strlen(header) : 0;
        unsigned hops = 0;

        if (size + 2 + FORWARDED_NAME_SIZE > sizeof ret->header)
                return error_set(err, ST_TOO_BIG, "the X-Forwarded-For header has %zu bytes", size);
        for (const char *at = header; size && at; at = strchr(at, ',')) {
                size_t n;

                at += *at == ',';
                at += strspn(at, " \t");
                n = strcspn(at, ", \t");
                if (++hops >= FORWARD_LIMIT)
                        return error_set(err, ST_TOO_BIG, "the request was forwarded by %u servers", hops);
                if (!is_service_name(at, n))
                        continue;
                if (strncmp(at, self, n) == 0)
                        return error_set(err, ST_TOO_BIG, "the request was forwarded by this service before");
                memcpy(ret->via + via_size, at, n);
                via_size += n;
        }
        ret->via[via_size] = '\0';
        snprintf(ret->header, sizeof ret->header, "%s%s%s", size ? header : "", size ? ", " : "", self);
        return ST_OK;
}

bool forward_loop_is_from_service(const char *header)
{
        const char *last = header ? strrchr(header, ',') : NULL;

        last = last ? last + 1 : header;
        if (!last)
                return false;
        last += strspn(last, " \t");
        return is_service_name(last, strcspn(last, " \t"));
}
