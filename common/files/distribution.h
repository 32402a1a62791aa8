/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_FILES_DISTRIBUTION_H
#define CAIRN_COMMON_FILES_DISTRIBUTION_H

/**
 * @file
 * Files that a distribution installs: their debuginfo is in its packages and on its debuginfod server.
 *
 * Threads: any.
 */
#include <stdbool.h>

/** Whether a package manager installs files at this absolute path. */
bool is_distribution_path(const char *path);

/** URL of the debuginfod server of this machine's distribution; unknown: one that asks those of several. Static. */
const char *get_distribution_debuginfod(void);

#endif
