/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_LOG_H
#define CAIRN_COMMON_LOG_H

/**
 * @file
 * One line per event on stderr: "2026-01-31T12:00:00.123Z info store: text".
 * Only programs and the server call this; libraries return a struct error.
 *
 * Messages of one kind are limited in rate (common/log_limit.h), except for
 * debug messages and log_line_always(). How many were left out is said before
 * the next that is written, and counted in cairn_log_suppressed_total.
 *
 * Threads: any.
 */
#include "common/error.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

/** Messages below level are dropped; LOG_INFO at start. */
void log_set_level(enum log_level level);

/** "debug", "info", "warn", "error". */
enum status log_level_parse(const char *name, enum log_level *ret);

void log_line(enum log_level level, const char *subsystem, const char *fmt, ...) PRINTF(3, 4);

/** As log_line(), without rate limit: for records that must be complete, about events that outsiders cannot cause. */
void log_line_always(enum log_level level, const char *subsystem, const char *fmt, ...) PRINTF(3, 4);

#define log_debug(subsystem, ...) log_line(LOG_DEBUG, subsystem, __VA_ARGS__)
#define log_info(subsystem, ...) log_line(LOG_INFO, subsystem, __VA_ARGS__)
#define log_warn(subsystem, ...) log_line(LOG_WARN, subsystem, __VA_ARGS__)
#define log_error(subsystem, ...) log_line(LOG_ERROR, subsystem, __VA_ARGS__)

#endif
