/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/profile_decode.h"

#include <string.h>

#include "common/utf8.h"
#include "profile-formats/folded.h"
#include "profile-formats/otlp/otlp.h"
#include "profile-formats/otlp/otlp_json.h"
#include "profile-formats/perf_script.h"
#include "profile-formats/pprof/pprof.h"
#include "profile-formats/speedscope.h"

enum profile_format { FORMAT_PPROF, FORMAT_OTLP, FORMAT_SPEEDSCOPE, FORMAT_PERF, FORMAT_FOLDED };
static const char *const format_names[] = { "pprof", "otlp", "speedscope", "perf", "folded" };
#define FORMAT_COUNT (sizeof format_names / sizeof *format_names)

struct profile_bytes {
        const uint8_t *data;
        size_t size;
};

static bool looks_like_text(const struct profile_bytes *b)
{
        size_t n = b->size < 4096 ? b->size : 4096, end = n > 4 && n < b->size ? n - 4 : n;

        for (size_t i = 0; i < n; i++)
                if (b->data[i] < 0x20 && b->data[i] != '\n' && b->data[i] != '\r' && b->data[i] != '\t')
                        return false;
        for (size_t i = 0; i < end;) {
                size_t len = utf8_sequence_length((const char *)b->data + i, n - i);

                if (!len)
                        return false;
                i += len;
        }
        return true;
}

static bool looks_like_json(const struct profile_bytes *b)
{
        size_t i = 0;

        while (i < b->size && (b->data[i] == ' ' || (b->data[i] >= '\t' && b->data[i] <= '\r')))
                i++;
        return i < b->size && b->data[i] == '{';
}

static enum status decode_profile_as(enum profile_format f, const struct profile_bytes *b,
                                     const struct profile_decode_options *o, struct profile *ret, struct error *err)
{
        switch (f) {
        case FORMAT_PPROF:
                return pprof_decode(b->data, b->size, NULL, ret, err);
        case FORMAT_OTLP:
                return looks_like_json(b) ? otlp_json_decode(b->data, b->size, ret, err)
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

/*
 * The two formats to try. Field 6 is the string table of pprof and unused in OTLP requests, so at most one of the two
 * decodes; OTLP in JSON takes any object, speedscope only one with frames.
 */
static void guess_formats(const struct profile_bytes *b, enum profile_format ret[2])
{
        bool is_text = looks_like_text(b), is_json = looks_like_json(b);

        ret[0] = !is_text ? FORMAT_PPROF : is_json ? FORMAT_SPEEDSCOPE : FORMAT_PERF;
        ret[1] = !is_text || is_json ? FORMAT_OTLP : FORMAT_FOLDED;
}

static enum status decode_detected_profile(const struct profile_bytes *b, const struct profile_decode_options *o,
                                           struct profile *ret, enum profile_format *format_ret, struct error *err)
{
        enum profile_format formats[2];
        struct error first_err, second_err;
        enum status st;

        guess_formats(b, formats);
        *format_ret = formats[0];
        st = decode_profile_as(formats[0], b, o, ret, &first_err);
        if (st == ST_BAD_DATA) {
                *format_ret = formats[1];
                st = decode_profile_as(formats[1], b, o, ret, &second_err);
                if (st == ST_BAD_DATA)
                        return error_set(err, st, "unknown format; as %s: %.80s; as %s: %.80s",
                                         format_names[formats[0]], first_err.text, format_names[formats[1]],
                                         second_err.text);
                first_err = second_err;
        }
        if (st && err)
                *err = first_err;
        return st;
}

enum status profile_decode(const void *data, size_t n, const struct profile_decode_options *o, struct profile *ret,
                           const char **format_ret, struct error *err)
{
        const struct profile_bytes bytes = { data, n };
        enum profile_format format = FORMAT_PPROF;
        enum status st;

        while (o->format && format < FORMAT_COUNT && strcmp(o->format, format_names[format]) != 0)
                format++;
        if (format == FORMAT_COUNT)
                return error_set(err, ST_USAGE, "format '%.40s' is not one of " PROFILE_FORMAT_NAMES, o->format);
        st = o->format ? decode_profile_as(format, &bytes, o, ret, err)
                       : decode_detected_profile(&bytes, o, ret, &format, err);
        if (!st && format_ret)
                *format_ret = format_names[format];
        return st;
}
