/* SPDX-License-Identifier: Apache-2.0 */
#include "common/program/log.h"

#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/metrics.h"
#include "common/program/log_limit.h"
#include "common/request_id.h"
#include "common/text/number_text.h"
#include "common/text/utf8.h"

static _Atomic enum log_level threshold = LOG_INFO;
static _Atomic enum log_format line_format = LOG_TEXT;
static _Thread_local char request_id[REQUEST_ID_SIZE]; /* "" if there is none */
static struct log_limit limit;
static struct metric suppressed =
        METRIC_COUNTER("cairn_log_suppressed_total", "Log messages suppressed by the rate limit of their kind.", "");
const char *const log_level_names[] = { "debug", "info", "warn", "error", NULL };
const char *const log_format_names[] = { "text", "logfmt", "json", NULL };

void log_set_level(enum log_level level)
{
        assert(level >= LOG_DEBUG && level <= LOG_ERROR);
        atomic_store(&threshold, level);
}

void log_set_format(enum log_format format)
{
        assert(format >= LOG_TEXT && format <= LOG_JSON);
        atomic_store(&line_format, format);
}

void log_set_request(const char *id)
{
        size_t n = id ? strnlen(id, REQUEST_ID_MAX) : 0;

        if (n)
                memcpy(request_id, id, n);
        request_id[n] = 0;
}

const char *log_get_request(void)
{
        return request_id;
}

/* ---- a line ---- */

/* One write() per line, so that lines of several threads and processes do not mix. */
struct log_text {
        char bytes[LOG_LINE_BYTES];
        size_t used;
};

#define LINE_END_BYTES 4     /* that must follow the message: quote, brace, newline */
#define MESSAGE_BYTES 1024   /* a message before escaping */
#define FIELD_ROOM_BYTES 512 /* part of a line that fields leave to the message */

static void put_raw(struct log_text *t, const char *text)
{
        size_t n = strlen(text);

        if (n > sizeof t->bytes - t->used)
                return;
        memcpy(t->bytes + t->used, text, n);
        t->used += n;
}

/* Escape the first character of text for use between quotes. Returns its length in text. */
static size_t escape_character(const char *text, size_t n, char ret[static 8])
{
        static const char short_escapes[] = "\"\"\\\\\nn\rr\tt";
        size_t len = utf8_sequence_length(text, n), reordering_size = 0;
        uint32_t code = len ? utf8_reordering_code(text, n, &reordering_size) : 0;

        for (const char *p = short_escapes; *p; p += 2) {
                if (*p == *text) {
                        snprintf(ret, 8, "\\%c", p[1]);
                        return 1;
                }
        }
        if (!len)
                snprintf(ret, 8, "\xef\xbf\xbd"); /* U+FFFD */
        else if ((unsigned char)*text < 0x20 || *text == 0x7f)
                snprintf(ret, 8, "\\u%04x", (unsigned char)*text);
        else if (utf8_is_c1(text, n))
                snprintf(ret, 8, "\\u%04x", (unsigned char)text[1]);
        else if (code)
                snprintf(ret, 8, "\\u%04x", code & 0xffff);
        else
                snprintf(ret, 8, "%.*s", (int)len, text);
        return len ? len : 1;
}

/* Append a quoted text, truncated between characters so that `room` bytes of the line remain. */
static void put_quoted(struct log_text *t, const char *text, size_t room)
{
        size_t n = strlen(text);
        char escaped[8];

        put_raw(t, "\"");
        for (size_t i = 0; i < n;) {
                i += escape_character(text + i, n - i, escaped);
                if (strlen(escaped) + room + 1 > sizeof t->bytes - t->used)
                        break;
                put_raw(t, escaped);
        }
        put_raw(t, "\"");
}

/* Append a separator and the name of the next field. */
static void put_field_name(struct log_text *t, enum log_format format, const char *name)
{
        if (format == LOG_JSON) {
                put_raw(t, t->used ? ",\"" : "{\"");
                put_raw(t, name);
                put_raw(t, "\":");
        } else {
                put_raw(t, t->used ? " " : "");
                put_raw(t, name);
                put_raw(t, "=");
        }
}

/* A word of letters, digits, ':', '-' and '.'. */
static void put_word_field(struct log_text *t, enum log_format format, const char *name, const char *word)
{
        put_field_name(t, format, name);
        put_raw(t, format == LOG_JSON ? "\"" : "");
        put_raw(t, word);
        put_raw(t, format == LOG_JSON ? "\"" : "");
}

static void put_fields(struct log_text *t, enum log_format format, const struct log_fields *fields)
{
        for (size_t i = 0; fields && i < fields->count; i++) {
                const struct log_field *f = &fields->items[i];
                char number[24];

                if (sizeof t->bytes - t->used < FIELD_ROOM_BYTES + 64)
                        return;
                put_field_name(t, format, f->name);
                snprintf(number, sizeof number, "%" PRIu64, f->number);
                if (f->text)
                        put_quoted(t, f->text, FIELD_ROOM_BYTES);
                else
                        put_raw(t, number);
        }
}

struct log_entry {
        enum log_level level;
        const char *subsystem;
        const struct log_fields *fields; /* may be NULL */
};

static void format_structured(struct log_text *t, enum log_format format, const struct log_entry *e, const char *time,
                              const char *message)
{
        put_word_field(t, format, "time", time);
        put_word_field(t, format, "level", log_level_names[e->level]);
        put_word_field(t, format, "subsystem", e->subsystem);
        if (request_id[0]) {
                put_field_name(t, format, "request_id");
                put_quoted(t, request_id, FIELD_ROOM_BYTES);
        }
        put_fields(t, format, e->fields);
        put_field_name(t, format, "msg");
        put_quoted(t, message, LINE_END_BYTES);
        put_raw(t, format == LOG_JSON ? "}" : "");
}

/* Otherwise a character truncated at the end of the buffer would be escaped as invalid bytes. */
static void cut_incomplete_character(char *text, size_t size)
{
        size_t n = strlen(text), start = n;

        if (n + 1 < size)
                return;
        while (start && n - start < 3 && ((unsigned char)text[start - 1] & 0xc0) == 0x80)
                start--;
        if (start && (unsigned char)text[start - 1] >= 0xc0 && !utf8_sequence_length(text + start - 1, n - start + 1))
                text[start - 1] = 0;
}

PRINTF(2, 0)
static void write_entry(const struct log_entry *e, const char *fmt, va_list args)
{
        enum log_format format = atomic_load(&line_format);
        char message[MESSAGE_BYTES], time[40];
        struct log_text line = { .used = 0 };
        struct timespec now;
        struct tm tm;
        size_t used;
        ssize_t done;

        clock_gettime(CLOCK_REALTIME, &now);
        gmtime_r(&now.tv_sec, &tm);
        used = strftime(time, sizeof time, "%Y-%m-%dT%H:%M:%S", &tm);
        snprintf(time + used, sizeof time - used, ".%03ldZ", now.tv_nsec / 1000000);
        vsnprintf(message, sizeof message, fmt, args);
        if (format != LOG_TEXT) {
                cut_incomplete_character(message, sizeof message);
                format_structured(&line, format, e, time, message);
        } else {
                utf8_mask_controls(message); /* a log line must remain one line whatever it quotes */
                line.used = (size_t)snprintf(line.bytes, sizeof line.bytes, "%s %s %s: %s", time,
                                             log_level_names[e->level], e->subsystem, message);
        }
        line.bytes[line.used++] = '\n';
        done = write(STDERR_FILENO, line.bytes, line.used);
        (void)done;
}

/* ---- messages ---- */

PRINTF(2, 0)
static void write_always(const struct log_entry *e, const char *fmt, va_list args)
{
        if (e->level >= atomic_load(&threshold))
                write_entry(e, fmt, args);
}

void log_line_always(enum log_level level, const char *subsystem, const char *fmt, ...)
{
        const struct log_entry e = { level, subsystem, NULL };
        va_list args;

        va_start(args, fmt);
        write_always(&e, fmt, args);
        va_end(args);
}

void log_with_fields_always(enum log_level level, const char *subsystem, const struct log_fields *fields,
                            const char *fmt, ...)
{
        const struct log_entry e = { level, subsystem, fields };
        va_list args;

        va_start(args, fmt);
        write_always(&e, fmt, args);
        va_end(args);
}

/* From the addresses of the texts. Two colliding kinds would merely share a bucket. */
static uint64_t message_kind(enum log_level level, const char *subsystem, const char *fmt)
{
        return (((uint64_t)(uintptr_t)fmt * UINT64_C(0x9e3779b97f4a7c15) + (uintptr_t)subsystem) * 4 + level) |
               UINT64_C(1) << 63;
}

PRINTF(2, 0)
static void write_limited(const struct log_entry *e, const char *fmt, va_list args)
{
        uint64_t count;

        if (e->level < atomic_load(&threshold))
                return;
        if (e->level != LOG_DEBUG) {
                if (!log_limit_admit(&limit, message_kind(e->level, e->subsystem, fmt), monotonic_ns(), &count)) {
                        metric_add(&suppressed, 1);
                        return;
                }
                if (count)
                        log_line_always(e->level, e->subsystem, "%s suppressed",
                                        COUNTED(count, "similar message", "similar messages"));
        }
        write_entry(e, fmt, args);
}

void log_line(enum log_level level, const char *subsystem, const char *fmt, ...)
{
        const struct log_entry e = { level, subsystem, NULL };
        va_list args;

        va_start(args, fmt);
        write_limited(&e, fmt, args);
        va_end(args);
}

void log_with_fields(enum log_level level, const char *subsystem, const struct log_fields *fields, const char *fmt, ...)
{
        const struct log_entry e = { level, subsystem, fields };
        va_list args;

        va_start(args, fmt);
        write_limited(&e, fmt, args);
        va_end(args);
}

void log_failure(const char *program, const char *subsystem, const char *text)
{
        if (atomic_load(&line_format) == LOG_TEXT)
                fprintf(stderr, "%s: %s\n", program, PRINTABLE(text));
        else
                log_line_always(LOG_ERROR, subsystem, "%s", text);
}
