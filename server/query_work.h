/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_QUERY_WORK_H
#define CAIRN_SERVER_QUERY_WORK_H

/**
 * @file
 * A work meter for the query of one request: it ends with the request's
 * deadline, when its client leaves, and with the server's shutdown. Private to server/.
 *
 * Threads: belongs to the request.
 */
#include "common/work_meter.h"
#include "http/server.h"

enum query_end { QUERY_RUNS, QUERY_DEADLINE, QUERY_CLIENT, QUERY_SHUTDOWN };

struct query_work {
        struct work_meter meter;
        struct http_request *req;
        enum query_end end;
};

/** Not to be moved afterwards: the meter points to it. */
void query_work_init(struct query_work *w, struct http_request *req);

/**
 * Answer a query that failed, and count it when it was ended: 504 past the deadline, 503 at shutdown, 413 when it
 * took too many steps, otherwise http_fail().
 */
void query_work_fail(const struct query_work *w, enum status st, const struct error *err);

#endif
