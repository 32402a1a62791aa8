/* SPDX-License-Identifier: Apache-2.0 */
#define ERROR_BODIES /* declarations of the functions, not the macros for the analyzer */
#include "common/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

PRINTF(5, 0)
static enum status error_fill(struct error *err, enum status code, int os_errno, uint64_t offset, const char *fmt,
                              va_list args)
{
        if (!err)
                return code;
        err->code = code;
        err->os_errno = os_errno;
        err->offset = offset;
        err->reason = 0;
        vsnprintf(err->text, sizeof err->text, fmt, args);
        return code;
}

enum status error_set(struct error *err, enum status code, const char *fmt, ...)
{
        va_list args;

        va_start(args, fmt);
        error_fill(err, code, 0, 0, fmt, args);
        va_end(args);
        return code;
}

enum status error_at(struct error *err, enum status code, uint64_t offset, const char *fmt, ...)
{
        va_list args;

        va_start(args, fmt);
        error_fill(err, code, 0, offset, fmt, args);
        va_end(args);
        return code;
}

enum status error_refuse(struct error *err, enum status code, unsigned reason, const char *fmt, ...)
{
        va_list args;

        va_start(args, fmt);
        error_fill(err, code, 0, 0, fmt, args);
        va_end(args);
        return error_add_reason(err, code, reason);
}

enum status error_add_reason(struct error *err, enum status code, unsigned reason)
{
        if (err)
                err->reason = reason;
        return code;
}

static const char *os_error_advice(int os_errno)
{
        if (os_errno == ENOSPC || os_errno == EDQUOT)
                return "; make room there and try again";
        return os_errno == EROFS ? "; look for disk errors in the kernel's log, then remount it writable" : "";
}

/* The system error is always complete; the text before it is truncated if necessary. */
static void append_os_reason(struct error *err, int os_errno)
{
        char name[128], reason[sizeof name + 96];
        size_t used = strlen(err->text), size;

        size = (size_t)snprintf(reason, sizeof reason, ": %s%s", strerror_r(os_errno, name, sizeof name),
                                os_error_advice(os_errno));
        if (used + size >= sizeof err->text) {
                used = sizeof err->text - size - 4;
                memcpy(err->text + used, "...", 3);
                used += 3;
        }
        memcpy(err->text + used, reason, size + 1);
}

enum status error_os(struct error *err, int os_errno, const char *fmt, ...)
{
        enum status code = os_errno == ENOMEM ? ST_NO_MEMORY : ST_OS;
        va_list args;

        va_start(args, fmt);
        error_fill(err, code, os_errno, 0, fmt, args);
        va_end(args);
        if (err)
                append_os_reason(err, os_errno);
        return code;
}

enum status error_no_space(struct error *err, const char *fmt, ...)
{
        va_list args;

        va_start(args, fmt);
        error_fill(err, ST_OS, ENOSPC, 0, fmt, args);
        va_end(args);
        return ST_OS;
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
        case ST_TIMEOUT:
                return "timeout";
        }
        return "unknown";
}
