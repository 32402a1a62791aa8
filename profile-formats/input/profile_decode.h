/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_INPUT_PROFILE_DECODE_H
#define CAIRN_PROFILE_FORMATS_INPUT_PROFILE_DECODE_H

/**
 * @file
 * Decoding of a profile whose format is named or detected: pprof, OTLP (protobuf or JSON), speedscope, perf script
 * text, folded stacks.
 *
 * Threads: no shared state.
 */
#include "profile-formats/profile.h"

#define PROFILE_FORMAT_NAMES "pprof, otlp, speedscope, perf, folded"

struct profile_decode_options {
        const char *format;   /* one of PROFILE_FORMAT_NAMES; NULL: detected */
        const char *type;     /* profile type of folded stacks, five parts; NULL: the default of folded_decode() */
        int64_t time_unix_ns; /* of the last sample of perf script text, whose times are relative to boot */
};

/**
 * Samples without a time keep none: profile_set_missing_times().
 * @param ret         initialised here; profile_deinit() it on success only.
 * @param format_ret  the format's name, static; may be NULL.
 * @return ST_USAGE: an unknown name of a format; ST_BAD_DATA: none of the formats, or damaged; ST_TOO_BIG.
 */
enum status profile_decode(const void *data, size_t n, const struct profile_decode_options *o, struct profile *ret,
                           const char **format_ret, struct error *err) MUST_CHECK;

#endif
