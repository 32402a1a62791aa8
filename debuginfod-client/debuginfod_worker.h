/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFOD_CLIENT_WORKER_H
#define CAIRN_DEBUGINFOD_CLIENT_WORKER_H

/** @file The worker of a debuginfo_fetcher: libdebuginfod, confined. */

/**
 * `worker debuginfod CACHE`: confine this process and serve requests (debuginfod_protocol.h) until the socket closes.
 * Environment: the DEBUGINFOD_* variables that debuginfod_find_debuginfo(3) lists.
 * @return the exit code.
 */
int debuginfod_worker(int argc, char **argv);

#endif
