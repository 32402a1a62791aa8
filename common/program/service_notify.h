/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_PROGRAM_SERVICE_NOTIFY_H
#define CAIRN_COMMON_PROGRAM_SERVICE_NOTIFY_H

/**
 * @file
 * Service notifications to systemd (Type=notify, WatchdogSec=): datagrams to the socket named by NOTIFY_SOCKET. Without
 * the variable these functions do nothing.
 *
 * Threads: init while there is only one thread; the others from one thread at a time.
 * Source: sd_notify(3), sd_watchdog_enabled(3).
 */

/** Read the environment and remove the variables from it: workers must not send notifications. */
void service_notify_init(void);

void service_notify_ready(void);
void service_notify_reloading(void); /* end with service_notify_ready() */
void service_notify_stopping(void);

/** Send the watchdog keep-alive, at most once per half of WatchdogSec=, however often this is called. */
void service_notify_alive(void);

/**
 * The maximum time between two calls of service_notify_alive(): a quarter of WatchdogSec=, so that two messages are
 * never more than three quarters apart. -1 without a watchdog.
 */
int service_notify_interval_ms(void);

#endif
