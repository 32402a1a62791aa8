/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SANDBOX_FD_PASS_H
#define CAIRN_SANDBOX_FD_PASS_H

/**
 * @file
 * Passes one open file, or none, over a Unix socket from the parent to a worker.
 *
 * Threads: one sender and one receiver.
 */
#include "common/error.h"

/**
 * Send fd, which stays owned by the caller; -1: none. Does not block: the message is dropped if the receiver does not
 * read.
 */
void fd_send(int socket, int fd);

/** Wait for a descriptor. @param ret owned by the caller; -1: none, or the peer has closed the socket. */
enum status fd_receive(int socket, int *ret, struct error *err) MUST_CHECK;

#endif
