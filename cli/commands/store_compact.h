/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_COMMANDS_STORE_COMPACT_H
#define CAIRN_CLI_COMMANDS_STORE_COMPACT_H

/**
 * @file
 * cairn store compact: merge small files of the tables, at a service or in a data directory.
 */
#include "cli/service.h"

/**
 * Print what was merged.
 * @param data  a data directory whose service is stopped; NULL: request it from the service.
 */
enum status run_store_compact(const struct service_options *service, const char *data, bool json,
                              struct error *err) MUST_CHECK;

#endif
