/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_SERVICE_NOTIFY_H
#define CAIRN_COMMON_SERVICE_NOTIFY_H

/**
 * @file
 * What a program tells systemd of itself (Type=notify, WatchdogSec=): a datagram to the socket that NOTIFY_SOCKET
 * names. Without the variable all of this does nothing.
 *
 * Threads: init while there is one; the others by one thread at a time.
 * Source: sd_notify(3), sd_watchdog_enabled(3).
 */

/** Read the environment and remove the variables from it: workers are not the service. */
void service_notify_init(void);

void service_notify_ready(void);
void service_notify_reloading(void); /* service_notify_ready() ends it */
void service_notify_stopping(void);

/** Say that the program is alive, unless that was said within half of WatchdogSec=, however often this is called. */
void service_notify_alive(void);

/**
 * The longest time between two calls of service_notify_alive(): a quarter of WatchdogSec=, so that no two messages are
 * more than three quarters apart. -1 when there is no watchdog.
 */
int service_notify_interval_ms(void);

#endif
