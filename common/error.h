/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_ERROR_H
#define CAIRN_COMMON_ERROR_H

/**
 * @file
 * The result of every fallible call.
 *
 * The status tells the caller how to proceed; the optional struct error describes the failure and its byte offset.
 * Reporting a failure allocates nothing. Texts are lower case, without a full stop, failure first, subject quoted:
 * "cannot read 'FILE': section .eh_frame ends at 0x1f20".
 *
 * Threads: a struct error belongs to one thread.
 */
#include <stdarg.h>
#include <stdint.h>

enum status {
        ST_OK = 0,
        ST_NOT_FOUND = -1,   /* a valid request without a result */
        ST_BAD_DATA = -2,    /* the input breaks its format; do not retry */
        ST_TOO_BIG = -3,     /* a named limit (common/limits.h) was hit */
        ST_UNSUPPORTED = -4, /* valid, but not supported */
        ST_NO_MEMORY = -5,
        ST_OS = -6,      /* see os_errno */
        ST_BUSY = -7,    /* try again later */
        ST_USAGE = -8,   /* the caller's or the user's request is wrong */
        ST_TIMEOUT = -9, /* deadline passed or work cancelled (common/threads/deadline.h) */
};

struct error {
        enum status code;
        int os_errno;
        uint64_t offset; /* byte offset in the input where it was detected; 0: none */
        unsigned reason; /* a value that the failed function's header lists, in addition to the status; 0: none */
        char text[240];
};

#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/** Fill err (NULL is allowed) and return code. */
enum status error_set(struct error *err, enum status code, const char *fmt, ...) PRINTF(3, 4);

/** Like error_set(), with the byte offset of the error in the input. */
enum status error_at(struct error *err, enum status code, uint64_t offset, const char *fmt, ...) PRINTF(4, 5);

/** Like error_set(), with a reason. */
enum status error_refuse(struct error *err, enum status code, unsigned reason, const char *fmt, ...) PRINTF(4, 5);

/** Set the reason of a filled err (NULL is allowed). Returns its code. */
enum status error_add_reason(struct error *err, enum status code, unsigned reason);

/** Fill err with a system error; the text gets ": " and strerror(os_errno) appended. Returns ST_OS, or ST_NO_MEMORY for
 * ENOMEM. */
enum status error_os(struct error *err, int os_errno, const char *fmt, ...) PRINTF(3, 4);

/** A disk or database is full: ST_OS with ENOSPC, and a text that says how to fix it. */
enum status error_no_space(struct error *err, const char *fmt, ...) PRINTF(2, 3);

/** Put "context: " in front of err's text; the code and the reason stay. Returns the code. */
enum status error_prefix(struct error *err, enum status code, const char *fmt, ...) PRINTF(3, 4);

/** ST_NO_MEMORY with a fixed text. */
enum status error_no_memory(struct error *err);

/** A short stable name of a status: "bad data", "too big", ... */
const char *status_name(enum status code);

/*
 * The functions above always return a failure. A static analyzer does not see their bodies, would also assume ST_OK,
 * and would report false positives.
 */
#if defined(__clang_analyzer__) && !defined(ERROR_BODIES)
#define error_set(err, code, ...) (error_set(err, code, __VA_ARGS__), (code))
#define error_at(err, code, ...) (error_at(err, code, __VA_ARGS__), (code))
#define error_refuse(err, code, ...) (error_refuse(err, code, __VA_ARGS__), (code))
#define error_prefix(err, code, ...) (error_prefix(err, code, __VA_ARGS__), (code))
#define error_os(...) (error_os(__VA_ARGS__), ST_OS)
#define error_no_space(...) (error_no_space(__VA_ARGS__), ST_OS)
#define error_no_memory(err) (error_no_memory(err), ST_NO_MEMORY)
#endif

#endif
