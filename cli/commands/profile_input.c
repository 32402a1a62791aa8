/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands/profile_input.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/compress.h"
#include "common/file.h"
#include "common/limits.h"
#include "common/utf8.h"
#include "profile-formats/folded.h"
#include "profile-formats/otlp.h"
#include "profile-formats/otlp_json.h"
#include "profile-formats/perf_script.h"
#include "profile-formats/pprof.h"

/* ---- unpacking ---- */

bool path_is_standard(const char *path)
{
        return !path || strcmp(path, "-") == 0;
}

static enum status read_packed_input(const char *path, struct buf *ret, struct error *err)
{
        if (!path_is_standard(path))
                return file_read(path, ret, err);
        for (;;) {
                void *room = buf_reserve(ret, KiB(64));
                ssize_t n = room ? read(STDIN_FILENO, room, KiB(64)) : 0;

                if (!room)
                        return buf_status(ret, err, "standard input");
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return error_os(err, errno, "cannot read standard input");
                if (n == 0)
                        return ST_OK;
                buf_commit(ret, (size_t)n);
        }
}

enum status unpacked_input_read(const char *path, struct buf *ret, struct error *err)
{
        _cleanup_buf_ struct buf raw;
        enum status st;

        buf_init(&raw, GiB(1));
        st = read_packed_input(path, &raw, err);
        if (st)
                return st;
        if (gzip_detect(raw.data, raw.size))
                return gzip_decompress(raw.data, raw.size, ret, err);
        if (zstd_detect(raw.data, raw.size))
                return zstd_decompress(raw.data, raw.size, ret, err);
        buf_append(ret, raw.data, raw.size);
        return buf_status(ret, err, path_is_standard(path) ? "standard input" : path);
}

/* ---- decoding ---- */

enum input_format { FORMAT_PPROF, FORMAT_OTLP, FORMAT_PERF, FORMAT_FOLDED };
static const char *const format_names[] = { "pprof", "otlp", "perf", "folded" };

static bool looks_like_text(const struct buf *b)
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

static bool looks_like_json(const struct buf *b)
{
        size_t i = 0;

        while (i < b->size && (b->data[i] == ' ' || (b->data[i] >= '\t' && b->data[i] <= '\r')))
                i++;
        return i < b->size && b->data[i] == '{';
}

static enum status decode_profile_as(enum input_format f, const struct buf *b, const struct profile_input *o,
                                     struct profile *ret, struct error *err)
{
        switch (f) {
        case FORMAT_PPROF:
                return pprof_decode(b->data, b->size, NULL, ret, err);
        case FORMAT_OTLP:
                return looks_like_json(b) ? otlp_json_decode(b->data, b->size, ret, err)
                                          : otlp_decode(b->data, b->size, ret, err);
        case FORMAT_PERF:
                return perf_script_decode(b->data, b->size, o->time_unix_ns, ret, err);
        case FORMAT_FOLDED:
                return folded_decode(b->data, b->size, o->type, ret, err);
        }
        return ST_UNSUPPORTED;
}

/* Field 6 is the string table of pprof and unused in OTLP requests, so at most one of the two decodes. */
static enum status decode_profile(const struct buf *b, const struct profile_input *o, struct profile *ret,
                                  enum input_format *format_ret, struct error *err)
{
        bool text = looks_like_text(b);
        enum input_format first = !text ? FORMAT_PPROF : looks_like_json(b) ? FORMAT_OTLP : FORMAT_PERF;
        enum input_format second = text ? FORMAT_FOLDED : FORMAT_OTLP;
        struct error first_err, second_err;
        enum status st;

        for (int i = 0; o->format && i < 4; i++) {
                if (strcmp(o->format, format_names[i]) == 0) {
                        *format_ret = (enum input_format)i;
                        return decode_profile_as(*format_ret, b, o, ret, err);
                }
        }
        if (o->format)
                return error_set(err, ST_USAGE, "format '%.40s' is none of pprof, otlp, perf, folded", o->format);
        *format_ret = first;
        st = decode_profile_as(first, b, o, ret, &first_err);
        if (st == ST_BAD_DATA) {
                *format_ret = second;
                st = decode_profile_as(second, b, o, ret, &second_err);
                if (st == ST_BAD_DATA)
                        return error_set(err, st, "unknown format; as %s: %.80s; as %s: %.80s", format_names[first],
                                         first_err.text, format_names[second], second_err.text);
                first_err = second_err;
        }
        if (st)
                *err = first_err;
        return st;
}

enum status profile_input_read(const char *path, const struct profile_input *input, struct profile *ret,
                               const char **format_ret, struct error *err)
{
        struct profile_input o = *input;
        enum input_format format = FORMAT_PPROF;
        _cleanup_buf_ struct buf b;
        struct stat file;
        enum status st;

        buf_init(&b, GiB(1));
        st = unpacked_input_read(path, &b, err);
        if (st)
                return st;
        if (!o.time_unix_ns)
                o.time_unix_ns = path_is_standard(path) || stat(path, &file)
                                         ? wall_clock_ns()
                                         : file.st_mtim.tv_sec * INT64_C(1000000000) + file.st_mtim.tv_nsec;
        st = decode_profile(&b, &o, ret, &format, err);
        if (st)
                return st;
        profile_set_missing_times(ret, o.time_unix_ns);
        if (format_ret)
                *format_ret = format_names[format];
        return ST_OK;
}
