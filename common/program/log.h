/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_PROGRAM_LOG_H
#define CAIRN_COMMON_PROGRAM_LOG_H

/**
 * @file
 * Log: one line per event on stderr, at most LOG_LINE_BYTES, so that a single write() is atomic and lines do not mix:
 *
 *     2026-01-31T12:00:00.123Z info store: text
 *     time=2026-01-31T12:00:00.123Z level=info subsystem=store msg="text"
 *     {"time":"2026-01-31T12:00:00.123Z","level":"info","subsystem":"store","msg":"text"}
 *
 * The last two, logfmt and JSON, also have fields; their texts are always valid UTF-8, with JSON escapes (RFC 8259, 7),
 * also for characters that would reorder or break the line. Text lines contain only the message.
 *
 * Only programs and the server call this; libraries return a struct error.
 *
 * Messages of one kind are rate-limited (common/program/log_limit.h), except debug messages and log_line_always(). The
 * number of suppressed messages is logged before the next one written, and counted in cairn_log_suppressed_total.
 *
 * Threads: any.
 */
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };
extern const char *const log_level_names[]; /* the last one is NULL */

enum log_format { LOG_TEXT, LOG_LOGFMT, LOG_JSON };
extern const char *const log_format_names[]; /* the last one is NULL */

#define LOG_LINE_BYTES 4096 /* PIPE_BUF: largest atomic write to a pipe */

/** Additional field of a structured line. */
struct log_field {
        const char *name; /* lower-case letters and '_' */
        const char *text; /* NULL: number */
        uint64_t number;
};

struct log_fields {
        const struct log_field *items;
        size_t count;
};

/** The default is LOG_TEXT. */
void log_set_format(enum log_format format);

/**
 * Set the current request of this thread: its structured log lines have the field request_id.
 * @param id  copied, truncated to REQUEST_ID_MAX bytes; NULL: none
 */
void log_set_request(const char *id);

/** The request id of this thread, "" if none. Valid until log_set_request(). */
const char *log_get_request(void);

/** Messages below level are dropped; the default is LOG_INFO. */
void log_set_level(enum log_level level);

void log_line(enum log_level level, const char *subsystem, const char *fmt, ...) PRINTF(3, 4);

/**
 * Like log_line(), without rate limit: for records that must be complete, about events that outsiders cannot trigger.
 */
void log_line_always(enum log_level level, const char *subsystem, const char *fmt, ...) PRINTF(3, 4);

/** Like log_line() and log_line_always(), with fields for structured lines. */
void log_with_fields(enum log_level level, const char *subsystem, const struct log_fields *fields, const char *fmt, ...)
        PRINTF(4, 5);
void log_with_fields_always(enum log_level level, const char *subsystem, const struct log_fields *fields,
                            const char *fmt, ...) PRINTF(4, 5);

/** Log why the program exits: "PROGRAM: text" on stderr; in structured formats an error of the subsystem. */
void log_failure(const char *program, const char *subsystem, const char *text);

#define log_debug(subsystem, ...) log_line(LOG_DEBUG, subsystem, __VA_ARGS__)
#define log_info(subsystem, ...) log_line(LOG_INFO, subsystem, __VA_ARGS__)
#define log_warn(subsystem, ...) log_line(LOG_WARN, subsystem, __VA_ARGS__)
#define log_error(subsystem, ...) log_line(LOG_ERROR, subsystem, __VA_ARGS__)

#endif
