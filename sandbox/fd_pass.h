/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SANDBOX_FD_PASS_H
#define CAIRN_SANDBOX_FD_PASS_H

/**
 * @file
 * An answer of one open file, or of none, over a Unix socket between a worker
 * and who started it.
 *
 * Threads: one sender and one receiver at each end.
 */
#include "common/error.h"

/** Answer with fd, which stays the caller's; -1: none. Never waits: who reads no answers gets none. */
void fd_pass(int socket, int fd);

/** Wait for an answer. @param ret the caller's; -1: none, or the other end is gone. */
enum status fd_take(int socket, int *ret, struct error *err) MUST_CHECK;

#endif
