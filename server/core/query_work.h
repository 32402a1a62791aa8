/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_CORE_QUERY_WORK_H
#define CAIRN_SERVER_CORE_QUERY_WORK_H

/**
 * @file
 * Work meter of one query: stops it at the request's deadline, when its client disconnects, and when the server stops.
 * Its duration is observed in cairn_query_duration_seconds, and a slow query is logged.
 *
 * Threads: belongs to the request.
 */
#include "common/threads/work_meter.h"
#include "http/http_server.h"
#include "query/query.h"

enum query_end { QUERY_RUNS, QUERY_DEADLINE, QUERY_CLIENT, QUERY_SHUTDOWN };

struct query_work {
        struct work_meter meter;
        struct http_request *req; /* NULL: not an HTTP request */
        const struct deadline *deadline;
        const atomic_bool *stopping;
        enum query_end end;
        const char *kind; /* "top", "querier" and so on */
        const char *target, *tenant;
        int64_t arrived_ns;
        struct query_report report; /* for the query to fill */
};

/** Set the duration, in nanoseconds, from which a query is logged as slow. 0: never. */
void query_work_set_slow(uint64_t slow_ns);

/** w must not move afterwards: the meter points to it. @param kind  borrowed; an unknown kind has no histogram */
void query_work_init(struct query_work *w, struct http_request *req, const char *kind);

/** A query of another protocol, and the events that end it. All borrowed. */
struct query_bounds {
        const char *kind;
        const char *target; /* what was called, for the log */
        const char *tenant;
        int64_t arrived_ns; /* when its request was complete, by monotonic_ns() */
        const struct deadline *deadline;
        const atomic_bool *stopping; /* set when the server stops */
};
void query_work_init_other(struct query_work *w, const struct query_bounds *bounds);

/**
 * Observe the duration of a query whose answer was written; one that could not be written in full is a failed query.
 * query_work_respond() calls it.
 * @return whether the answer is complete
 */
bool query_work_finish(const struct query_work *w, const struct buf *answer);

/** Count a failed query by its reason and observe its duration; for an answer of another protocol. */
void query_work_count_failure(const struct query_work *w);

/** Respond with the answer of a successful query; a page gets its Content-Security-Policy. @param body  bytes taken */
void query_work_respond(const struct query_work *w, const struct query_answer *answer, struct buf *body);

/**
 * Respond to a failed query and count it by its reason: 504 past the deadline, 503 at shutdown, 413 after too many
 * steps, otherwise http_fail().
 */
void query_work_answer_failure(const struct query_work *w, enum status st, const struct error *err);

#endif
