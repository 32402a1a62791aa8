/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_SHUTDOWN_SIGNALS_H
#define CAIRN_COMMON_SHUTDOWN_SIGNALS_H

/**
 * @file
 * SIGINT, SIGTERM and SIGHUP as something to poll for, and no SIGPIPE.
 *
 * Threads: call from the main thread before others exist, which then leave
 * the signals alone too.
 */
#include "common/error.h"

/** A signalfd that does not block; close it. The signals stay blocked. */
enum status shutdown_signals_open(int *ret, struct error *err) MUST_CHECK;

#endif
