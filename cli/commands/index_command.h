/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_COMMANDS_INDEX_COMMAND_H
#define CAIRN_CLI_COMMANDS_INDEX_COMMAND_H

/**
 * @file
 * Shared by index_command.c (the command, stat, dump, verify) and index_add.c (indexing files).
 */
#include "cli/shared/service.h"
#include "cli/symbols/debug_files.h"
#include "common/json/json_out.h"
#include "common/memory/buf.h"
#include "symbol-index/index_verify.h"

struct index_command {
        const char *data;
        struct service_options service; /* only its tenant is used */
        struct debug_files debug_files;
        bool json;
        struct symbol_index *index; /* open, for writing where the subcommand writes */
        struct buf text;            /* output that has not been printed; `out` writes to it */
        struct json_out out;
};

/* Index the files of argv. Failures are reported; the result is an exit code. */
int index_add(struct index_command *c, int argc, char **argv);

/** Print c->text. ST_OS when standard output cannot be written. */
enum status index_print(struct index_command *c, struct error *err) MUST_CHECK;

/**
 * Report a failure on standard error.
 * @return its exit code.
 */
int index_report_failure(enum status st, const struct error *err);

/** The indexed object; ST_NOT_FOUND when the index does not have it. */
enum status index_find_object(struct index_command *c, const struct build_id *id, struct symbol_object *ret,
                              struct error *err) MUST_CHECK;

/** Write the JSON members that describe an object. */
void index_write_members(struct index_command *c, const struct build_id *id, const struct symbol_object *o);

#endif
