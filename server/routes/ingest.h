/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_ROUTES_INGEST_H
#define CAIRN_SERVER_ROUTES_INGEST_H

/**
 * @file
 * Shared by the ingest routes: identity of a batch, append, metrics of both outcomes.
 */
#include "http/server.h"
#include "server/server_internal.h"

/** What the identity of a batch is derived from. */
struct batch_source {
        const char *header; /* X-Cairn-Batch; NULL: none was sent */
        const char *uri, *token;
        const void *body; /* unpacked */
        size_t size;
};

/** As read_batch_id(), for a request of any protocol. */
enum status compute_batch_id(const struct batch_source *source, struct hash128 *ret, struct error *err) MUST_CHECK;

/**
 * Identity of the request's batch: the header X-Cairn-Batch (32 hexadecimal
 * digits), else a hash of the unpacked body, the path with its query, and the
 * token. ST_USAGE for a malformed header.
 */
enum status read_batch_id(const struct http_request *req, struct hash128 *ret, struct error *err) MUST_CHECK;

/** A batch as its request has it. Texts are borrowed from the request. */
struct ingest_batch {
        struct tenant *tenant;
        struct hash128 id;
        bool is_history;             /* accept samples of any age */
        int64_t arrived_ns;          /* when the request was there, by monotonic_ns() */
        const char *agent, *address; /* User-Agent and address of the client; NULL: not known */
};

struct grpc_call;

/** All but the id and is_history. */
struct ingest_batch begin_http_batch(const struct http_request *req);
struct ingest_batch begin_grpc_batch(const struct grpc_call *call);

#define HISTORY_HEADER "X-Cairn-History"

/**
 * Whether the request is of cairn import --history (header X-Cairn-History: 1), so that --max-age does not apply.
 * @return false when it was answered: a malformed header, or a token without the scope history.
 */
bool check_history(struct http_request *req, bool *ret);

/**
 * Reject samples that may not be stored (profile_reject_unacceptable()), append the others, count both, and note the
 * sender. The samples are durable when it returns ST_OK.
 * @param duplicate_ret  the batch was received before: nothing was added. May be NULL.
 */
enum status append_ingested_batch(const struct ingest_batch *batch, struct profile *profile, bool *duplicate_ret,
                                  struct error *err) MUST_CHECK;

/**
 * For protocols that cannot report rejected samples, which cairn_ingest_rejected_samples_total counts: ST_BAD_DATA when
 * none is left.
 */
enum status fail_if_all_rejected(const struct profile *p, struct error *err) MUST_CHECK;

struct otlp_body {
        const void *bytes; /* unpacked */
        size_t size;
        bool is_json;
};

/** What a response to OTLP says. */
struct otlp_outcome {
        uint64_t rejected;
        char message[400]; /* the first reason, or that the batch is a duplicate; "": nothing */
};

/**
 * Decode an ExportProfilesServiceRequest and append it, whatever protocol brought it.
 * @param ret untouched on failure. A failure is not counted here.
 */
enum status ingest_otlp_batch(const struct ingest_batch *batch, const struct otlp_body *body, struct otlp_outcome *ret,
                              struct error *err) MUST_CHECK;

/** Make the histogram of ingest appear before the first batch. */
void register_ingest_duration(void);

/** Count a refused batch by its reason. @param text why */
void count_ingest_failure(const struct ingest_batch *batch, enum status st, const char *text);

/** Count a failure, and log one of the service itself. @return whether it is one. */
bool report_ingest_failure(const struct ingest_batch *batch, enum status st, const struct error *err);

/**
 * Report a failure and respond. A full disk or memory is 503 with Retry-After: OTLP clients retry only after 429, 502,
 * 503 and 504.
 */
void fail_ingest(struct http_request *req, enum status st, const struct error *err);

#endif
