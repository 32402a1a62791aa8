/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_CORE_START_SIGNALS_H
#define CAIRN_SERVER_CORE_START_SIGNALS_H

/**
 * @file
 * SIGTERM and SIGINT while the service starts. Opening the stores may take long (a queue to replay, a slow disk), and
 * the main thread waits for signals only afterwards; so a thread waits for them meanwhile and ends the process at once.
 * That loses nothing: a start can be interrupted anywhere, as by a power cut.
 *
 * Threads: the main thread. The signals are blocked in all threads.
 */
#include <pthread.h>

#include "common/error.h"

struct start_signals {
        pthread_t thread;
        int signal_fd, end_fd; /* -1: closed */
        int got;               /* signal that came when the start had ended; 0: none */
};

enum status start_signals_begin(struct start_signals *s, struct error *err) MUST_CHECK;
/** The start has ended. @return the signal that came meanwhile and has to be handled; 0: none. */
int start_signals_end(struct start_signals *s);

#endif
