/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SANDBOX_SETUP_H
#define CAIRN_SANDBOX_SETUP_H

/**
 * Prepare a long-running program for its workers: choose their user, publish the gauges cairn_sandbox_landlock_abi and
 * cairn_worker_uid, and log once which kernel features are missing. Without Landlock the program also becomes
 * non-dumpable, so that a worker of its uid can neither trace it nor read its memory; it then leaves no core dumps.
 *
 * @param subsystem  for the log.
 * @param user       option --worker-user; NULL: the default (sandbox/worker_user.h).
 * @return ST_OK, also if the default user is not available; ST_USAGE or ST_UNSUPPORTED for a chosen user.
 * Threads: call while there is only one, before creating a fork server.
 */
#include "common/error.h"

enum status sandbox_setup(const char *subsystem, const char *user, struct error *err) MUST_CHECK;

#endif
