/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_COMMANDS_DEBUGINFO_COMMAND_H
#define CAIRN_CLI_COMMANDS_DEBUGINFO_COMMAND_H

/**
 * @file
 * Shared by the verbs of `cairn debuginfo`: those that read or check whole objects are in debuginfo_content.c, all
 * others and the command itself in debuginfo_command.c.
 */
#include "cli/commands/run_query.h"
#include "debuginfo-store/debuginfo_store.h"
#include "symbol-index/lookup.h"

struct debuginfo_options {
        struct query_options ask;
        const char *limit, *output;
        enum object_kind kind;
        struct option_list retain;
        const char *const *fields; /* offsets: STRUCT.FIELD */
        size_t field_count;
        bool json, dry_run;
};

/* The verbs. ids: the build-ids of the command line, or none. */
enum status debuginfo_get(const struct debuginfo_options *o, const struct build_id *ids, size_t count,
                          struct error *err);
enum status debuginfo_offsets(const struct debuginfo_options *o, const struct build_id *ids, size_t count,
                              struct error *err);
enum status debuginfo_verify(const struct debuginfo_options *o, const struct build_id *ids, size_t count,
                             struct error *err);

/** Send a request to the service and append the response body to ret. body may be NULL. */
enum status debuginfo_request(const struct debuginfo_options *o, const char *method, const char *path, const char *body,
                              struct buf *ret, struct error *err) MUST_CHECK;

/** The stores of one tenant in a data directory. Zeroed: closed. */
struct debuginfo_dir {
        struct debuginfo_store *objects;
        struct symbol_index *symbols; /* read-only; NULL as from open_optional_index() */
        int lock;                     /* 0: none */
};
/**
 * Open the stores of o's tenant in o's data directory.
 * @param write  fails with ST_BUSY while another process has the directory open for writing.
 */
enum status debuginfo_dir_open(const struct debuginfo_options *o, bool write, struct debuginfo_dir *ret,
                               struct error *err) MUST_CHECK;
void debuginfo_dir_close(struct debuginfo_dir *d);

#endif
