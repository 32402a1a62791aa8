/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_FEDERATION_UPSTREAM_H
#define CAIRN_DEBUGINFO_STORE_FEDERATION_UPSTREAM_H

/**
 * @file
 * One upstream debuginfod server: its circuit breaker and statistics.
 *
 * After failures_max consecutive failures the breaker opens: the upstream is skipped for a pause that doubles with each
 * further failure, or for its Retry-After. Then one probe request is allowed: a response closes the breaker, a failure
 * opens it again. "Not found" counts as a response.
 *
 * Threads: any.
 */
#include <stdbool.h>
#include <stdint.h>

#include "debuginfo-store/federation/fetch.h"
#include "debuginfo-store/federation/upstream_filter.h"

struct upstream;

enum upstream_state { UPSTREAM_CLOSED, UPSTREAM_OPEN, UPSTREAM_HALF_OPEN };
const char *upstream_state_name(enum upstream_state s); /* of the breaker: "closed", "open", "half_open" */

enum upstream_outcome {
        UPSTREAM_FOUND,
        UPSTREAM_MISSING,
        UPSTREAM_REFUSED, /* its file failed verification or was too large */
        UPSTREAM_FAILED,
        UPSTREAM_UNSURE, /* cancelled, or a result that does not show whether the upstream works */
        UPSTREAM_OUTCOME_COUNT
};

struct upstream_status {
        char url[FETCH_URL_TEXT]; /* without user and password */
        enum upstream_state state;
        unsigned failures;   /* consecutive */
        uint64_t retry_in_s; /* while open */
        uint64_t answers[UPSTREAM_OUTCOME_COUNT];
        uint64_t skipped;  /* requests not sent because the breaker was open */
        uint64_t filtered; /* requests not sent because its filter does not contain the build-id */
        uint64_t bytes;    /* received */
        unsigned in_flight;
        uint64_t slowest_ms;       /* of the last 100 requests */
        uint64_t mean_ms;          /* of all answered requests */
        int64_t last_error_unix_s; /* 0: none */
        char last_error[200];
};

struct upstream_options {
        const char *url;       /* copied */
        const char *tenant;    /* label of its metrics; NULL: none */
        const char *header;    /* as in struct fetch_request; copied; NULL: none */
        unsigned failures_max; /* consecutive failures that open the breaker; 0: 5 */
        uint64_t pause_s;      /* how long it first stays open; 0: 30 */
};

enum status upstream_create(const struct upstream_options *options, struct upstream **ret,
                            struct error *err) MUST_CHECK;
struct upstream *upstream_ref(struct upstream *u);      /* returns u */
void upstream_unref(struct upstream *u);                /* the first reference is from upstream_create(); takes NULL */
const char *upstream_get_url(const struct upstream *u); /* borrowed; may contain a password */
/**
 * Replace the header; running requests keep the previous one. A changed header closes the breaker, since the previous
 * header may have caused the failures.
 * @param header  copied; NULL: none.
 * @param is_changed_ret  whether the header changed.
 */
enum status upstream_set_header(struct upstream *u, const char *header, bool *is_changed_ret,
                                struct error *err) MUST_CHECK;
/** The current header, owned; NULL in ret: none. */
enum status upstream_copy_header(struct upstream *u, char **ret, struct error *err) MUST_CHECK;

/**
 * Check whether the breaker permits a request. After ST_OK call upstream_end_request().
 * @param epoch_ret for upstream_end_request(): how often the breaker has opened so far.
 * @return ST_BUSY if its breaker is open.
 */
enum status upstream_begin_request(struct upstream *u, uint64_t *epoch_ret, struct error *err) MUST_CHECK;

enum upstream_change { UPSTREAM_UNCHANGED, UPSTREAM_LOST, UPSTREAM_RETURNED };

/**
 * Report the outcome of a request. A request that began before the breaker last opened may still close it; its failure
 * is ignored.
 * @param why set for UPSTREAM_FAILED and UPSTREAM_REFUSED.
 * @return whether this opened or closed the breaker.
 */
enum upstream_change upstream_end_request(struct upstream *u, uint64_t epoch, enum upstream_outcome outcome,
                                          const struct fetch_response *response, uint64_t took_ms,
                                          const struct error *why);

/**
 * What the result of a request says about the upstream. A failure of the service itself, and what the client caused by
 * cancelling it, are UPSTREAM_UNSURE.
 *
 * Fetch: of an object or a part of one. Older servers answer requests for sections with a status of 400 or above,
 * which is no failure.
 * Poll: any client can send arbitrary requests of this kind, so a timeout or an HTTP error, which servers without this
 * route return, is UPSTREAM_UNSURE: otherwise a client could open the breaker with slow requests. An unreachable
 * upstream has failed.
 * @param st  of fetch_object(), or of the use of its file: ST_BAD_DATA.
 */
enum upstream_outcome upstream_classify_fetch(enum status st, const struct fetch_response *response,
                                              const char *resource, bool is_cancelled);
enum upstream_outcome upstream_classify_poll(enum status st, const struct fetch_response *response,
                                             bool is_cancelled_or_late);
/**
 * What the result of a request for the upstream's filter says to upstream_filter_set(): statuses of 400 to 499 mean
 * that there is none for us (ST_NOT_FOUND), but those that ask for a later request (408, 425, 429) do not.
 */
enum status upstream_classify_filter(enum status st, const struct fetch_response *response);

/** Of the upstream; lives as long. */
struct upstream_filter *upstream_get_filter(struct upstream *u);
/** Count a request that was not sent because of the filter. */
void upstream_note_filtered(struct upstream *u);

void upstream_get_status(struct upstream *u, struct upstream_status *ret);

#endif
