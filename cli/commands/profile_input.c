/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands/profile_input.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/compress/compress.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "pipeline/jfr_job.h"
#include "profile-formats/input/profile_decode.h"
#include "profile-formats/jfr/jfr_chunk.h"

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

static enum status decode_recording(const struct buf *b, struct profile *ret, const char **format_ret,
                                    struct error *err)
{
        const struct jfr_job job = { .recording = b->data, .recording_size = b->size };
        enum status st = jfr_job_decode(&job, ret, err);

        if (!st && format_ret)
                *format_ret = "jfr";
        return st;
}

enum status profile_input_read(const char *path, const struct profile_input *input, struct profile *ret,
                               const char **format_ret, struct error *err)
{
        struct profile_decode_options o = { input->format, input->type, input->time_unix_ns };
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
        if (o.format ? strcmp(o.format, "jfr") == 0 : jfr_detect(b.data, b.size))
                st = decode_recording(&b, ret, format_ret, err);
        else
                st = profile_decode(b.data, b.size, &o, ret, format_ret, err);
        if (st)
                return st;
        profile_set_missing_times(ret, o.time_unix_ns);
        st = profile_check_samples(ret, err);
        if (st)
                profile_deinit(ret);
        return st;
}
