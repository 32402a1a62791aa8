/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_PROFILE_INPUT_H
#define CAIRN_CLI_PROFILE_INPUT_H

/** @file Profiles from files: pprof, OTLP (protobuf or JSON), the text of perf script, folded stacks; packed by gzip, zstd or not at all. */
#include <stdint.h>

#include "profile-formats/profile.h"

struct profile_input {
        const char *format;   /* "pprof", "otlp", "perf" or "folded"; NULL: what it looks like */
        const char *type;     /* of folded stacks, five parts; NULL as folded_decode() */
        int64_t time_unix_ns; /* of samples that tell none; 0: the file's, or now for standard input */
};

/**
 * @param path        "-": standard input.
 * @param ret         initialised here; profile_deinit() it on success only.
 * @param format_ret  the format's name, or NULL.
 */
enum status profile_input_read(const char *path, const struct profile_input *input, struct profile *ret,
                               const char **format_ret, struct error *err) MUST_CHECK;

#endif
