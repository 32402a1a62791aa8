/* SPDX-License-Identifier: Apache-2.0 */
#include "common/log.h"

#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log_limit.h"
#include "common/metrics.h"
#include "common/utf8.h"

static _Atomic enum log_level threshold = LOG_INFO;
static struct log_limit limit;
static struct metric suppressed = METRIC_COUNTER("cairn_log_suppressed_total",
                                                 "Log messages left out, since too many of the kind came at once.", "");
static const char *const names[] = { "debug", "info", "warn", "error" };

void log_set_level(enum log_level level)
{
        assert(level >= LOG_DEBUG && level <= LOG_ERROR);
        atomic_store(&threshold, level);
}

enum status log_level_parse(const char *name, enum log_level *ret)
{
        for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
                if (strcmp(name, names[i]) == 0) {
                        *ret = (enum log_level)i;
                        return ST_OK;
                }
        }
        return ST_USAGE;
}

/* One write() per line, so lines of several threads and processes do not mix. */
PRINTF(3, 0)
static void write_line(enum log_level level, const char *subsystem, const char *fmt, va_list args)
{
        char line[1024];
        struct timespec now;
        struct tm tm;
        size_t used;
        ssize_t done;

        clock_gettime(CLOCK_REALTIME, &now);
        gmtime_r(&now.tv_sec, &tm);
        used = strftime(line, sizeof line, "%Y-%m-%dT%H:%M:%S", &tm);
        used += (size_t)snprintf(line + used, sizeof line - used, ".%03ldZ %s %s: ", now.tv_nsec / 1000000,
                                 names[level], subsystem);
        vsnprintf(line + used, sizeof line - used - 1, fmt, args);
        utf8_mask_controls(line + used); /* a log line stays one line, whatever was quoted in it */
        used = strlen(line);
        line[used++] = '\n';
        done = write(STDERR_FILENO, line, used);
        (void)done;
}

void log_line_always(enum log_level level, const char *subsystem, const char *fmt, ...)
{
        va_list args;

        if (level < atomic_load(&threshold))
                return;
        va_start(args, fmt);
        write_line(level, subsystem, fmt, args);
        va_end(args);
}

/* By the addresses of the texts: a collision of two kinds would only make them share a bucket. */
static uint64_t message_kind(enum log_level level, const char *subsystem, const char *fmt)
{
        return (((uint64_t)(uintptr_t)fmt * UINT64_C(0x9e3779b97f4a7c15) + (uintptr_t)subsystem) * 4 + level) |
               UINT64_C(1) << 63;
}

void log_line(enum log_level level, const char *subsystem, const char *fmt, ...)
{
        uint64_t count;
        va_list args;

        if (level < atomic_load(&threshold))
                return;
        if (level != LOG_DEBUG) {
                if (!log_limit_admit(&limit, message_kind(level, subsystem, fmt), monotonic_ns(), &count)) {
                        metric_add(&suppressed, 1);
                        return;
                }
                if (count)
                        log_line_always(level, subsystem, "%" PRIu64 " similar messages suppressed", count);
        }
        va_start(args, fmt);
        write_line(level, subsystem, fmt, args);
        va_end(args);
}
