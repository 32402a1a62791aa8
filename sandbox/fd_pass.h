/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SANDBOX_FD_PASS_H
#define CAIRN_SANDBOX_FD_PASS_H

/**
 * @file
 * Passes one open file, or none, over a Unix socket from the parent to a worker.
 *
 * Threads: one sender and one receiver at each end.
 */
#include "common/error.h"

/**
 * Send fd, which stays owned by the caller; -1: none. Does not block: the message is dropped when the receiver does not
 * read.
 */
void fd_send(int socket, int fd);

/** Wait for a descriptor. @param ret owned by the caller; -1: none, or the peer is gone. */
enum status fd_receive(int socket, int *ret, struct error *err) MUST_CHECK;

#endif
