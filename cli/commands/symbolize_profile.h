/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_COMMANDS_SYMBOLIZE_PROFILE_H
#define CAIRN_CLI_COMMANDS_SYMBOLIZE_PROFILE_H

/**
 * @file
 * `cairn symbolize` for profiles: pprof files, perf script text, folded stacks. The output has the format of the input,
 * or folded stacks.
 */
#include "cli/symbols/object_finder.h"
#include "common/memory/buf.h"

struct symbolize_profile {
        const char *pprof, *perf_script, *folded; /* the input, one of them; "-" is standard input */
        const char *output;                       /* NULL and "-": standard output */
        bool fold;                                /* convert perf script to folded stacks */
        bool force, verbose;
        struct object_finder_options objects;
};

enum status symbolize_profile(const struct symbolize_profile *o, struct error *err) MUST_CHECK;

#endif
