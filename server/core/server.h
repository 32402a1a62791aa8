/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_CORE_SERVER_H
#define CAIRN_SERVER_CORE_SERVER_H

/**
 * @file
 * The service: HTTP and gRPC access to the stores of one data directory, the indexing pipeline, and the federation.
 *
 * Files: DIR/index, DIR/debuginfo, DIR/shares, DIR/profiles, for tenants DIR/tenants/NAME/profiles. The service that
 * writes holds DIR/lock. DIR/resymbolize-queue lists build-ids whose symbols changed and whose locations are not
 * re-symbolized yet.
 */
#include "server/server_options.h"

/** Run until SIGINT or SIGTERM, then flush and close. Logs with common/program/log.h. Call from the main thread, before
 * others exist. */
enum status server_run(const struct server_options *options, struct error *err) MUST_CHECK;

#endif
