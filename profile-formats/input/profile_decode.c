/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/input/profile_decode.h"

#include <string.h>

#include "common/compress/compress.h"
#include "common/json/json_scan.h"
#include "profile-formats/folded.h"
#include "profile-formats/input/content_kind.h"
#include "profile-formats/otlp/otlp.h"
#include "profile-formats/otlp/otlp_json.h"
#include "profile-formats/perf_script.h"
#include "profile-formats/pprof/pprof.h"
#include "profile-formats/speedscope.h"
#include "profile-formats/wire.h"

#define BYTE_ORDER_MARK "\xef\xbb\xbf" /* of UTF-8, written by some editors and shells */

enum profile_format { FORMAT_PPROF, FORMAT_OTLP, FORMAT_SPEEDSCOPE, FORMAT_PERF, FORMAT_FOLDED };
static const char *const format_names[] = { "pprof", "otlp", "speedscope", "perf", "folded" };
#define FORMAT_COUNT (sizeof format_names / sizeof *format_names)

#define DETECTION_BYTES 4096 /* at the start, that tell text from binary formats */

struct profile_bytes {
        const uint8_t *data;
        size_t size;
};

enum text_likeness { IS_BINARY, MAY_BE_TEXT, IS_TEXT };

/*
 * Names in texts may have any bytes: perf cuts that of a process within a character, or prints its control characters.
 * Messages of protobuf have control characters, nearly always zeros.
 */
static enum text_likeness judge_text(const struct profile_bytes *b)
{
        const size_t n = b->size < DETECTION_BYTES ? b->size : DETECTION_BYTES;
        enum text_likeness ret = IS_TEXT;

        for (size_t i = 0; i < n; i++) {
                const uint8_t c = b->data[i];

                if (!c)
                        return IS_BINARY;
                if (c < 0x20 && c != '\n' && c != '\r' && c != '\t')
                        ret = MAY_BE_TEXT;
        }
        return ret;
}

/* No OTLP request in protobuf begins with this byte, the start of a group. */
static bool is_json_object(const struct profile_bytes *b)
{
        struct json_scan s;

        json_scan_init(&s, b->data, b->size);
        return json_scan_peek(&s) == '{';
}

static enum status decode_profile_as(enum profile_format f, const struct profile_bytes *b,
                                     const struct profile_decode_options *o, struct profile *ret, struct error *err)
{
        enum status st = f == FORMAT_PPROF ? ST_OK : content_refuse_gzip(b->data, b->size, err);

        if (st)
                return st;
        switch (f) {
        case FORMAT_PPROF:
                return pprof_decode(b->data, b->size, NULL, ret, err);
        case FORMAT_OTLP:
                return is_json_object(b) ? otlp_json_decode(b->data, b->size, ret, err)
                                         : otlp_decode(b->data, b->size, ret, err);
        case FORMAT_SPEEDSCOPE:
                return speedscope_decode(b->data, b->size, ret, err);
        case FORMAT_PERF:
                return perf_script_decode(b->data, b->size, o->time_unix_ns, ret, err);
        case FORMAT_FOLDED:
                return folded_decode(b->data, b->size, o->type, ret, err);
        }
        return ST_UNSUPPORTED;
}

/* Whether a field of the message is neither of OTLP's requests, which have the fields 1 and 2. */
static bool has_field_of_pprof(const struct profile_bytes *b)
{
        struct wire_field f;
        struct reader r;

        reader_init(&r, b->data, b->size);
        while (wire_next(&r, &f))
                if (f.number > 2)
                        return true;
        return false;
}

/* Whether a line is "name: VALUE" or "name= VALUE". */
static bool is_setting(const char *line, const char *stop)
{
        const char *end = line;

        while (end < stop && !strchr(" \t\r", *end))
                end++;
        return *line != '#' && end > line && end < stop && strchr(":=", end[-1]) != NULL;
}

/*
 * A line without a count, such as one of a log that ends in a number, may look like a folded stack of one frame, as may
 * the lines "name: 5" of YAML and "name = 5" of settings.
 */
static bool looks_like_folded(const struct profile_bytes *b)
{
        const char *at = (const char *)b->data, *end = at + b->size;
        const char line_end = memchr(at, '\n', b->size) ? '\n' : '\r';

        if (memchr(at, ';', b->size))
                return true;
        while (at < end) {
                const char *eol = memchr(at, line_end, (size_t)(end - at)), *stop = eol ? eol : end;
                size_t words = 0;

                for (const char *c = at; *at != '#' && c < stop; c++)
                        words += !strchr(" \t\r", *c) && (c == at || strchr(" \t", c[-1]));
                if (words > 2 || is_setting(at, stop))
                        return false;
                at = stop + (eol != NULL);
        }
        return true;
}

static enum status refuse_both_formats(enum profile_format first, const struct error *first_err,
                                       enum profile_format second, const struct error *second_err, struct error *err)
{
        return error_set(err, ST_BAD_DATA, "unknown format; as %s: %.110s; as %s: %.80s", format_names[first],
                         first_err->text, format_names[second], second_err->text);
}

/*
 * Text that is all comments to the decoder of perf script may be folded stacks whose names begin with '#', or whose
 * lines end in '\r'. *ret is replaced if it has samples as such.
 */
static enum status decode_comments(const struct profile_bytes *b, const struct profile_decode_options *o,
                                   struct profile *ret, enum profile_format *format_ret, struct error *err)
{
        struct profile folded;
        struct error folded_err = { 0 };
        enum status st =
                looks_like_folded(b) ? decode_profile_as(FORMAT_FOLDED, b, o, &folded, &folded_err) : ST_BAD_DATA;

        if (st == ST_BAD_DATA)
                return ST_OK;
        if (st) {
                if (err)
                        *err = folded_err;
                profile_deinit(ret);
                return st;
        }
        if (!folded.samples.count) {
                profile_deinit(&folded);
                return ST_OK;
        }
        profile_deinit(ret);
        *ret = folded;
        *format_ret = FORMAT_FOLDED;
        return ST_OK;
}

/* For content that does not name its format. The second format is chosen only if it gives samples. */
static enum status decode_either(const struct profile_bytes *b, const struct profile_decode_options *o, bool is_text,
                                 struct profile *ret, enum profile_format *format_ret, struct error *err)
{
        const enum profile_format first = is_text ? FORMAT_PERF : FORMAT_PPROF,
                                  second = is_text ? FORMAT_FOLDED : FORMAT_OTLP;
        struct error first_err = { 0 }, second_err = { 0 };
        enum status st = decode_profile_as(first, b, o, ret, &first_err);

        *format_ret = first;
        if (!st && is_text && !ret->samples.count)
                return decode_comments(b, o, ret, format_ret, err);
        if (st == ST_BAD_DATA && gzip_detect(b->data, b->size))
                return error_set(err, ST_BAD_DATA,
                                 "as pprof: %.110s; other formats have to be sent with 'Content-Encoding: gzip', or "
                                 "unpacked",
                                 first_err.text);
        if (st != ST_BAD_DATA || (!is_text && has_field_of_pprof(b))) {
                if (st && err)
                        *err = first_err;
                return st;
        }
        *format_ret = second;
        if (is_text && !looks_like_folded(b))
                st = error_set(&second_err, ST_BAD_DATA, "lines of several words, or of settings, without ';'");
        else
                st = decode_profile_as(second, b, o, ret, &second_err);
        if (!st && !ret->samples.count) {
                st = error_set(&second_err, ST_BAD_DATA, "no samples%s%s", *ret->rejected_reason ? ": " : "",
                               ret->rejected_reason);
                profile_deinit(ret);
        }
        if (st == ST_BAD_DATA)
                return refuse_both_formats(first, &first_err, second, &second_err, err);
        if (st && err)
                *err = second_err;
        return st;
}

/* Text with control characters is tried as a binary format first. */
static enum status decode_unknown_content(const struct profile_bytes *b, const struct profile_decode_options *o,
                                          struct profile *ret, enum profile_format *format_ret, struct error *err)
{
        const enum text_likeness likeness = judge_text(b);
        enum status st = decode_either(b, o, likeness == IS_TEXT, ret, format_ret, err);

        if (st == ST_BAD_DATA && likeness == MAY_BE_TEXT)
                st = decode_either(b, o, true, ret, format_ret, err);
        return st;
}

static enum status decode_detected_profile(const struct profile_bytes *b, const struct profile_decode_options *o,
                                           struct profile *ret, enum profile_format *format_ret, struct error *err)
{
        const struct content_description content = content_describe(b->data, b->size);

        switch (content.kind) {
        case CONTENT_SPEEDSCOPE:
                *format_ret = FORMAT_SPEEDSCOPE;
                return decode_profile_as(FORMAT_SPEEDSCOPE, b, o, ret, err);
        case CONTENT_OTLP_JSON:
                *format_ret = FORMAT_OTLP;
                return decode_profile_as(FORMAT_OTLP, b, o, ret, err);
        case CONTENT_JFR:
                return error_set(err, ST_BAD_DATA, "a JFR recording is not read here; cairn import sends it");
        case CONTENT_FOREIGN:
                return error_set(err, ST_BAD_DATA, "unknown format; this is %s", content.foreign);
        case CONTENT_UNKNOWN:
                break;
        }
        return decode_unknown_content(b, o, ret, format_ret, err);
}

static enum status decode_named_format(enum profile_format f, const struct profile_bytes *b,
                                       const struct profile_decode_options *o, struct profile *ret, struct error *err)
{
        enum status st = decode_profile_as(f, b, o, ret, err);

        return st == ST_BAD_DATA ? content_refuse(b->data, b->size, err) : st;
}

enum status profile_decode(const void *data, size_t n, const struct profile_decode_options *o, struct profile *ret,
                           const char **format_ret, struct error *err)
{
        const size_t mark = n >= 3 && memcmp(data, BYTE_ORDER_MARK, 3) == 0 ? 3 : 0;
        const struct profile_bytes bytes = { (const uint8_t *)(n ? data : "") + mark, n - mark };
        enum profile_format format = FORMAT_PPROF;
        enum status st;

        while (o->format && format < FORMAT_COUNT && strcmp(o->format, format_names[format]) != 0)
                format++;
        if (format == FORMAT_COUNT)
                return error_set(err, ST_USAGE, "format '%.40s' is not one of " PROFILE_FORMAT_NAMES, o->format);
        if (!n)
                return error_set(err, ST_BAD_DATA, "the input is empty");
        st = o->format ? decode_named_format(format, &bytes, o, ret, err)
                       : decode_detected_profile(&bytes, o, ret, &format, err);
        if (!st && !ret->samples.count)
                content_explain(data, n, ret->note, sizeof ret->note);
        if (!st && format_ret)
                *format_ret = format_names[format];
        return st;
}
