/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_PROGRAM_SHUTDOWN_SIGNALS_H
#define CAIRN_COMMON_PROGRAM_SHUTDOWN_SIGNALS_H

/**
 * @file
 * SIGINT, SIGTERM and SIGHUP as a pollable descriptor; SIGPIPE is ignored.
 *
 * Threads: call from the main thread before others exist; they inherit the blocked signals.
 */
#include "common/error.h"

/** A non-blocking signalfd, owned. The signals stay blocked. */
enum status shutdown_signals_open(int *ret, struct error *err) MUST_CHECK;

#endif
