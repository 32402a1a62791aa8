/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_CORE_RELOAD_H
#define CAIRN_SERVER_CORE_RELOAD_H

/**
 * @file
 * Reload on SIGHUP: reads the configuration and the files that it names again, and applies the settings that can change
 * at run time: tokens, certificate, limits and rules of tenants, retention, limits of sample ages, the rate limit of
 * addresses, upstreams. A part that fails keeps its previous state and is reported in the log, by /readyz
 * (reload_failing) and by cairn_reload_failures_total; the other parts are applied. Changed options that need a restart
 * are logged at each reload until the restart.
 *
 * Threads: the thread that runs the server.
 */
struct server;

void reload_register_metrics(void);
void server_reload(struct server *s);

#endif
