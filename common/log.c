/* SPDX-License-Identifier: Apache-2.0 */
#include "common/log.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/utf8.h"

static _Atomic enum log_level threshold = LOG_INFO;
static const char *const names[] = { "debug", "info", "warn", "error" };

void log_set_level(enum log_level level)
{
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
void log_line(enum log_level level, const char *subsystem, const char *fmt, ...)
{
        char line[1024];
        struct timespec now;
        struct tm tm;
        size_t used;
        va_list args;
        ssize_t done;

        if (level < atomic_load(&threshold))
                return;
        clock_gettime(CLOCK_REALTIME, &now);
        gmtime_r(&now.tv_sec, &tm);
        used = strftime(line, sizeof line, "%Y-%m-%dT%H:%M:%S", &tm);
        used += (size_t)snprintf(line + used, sizeof line - used, ".%03ldZ %s %s: ", now.tv_nsec / 1000000,
                                 names[level], subsystem);
        va_start(args, fmt);
        vsnprintf(line + used, sizeof line - used - 1, fmt, args);
        va_end(args);
        utf8_mask_controls(line + used); /* a log line stays one line, whatever was quoted in it */
        used = strlen(line);
        line[used++] = '\n';
        done = write(STDERR_FILENO, line, used);
        (void)done;
}
