/* SPDX-License-Identifier: Apache-2.0 */
#include "common/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

PRINTF(5, 0)
static enum status fill(struct error *err, enum status code, int os_errno, uint64_t offset, const char *fmt,
                        va_list args)
{
        if (!err)
                return code;
        err->code = code;
        err->os_errno = os_errno;
        err->offset = offset;
        vsnprintf(err->text, sizeof err->text, fmt, args);
        return code;
}

enum status error_set(struct error *err, enum status code, const char *fmt, ...)
{
        va_list args;

        va_start(args, fmt);
        fill(err, code, 0, 0, fmt, args);
        va_end(args);
        return code;
}

enum status error_at(struct error *err, enum status code, uint64_t offset, const char *fmt, ...)
{
        va_list args;

        va_start(args, fmt);
        fill(err, code, 0, offset, fmt, args);
        va_end(args);
        return code;
}

enum status error_os(struct error *err, int os_errno, const char *fmt, ...)
{
        enum status code = os_errno == ENOMEM ? ST_NO_MEMORY : ST_OS;
        va_list args;
        size_t used;

        va_start(args, fmt);
        fill(err, code, os_errno, 0, fmt, args);
        va_end(args);
        if (err) {
                char name[128];

                used = strlen(err->text);
                snprintf(err->text + used, sizeof err->text - used, ": %s",
                         strerror_r(os_errno, name, sizeof name));
        }
        return code;
}

enum status error_prefix(struct error *err, enum status code, const char *fmt, ...)
{
        char inner[sizeof err->text];
        va_list args;
        size_t used;

        if (!err)
                return code;
        memcpy(inner, err->text, sizeof inner);
        va_start(args, fmt);
        vsnprintf(err->text, sizeof err->text, fmt, args);
        va_end(args);
        used = strlen(err->text);
        snprintf(err->text + used, sizeof err->text - used, ": %s", inner);
        return code;
}

enum status error_no_memory(struct error *err)
{
        return error_set(err, ST_NO_MEMORY, "out of memory");
}

const char *status_name(enum status code)
{
        switch (code) {
        case ST_OK:
                return "ok";
        case ST_NOT_FOUND:
                return "not found";
        case ST_BAD_DATA:
                return "bad data";
        case ST_TOO_BIG:
                return "too big";
        case ST_UNSUPPORTED:
                return "unsupported";
        case ST_NO_MEMORY:
                return "out of memory";
        case ST_OS:
                return "system error";
        case ST_BUSY:
                return "busy";
        case ST_USAGE:
                return "usage";
        }
        return "unknown";
}
