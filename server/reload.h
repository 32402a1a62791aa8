/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_RELOAD_H
#define CAIRN_SERVER_RELOAD_H

/**
 * @file
 * Reload at SIGHUP: reads the configuration again, and the files that it names, and applies what can change while the
 * service runs: tokens, certificate, tenants' limits and rules, retention, bounds of samples' ages, the rate of
 * addresses, upstreams. What is wrong is left as it was, and reported by the log, by /readyz (reload_failing) and by
 * cairn_reload_failures_total; the rest is applied. Options that need a restart are named in the log at each reload,
 * until they have it.
 *
 * Threads: the one that runs the server.
 */
struct server;

void reload_register_metrics(void);
void server_reload(struct server *s);

#endif
