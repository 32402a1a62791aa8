/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_COMMANDS_PROFILE_INPUT_H
#define CAIRN_CLI_COMMANDS_PROFILE_INPUT_H

/**
 * @file Read profiles from files: pprof, OTLP (protobuf or JSON), speedscope, perf script text, folded stacks, JFR
 * recordings (in a worker); plain, gzip or zstd.
 */
#include <stdbool.h>
#include <stdint.h>

#include "common/memory/buf.h"
#include "profile-formats/profile.h"

struct profile_input {
        const char *format;   /* as profile_decode_options, or "jfr"; NULL: detected */
        const char *type;     /* profile type of folded stacks, five parts; NULL: the default of folded_decode() */
        int64_t time_unix_ns; /* of samples without a time; 0: the file's time, or now for standard input */
};

/**
 * @param path        "-": standard input.
 * @param ret         initialised here; profile_deinit() it on success only.
 * @param format_ret  the format's name, or NULL.
 * @return ST_BAD_DATA also for a file without samples.
 */
enum status profile_input_read(const char *path, const struct profile_input *input, struct profile *ret,
                               const char **format_ret, struct error *err) MUST_CHECK;

/** Whether a path means standard input or output: "-" or NULL. */
bool path_is_standard(const char *path);

/** Append the content of a file or standard input, decompressed if it is gzip or zstd. */
enum status unpacked_input_read(const char *path, struct buf *ret, struct error *err) MUST_CHECK;

#endif
