/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_COMMANDS_STORE_H
#define CAIRN_CLI_COMMANDS_STORE_H

/**
 * @file
 * Shared by the files of `cairn store`: its options, and one function per subcommand.
 */
#include <stdbool.h>
#include <stdint.h>

#include "cli/service.h"
#include "common/error.h"

struct store_command {
        const char *data;                                        /* the service's data directory */
        const char *dir;                                         /* its profile store, DATA/profiles */
        const char *output;                                      /* NULL: none given */
        const char *table;                                       /* NULL: all */
        const char *selector, *type, *from, *to, *step, *format; /* of export; NULL: not given */
        bool json, sql, dry_run;
        struct option_list retain;      /* retention rules of samples */
        struct service_options service; /* server NULL: none given */
};

/** "2026-11-20T22:14:15Z", "-" for 0. */
void format_store_time(int64_t unix_ns, char ret[static 40]);

/** cairn store expire. */
enum status store_expire_command(const struct store_command *c, struct error *err) MUST_CHECK;

/** cairn store files. */
enum status store_files_command(const struct store_command *c, struct error *err) MUST_CHECK;

/** cairn store snapshot DIR. */
enum status store_snapshot_command(const struct store_command *c, const char *dir, struct error *err) MUST_CHECK;

/** cairn store export. */
enum status store_export_command(const struct store_command *c, struct error *err) MUST_CHECK;

/** cairn store verify: ST_BAD_DATA when problems were found. */
enum status store_verify_command(const struct store_command *c, struct error *err) MUST_CHECK;

#endif
