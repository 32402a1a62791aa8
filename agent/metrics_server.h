/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_METRICS_SERVER_H
#define CAIRN_AGENT_METRICS_SERVER_H

/**
 * @file
 * /metrics, the agent's counters as of the last drain, and /healthz, which
 * fails when no drain came for three intervals. Nothing else, and nothing can
 * be changed there.
 * Threads: metrics_server_drained() by one.
 */
#include <stdint.h>

#include "common/error.h"

struct metrics_server;

/** @param address "HOST:PORT"; port 0 is any free one. The address is logged. */
enum status metrics_server_start(const char *address, uint64_t interval_s, struct metrics_server **ret,
                                 struct error *err) MUST_CHECK;
void metrics_server_stop(struct metrics_server *s); /* takes NULL */

/** A drain was done; NULL is allowed. */
void metrics_server_drained(struct metrics_server *s);

#endif
