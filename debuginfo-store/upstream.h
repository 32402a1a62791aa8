/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_UPSTREAM_H
#define CAIRN_DEBUGINFO_STORE_UPSTREAM_H

/**
 * @file
 * One upstream debuginfod server as those who ask it see it: its circuit breaker and its figures.
 *
 * After some failures in a row the breaker opens: the upstream is not asked for a while, which is twice as long after
 * each further failure, or for as long as its Retry-After says. Then one question is let through; its answer closes the breaker,
 * its failure opens it again. An answer is anything that the upstream says for certain, "not found" included.
 *
 * Threads: any, except create and destroy.
 */
#include <stdbool.h>
#include <stdint.h>

#include "debuginfo-store/fetch.h"

struct upstream;

enum upstream_state { UPSTREAM_CLOSED, UPSTREAM_OPEN, UPSTREAM_HALF_OPEN };
const char *upstream_state_name(enum upstream_state s); /* of the breaker: "closed" all is well, "open", "half_open" */

enum upstream_outcome {
        UPSTREAM_FOUND,
        UPSTREAM_MISSING,
        UPSTREAM_REFUSED, /* what it sent was not what was asked for, or too large */
        UPSTREAM_FAILED,
        UPSTREAM_UNSURE,  /* given up, or an answer that says nothing of the upstream */
        UPSTREAM_OUTCOME_COUNT
};

struct upstream_status {
        char url[FETCH_URL_TEXT];   /* without user and password */
        enum upstream_state state;
        unsigned failures;          /* in a row */
        uint64_t retry_in_s;        /* while open */
        uint64_t answers[UPSTREAM_OUTCOME_COUNT];
        uint64_t skipped;           /* questions that an open breaker kept from it */
        uint64_t bytes;             /* that were taken from it */
        unsigned in_flight;
        uint64_t slowest_ms;        /* of the last hundred questions or less */
        uint64_t mean_ms;           /* of all that it answered */
        int64_t last_error_unix_s;  /* 0 none */
        char last_error[200];
};

struct upstream_options {
        const char *url;         /* copied */
        const char *header;      /* as in struct fetch_question; copied; NULL none */
        unsigned failures_max;   /* in a row, that open the breaker; 0: 5 */
        uint64_t pause_s;        /* for which it is open the first time; 0: 30 */
};

enum status upstream_create(const struct upstream_options *options, struct upstream **ret, struct error *err) MUST_CHECK;
void upstream_destroy(struct upstream *u);
const char *upstream_url(const struct upstream *u); /* borrowed; may hold a password */
const char *upstream_header(const struct upstream *u); /* borrowed; NULL none */

/**
 * May it be asked? After ST_OK upstream_end() must follow.
 * @param epoch_ret for upstream_end(): how often the breaker had opened.
 * @return ST_BUSY when its breaker is open.
 */
enum status upstream_begin(struct upstream *u, uint64_t *epoch_ret, struct error *err) MUST_CHECK;

enum upstream_change { UPSTREAM_UNCHANGED, UPSTREAM_WENT, UPSTREAM_CAME_BACK };

/**
 * What became of a question. One from before the breaker opened last may still close it, and does nothing else to it: its
 * failure is no news, and the one question that is let through goes on alone.
 * @param why of UPSTREAM_FAILED and UPSTREAM_REFUSED.
 * @return whether the breaker has opened or closed by that.
 */
enum upstream_change upstream_end(struct upstream *u, uint64_t epoch, enum upstream_outcome outcome,
                                  const struct fetch_answer *answer, uint64_t took_ms, const struct error *why);

void upstream_get(struct upstream *u, struct upstream_status *ret);

#endif
