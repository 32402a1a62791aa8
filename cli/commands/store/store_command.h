/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_COMMANDS_STORE_STORE_COMMAND_H
#define CAIRN_CLI_COMMANDS_STORE_STORE_COMMAND_H

/**
 * @file
 * Shared by the files of `cairn store`: its options, and one function per verb.
 */
#include <stdbool.h>
#include <stdint.h>

#include "cli/shared/service.h"
#include "common/error.h"
#include "common/memory/buf.h"

struct store_command {
        const char *data;                             /* the service's data directory */
        const char *place;                            /* what --data says, for messages */
        const char *second;                           /* the argument after the first */
        const char *dir;                              /* its profile store, DATA/profiles; NULL at a service */
        const char *output;                           /* NULL: none given */
        const char *table;                            /* NULL: all */
        const char *type, *from, *to, *step, *format; /* of export; NULL: not given */
        bool json, sql, dry_run;
        bool at_service;                /* in place of the data directory */
        struct option_list retain;      /* retention rules of samples */
        struct service_options service; /* server NULL: none given */
};

/** "2026-11-20T22:14:15Z", "-" for 0. */
void format_store_time(int64_t unix_ns, char ret[static 40]);

/** "254.2 KiB". Returns ret. */
const char *format_store_bytes(uint64_t bytes, char ret[static 40]);

/** GET path of the service; the answer is appended to ret. */
enum status store_request(const struct store_command *c, const char *path, struct buf *ret,
                          struct error *err) MUST_CHECK;

/**
 * A verb of `cairn store`. Prints its result.
 * @param argument  of the command line: TARGET, the selector or the batch id; NULL: none.
 */
typedef enum status store_verb(const struct store_command *c, const char *argument, struct error *err);

store_verb store_status_command, store_files_command, store_snapshot_command, store_export_command, store_copy_command,
        store_compact_command, store_expire_command;
store_verb store_verify_command; /* ST_BAD_DATA when problems were found */
store_verb quarantine_list_command, quarantine_retry_command, quarantine_remove_command, quarantine_export_command;

#endif
