/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_LOG_H
#define CAIRN_COMMON_LOG_H

/**
 * @file
 * One line per event on stderr, of LOG_LINE_BYTES at most, so that one write() does it and lines do not mix:
 *
 *     2026-01-31T12:00:00.123Z info store: text
 *     time=2026-01-31T12:00:00.123Z level=info subsystem=store msg="text"
 *     {"time":"2026-01-31T12:00:00.123Z","level":"info","subsystem":"store","msg":"text"}
 *
 * The last two, logfmt and JSON, also have fields; texts in them are valid UTF-8 whatever was quoted, with the escapes
 * of JSON (RFC 8259, 7), also for what would reorder or break the line. Text lines have the message alone.
 *
 * Only programs and the server call this; libraries return a struct error.
 *
 * Messages of one kind are limited in rate (common/log_limit.h), except for
 * debug messages and log_line_always(). How many were left out is said before
 * the next that is written, and counted in cairn_log_suppressed_total.
 *
 * Threads: any.
 */
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

enum log_format { LOG_TEXT, LOG_LOGFMT, LOG_JSON };

#define LOG_LINE_BYTES 4096 /* what a pipe takes at once: PIPE_BUF */

/** A further field of a structured line. */
struct log_field {
        const char *name; /* of lower-case letters and '_' */
        const char *text; /* NULL: number */
        uint64_t number;
};

struct log_fields {
        const struct log_field *items;
        size_t count;
};

/** LOG_TEXT at start. */
void log_set_format(enum log_format format);

/** "text", "logfmt", "json". */
enum status log_format_parse(const char *name, enum log_format *ret);

/**
 * What this thread does from now on belongs to a request: structured lines have the field request_id.
 * @param id  copied, cut at REQUEST_ID_MAX bytes; NULL: no request any more
 */
void log_set_request(const char *id);

/** The id of this thread's request, "" for none. Valid until log_set_request(). */
const char *log_get_request(void);

/** Messages below level are dropped; LOG_INFO at start. */
void log_set_level(enum log_level level);

/** "debug", "info", "warn", "error". */
enum status log_level_parse(const char *name, enum log_level *ret);

void log_line(enum log_level level, const char *subsystem, const char *fmt, ...) PRINTF(3, 4);

/** As log_line(), without rate limit: for records that must be complete, about events that outsiders cannot cause. */
void log_line_always(enum log_level level, const char *subsystem, const char *fmt, ...) PRINTF(3, 4);

/** As log_line(), and log_line_always(), with fields for structured lines. */
void log_with_fields(enum log_level level, const char *subsystem, const struct log_fields *fields, const char *fmt, ...)
        PRINTF(4, 5);
void log_with_fields_always(enum log_level level, const char *subsystem, const struct log_fields *fields,
                            const char *fmt, ...) PRINTF(4, 5);

/** Why a program ends: "PROGRAM: text" on stderr, in the other formats an error of the subsystem. */
void log_failure(const char *program, const char *subsystem, const char *text);

#define log_debug(subsystem, ...) log_line(LOG_DEBUG, subsystem, __VA_ARGS__)
#define log_info(subsystem, ...) log_line(LOG_INFO, subsystem, __VA_ARGS__)
#define log_warn(subsystem, ...) log_line(LOG_WARN, subsystem, __VA_ARGS__)
#define log_error(subsystem, ...) log_line(LOG_ERROR, subsystem, __VA_ARGS__)

#endif
