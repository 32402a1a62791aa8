/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_COMMANDS_PROFILE_OUTPUT_H
#define CAIRN_CLI_COMMANDS_PROFILE_OUTPUT_H

/**
 * @file
 * The output formats of a profile. Files appear complete or not at all.
 * Threads: no shared state.
 */
#include <stdbool.h>

#include "common/memory/buf.h"
#include "profile-formats/profile.h"

enum profile_shape {
        SHAPE_TEXT, /* the table of `cairn top` */
        SHAPE_JSON, /* of `cairn top --json` */
        SHAPE_HTML, /* the flame graph of `cairn flame` */
        SHAPE_FOLDED,
        SHAPE_PPROF,
        SHAPE_OTLP, /* as recorded, with addresses */
};

enum status profile_shape_parse(const char *name, enum profile_shape *ret, struct error *err) MUST_CHECK;

/** The format that a file's suffix means: .html, .json, .txt, .folded, .pb.gz, .pprof, .otlp. ST_USAGE for others. */
enum status profile_shape_of(const char *path, enum profile_shape *ret, struct error *err) MUST_CHECK;

bool profile_shape_is_binary(enum profile_shape s);

struct profile_form {
        const char *limit; /* rows of a table; NULL: as `cairn top` */
        const char *names; /* "short", "full"; NULL: as `cairn top` and `cairn flame` */
        const char *type;  /* sample type of tables, flame graphs and folded stacks; NULL: as `cairn top` */
};

/** Append a resolved profile in that format. */
enum status profile_shape_put(const struct profile *p, enum profile_shape s, const struct profile_form *form,
                              struct buf *ret, struct error *err) MUST_CHECK;

/**
 * Check before a long recording that a file can be written.
 * @param path  NULL or "-": standard output.
 */
enum status profile_output_check(const char *path, struct error *err) MUST_CHECK;
enum status profile_output_write(const char *path, const struct buf *b, struct error *err) MUST_CHECK;

/** Add a frame with the label's value as root of every stack whose sample has the label. */
enum status profile_add_roots(struct profile *p, const char *label, struct error *err) MUST_CHECK;

#endif
