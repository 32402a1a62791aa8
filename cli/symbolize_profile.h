/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_SYMBOLIZE_PROFILE_H
#define CAIRN_CLI_SYMBOLIZE_PROFILE_H

/**
 * @file
 * `cairn symbolize` on whole profiles: pprof files, the text of perf script, folded stacks. What comes out has the
 * form of what came in, or folded stacks.
 */
#include "cli/object_finder.h"
#include "common/buf.h"

struct symbolize_profile {
        const char *pprof, *perf_script, *folded; /* the input, one of them; "-" is standard input */
        const char *output;                       /* NULL and "-": standard output */
        bool fold;                                /* perf script to folded stacks */
        bool force, verbose;
        struct object_finder_options objects;
};

enum status symbolize_profile(const struct symbolize_profile *o, struct error *err) MUST_CHECK;

/*
 * One form each, symbolize_pprof.c, symbolize_perf.c, symbolize_folded.c.
 * @param in   the input, unpacked.  @param ret  what is to be written.
 */
enum status symbolize_pprof(const struct symbolize_profile *o, struct object_finder *finder, const struct buf *in,
                            struct buf *ret, struct error *err) MUST_CHECK;
enum status symbolize_perf(const struct symbolize_profile *o, struct object_finder *finder, const struct buf *in,
                           struct buf *ret, struct error *err) MUST_CHECK;
enum status symbolize_folded(const struct symbolize_profile *o, struct object_finder *finder, const struct buf *in,
                             struct buf *ret, struct error *err) MUST_CHECK;

#endif
