/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SENDING_SPOOL_DIRECTORY_H
#define CAIRN_SENDING_SPOOL_DIRECTORY_H

/**
 * @file
 * Opens the directory of the spool, which is created if it is missing.
 *
 * The path may lead through directories of other users. A symbolic link of one of them, at any place of the path, would
 * make a privileged agent write where that user wants, so only links of the agent's user and of root are followed. The
 * path is walked component by component: a link that is checked by its name could be replaced before it is followed.
 *
 * Threads: no shared state.
 */
#include "common/error.h"

/** @param fd_ret  owned. @return ST_USAGE for a link of another user, ST_OS. */
enum status spool_directory_open(const char *dir, int *fd_ret, struct error *err) MUST_CHECK;

#endif
