/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PIPELINE_JFR_JOB_H
#define CAIRN_PIPELINE_JFR_JOB_H

/**
 * @file
 * Decoding of JFR recordings (profile-formats/jfr/jfr_decode.h) in a confined worker (`cairn worker jfr`), which
 * returns OTLP. A recording is untrusted: a graph of tables whose layout it describes itself.
 *
 * Threads: any.
 */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "profile-formats/profile.h"

struct jfr_job {
        const void *recording; /* plain or gzip */
        size_t recording_size;
        const void *labels; /* label mapping of Pyroscope's Java agent, plain or gzip; NULL: none */
        size_t labels_size;
        int64_t period_ns;         /* jfr_options */
        const char *dir;           /* for temporary files; NULL: they are kept in memory */
        const atomic_bool *cancel; /* NULL: never */
};

/**
 * @param ret initialised here; profile_deinit() it on success only.
 * @return ST_BAD_DATA: not JFR, or damaged; ST_UNSUPPORTED: another version; ST_TOO_BIG; ST_BUSY when cancelled.
 */
enum status jfr_job_decode(const struct jfr_job *job, struct profile *ret, struct error *err) MUST_CHECK;

/** The worker's side: args PERIOD-NS; descriptors of the recording, the labels and the result. */
enum status jfr_job_run_worker(int argc, char **argv, int recording_fd, int labels_fd, int out_fd,
                               struct error *err) MUST_CHECK;

#endif
