/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_AUDIT_H
#define CAIRN_SERVER_AUDIT_H

/**
 * @file
 * Who changed what: a log line for each request to a route that writes, and
 * for each that was refused for its token. Profiles, which agents send all the
 * time, are counted and not logged.
 *
 * Of refusals at most AUDIT_REFUSALS_PER_S are logged in a second, so that
 * nobody fills a disk with them; all are counted.
 *
 * Threads: any.
 */
#include "http/server.h"

#define AUDIT_REFUSALS_PER_S 10

/** For http_options.answered. */
void audit_answered(void *context, const struct http_request *req, unsigned code);

#endif
