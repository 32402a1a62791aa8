/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_PROFILE_OUTPUT_H
#define CAIRN_CLI_PROFILE_OUTPUT_H

/**
 * @file
 * A profile in the shapes that people and tools want, and files that are there whole or not at all.
 * Threads: no shared state.
 */
#include <stdbool.h>

#include "common/buf.h"
#include "profile-formats/profile.h"

enum profile_shape {
        SHAPE_TEXT,   /* the table of `cairn top` */
        SHAPE_JSON,   /* of `cairn top --json` */
        SHAPE_HTML,   /* the flame graph of `cairn flame` */
        SHAPE_FOLDED,
        SHAPE_PPROF,
        SHAPE_OTLP,   /* as it was recorded: addresses */
};

enum status profile_shape_parse(const char *name, enum profile_shape *ret, struct error *err) MUST_CHECK;

/** What the end of a file's name says: .html, .json, .txt, .folded, .pb.gz, .pprof, .otlp. ST_USAGE when nothing. */
enum status profile_shape_of(const char *path, enum profile_shape *ret, struct error *err) MUST_CHECK;

bool profile_shape_is_binary(enum profile_shape s);

struct profile_form {
        const char *limit; /* rows of a table; NULL: as `cairn top` */
        const char *names; /* "short", "full"; NULL: as `cairn top` and `cairn flame` */
};

/** Append the profile, which has its symbols, in that shape. */
enum status profile_shape_put(const struct profile *p, enum profile_shape s, const struct profile_form *form,
                              struct buf *ret, struct error *err) MUST_CHECK;

/** Could a file be written there? To be asked before hours of work. @param path  NULL or "-": standard output. */
enum status profile_output_check(const char *path, struct error *err) MUST_CHECK;
enum status profile_output_write(const char *path, const struct buf *b, struct error *err) MUST_CHECK;

/** Put a frame with the value of a label at the root of every stack whose sample has it. */
enum status profile_add_roots(struct profile *p, const char *label, struct error *err) MUST_CHECK;

#endif
