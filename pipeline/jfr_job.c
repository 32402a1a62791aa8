/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/jfr_job.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "common/cleanup.h"
#include "common/compress/compress.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "common/text/number_text.h"
#include "profile-formats/jfr/jfr_decode.h"
#include "profile-formats/otlp/otlp.h"
#include "sandbox/worker.h"

static enum status make_job_file(const char *dir, const void *data, size_t n, int *ret, struct error *err)
{
        _cleanup_close_ int fd =
                dir ? open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : memfd_create("jfr", MFD_CLOEXEC);
        enum status st;

        if (fd < 0)
                return error_os(err, errno, "cannot create a temporary file in '%s'", dir ? dir : "memory");
        st = file_write_all(fd, data, n, "temporary file", err);
        if (!st)
                *ret = steal_fd(&fd);
        return st;
}

/* The decoder's note, padded with NUL, then OTLP. */
static enum status read_job_answer(const struct file_map *map, struct profile *ret, struct error *err)
{
        const size_t note_size = sizeof ret->note;
        const uint8_t *bytes = map->data;
        enum status st;

        if (map->size < note_size || !memchr(map->data, 0, note_size))
                return error_set(err, ST_BAD_DATA, "the worker's result is malformed");
        st = otlp_decode_within(bytes + note_size, map->size - note_size, 0, ret, err);
        if (!st)
                memcpy(ret->note, map->data, note_size);
        return st;
}

enum status jfr_job_decode(const struct jfr_job *job, struct profile *ret, struct error *err)
{
        _cleanup_close_ int recording = -1, labels = -1, answer = -1;
        _cleanup_file_map_ struct file_map map = { 0 };
        char period[24];
        const char *const args[] = { "jfr", period, NULL };
        enum status st = make_job_file(job->dir, job->recording, job->recording_size, &recording, err);

        if (!st && job->labels)
                st = make_job_file(job->dir, job->labels, job->labels_size, &labels, err);
        if (!st)
                st = make_job_file(job->dir, "", 0, &answer, err);
        if (st)
                return st;
        snprintf(period, sizeof period, "%" PRId64, job->period_ns);
        {
                const int fds[] = { recording, labels, answer };
                const struct worker_job worker = { .args = args,
                                                   .fds = fds,
                                                   .fd_count = 3,
                                                   .data_bytes = LIMIT_JFR_WORKER_BYTES,
                                                   .file_bytes = LIMIT_JFR_BYTES,
                                                   .cpu_s = LIMIT_JFR_WORKER_CPU_S,
                                                   .cancel = job->cancel };

                st = worker_run(&worker, err);
        }
        if (!st)
                st = file_map_fd(answer, LIMIT_JFR_BYTES, "the worker's result", &map, err);
        return st ? st : read_job_answer(&map, ret, err);
}

/* ---- in the worker ---- */

/* The decompressed content of a file. */
static enum status read_job_file(int fd, size_t max, struct buf *ret, struct error *err)
{
        _cleanup_file_map_ struct file_map map = { 0 };
        enum status st = file_map_fd(fd, max, "recording", &map, err);

        buf_init(ret, max);
        if (st)
                return st;
        if (gzip_detect(map.data, map.size))
                return gzip_decompress(map.data, map.size, ret, err);
        buf_append(ret, map.data, map.size);
        return buf_status(ret, err, "recording");
}

enum status jfr_job_run_worker(int argc, char **argv, int recording_fd, int labels_fd, int out_fd, struct error *err)
{
        _cleanup_buf_ struct buf recording = { 0 }, labels = { 0 }, answer;
        struct jfr_options o = { 0 };
        uint64_t period;
        struct profile p;
        enum status st;

        buf_init(&answer, LIMIT_JFR_BYTES);
        if (argc != 2 || !parse_uint(argv[1], &period) || period > INT64_MAX)
                return error_set(err, ST_USAGE, "worker jfr takes a period");
        st = read_job_file(recording_fd, LIMIT_JFR_BYTES, &recording, err);
        if (!st && fcntl(labels_fd, F_GETFD) >= 0)
                st = read_job_file(labels_fd, LIMIT_JFR_LABEL_BYTES, &labels, err);
        if (st)
                return st;
        o = (struct jfr_options){ (int64_t)period, labels.data, labels.size };
        st = jfr_decode(recording.data, recording.size, &o, &p, err);
        if (st)
                return st;
        buf_append(&answer, p.note, sizeof p.note);
        st = otlp_encode(&p, &answer, err);
        profile_deinit(&p);
        return st ? st : file_write_all(out_fd, answer.data, answer.size, "answer", err);
}
