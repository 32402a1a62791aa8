/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_INDEX_H
#define CAIRN_CLI_INDEX_H

/**
 * @file
 * What the subcommands of `cairn index` share: index_add.c, index_stat.c, index_dump.c, index_verify.c, one each.
 */
#include "common/buf.h"
#include "common/json_out.h"
#include "common/options.h"
#include "symbolizer/index_verify.h"

struct index_command {
        const char *data, *debug_directory;
        bool json;
        struct symbol_index *index; /* open, for writing where the subcommand writes */
        struct buf text;            /* what is to be printed, and `out` writes to it */
        struct json_out out;
};

/* One subcommand each; argv are its arguments without its name. The result is an exit code; failures are told. */
int index_add(struct index_command *c, int argc, char **argv);
int index_stat(struct index_command *c, int argc, char **argv);
int index_dump(struct index_command *c, int argc, char **argv);
int index_verify(struct index_command *c, int argc, char **argv);

/** Print what is gathered in c->text. ST_OS when standard output takes no more. */
enum status index_print(struct index_command *c, struct error *err) MUST_CHECK;

/** Tell a failure on standard error; its exit code. */
int index_fail(enum status st, const struct error *err);

/** The build-id that an argument is, or of the file that it names. ST_USAGE when it is neither. */
enum status index_argument(const char *text, struct build_id *ret, struct error *err) MUST_CHECK;

/** What the index has of an object; ST_NOT_FOUND, which says so, when that is nothing. */
enum status index_object_known(struct index_command *c, const struct build_id *id, struct symbol_object *ret,
                               struct error *err) MUST_CHECK;

/** The members of an object's JSON: what is known of it. */
void index_write_members(struct index_command *c, const struct build_id *id, const struct symbol_object *o);

#endif
