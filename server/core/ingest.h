/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_CORE_INGEST_H
#define CAIRN_SERVER_CORE_INGEST_H

/**
 * @file
 * Common code of the ingest routes: batch ids, append, metrics of success and failure.
 */
#include "http/http_server.h"
#include "server/core/server_internal.h"

/** Input of a batch id. */
struct batch_source {
        const char *header; /* X-Cairn-Batch; NULL: absent */
        const char *uri, *token;
        const void *body; /* unpacked */
        size_t size;
};

/** read_batch_id() for any protocol. */
enum status compute_batch_id(const struct batch_source *source, struct hash128 *ret, struct error *err) MUST_CHECK;

/**
 * The id of the request's batch: the header X-Cairn-Batch (32 hexadecimal digits), else a hash of the unpacked body,
 * the path with its query, and the token. ST_USAGE for a malformed header.
 */
enum status read_batch_id(const struct http_request *req, struct hash128 *ret, struct error *err) MUST_CHECK;

/** Properties of a batch from its request. Texts are borrowed from the request. */
struct ingest_batch {
        struct tenant *tenant;
        struct hash128 id;
        bool is_identified;          /* the sender gave the id (X-Cairn-Batch) */
        bool is_request;             /* handled by a thread of a pool, whose place it gives up while it waits */
        bool is_history;             /* accept samples of any age */
        int64_t arrived_ns;          /* when the request was complete, by monotonic_ns() */
        const char *agent, *address; /* User-Agent and address of the client; NULL: unknown */
        uint32_t sender;             /* pool_sender_number() */
};

struct grpc_call;

/** All members except id and is_history. */
struct ingest_batch begin_http_batch(const struct http_request *req);
struct ingest_batch begin_grpc_batch(const struct grpc_call *call);

/**
 * Give samples without a time that of their arrival. If none has a time, equal requests are different samples, so the
 * batch gets an id of its own, unless the sender gave one. With a time in it, an equal request is a repetition.
 */
void set_arrival_times(struct ingest_batch *batch, struct profile *p, int64_t arrival_unix_ns);

#define HISTORY_HEADER "X-Cairn-History"

/**
 * Whether the request is from cairn import --history (header X-Cairn-History: 1), so that --max-age does not apply.
 * @return false when it was answered: malformed header, or a token without the scope history.
 */
bool check_history(struct http_request *req, bool *ret);

/**
 * Reject unacceptable samples (profile_reject_unacceptable()), append the others, count both, and record the sender.
 * The samples are durable when it returns ST_OK.
 * @param duplicate_ret  the batch was received before: no samples were added. May be NULL.
 */
enum status append_ingested_batch(const struct ingest_batch *batch, struct profile *profile, bool *duplicate_ret,
                                  struct error *err) MUST_CHECK;

/**
 * For protocols that cannot report rejected samples: ST_BAD_DATA when all samples were rejected.
 */
enum status fail_if_all_rejected(const struct profile *p, struct error *err) MUST_CHECK;

#define MESSAGE_HEADER "X-Cairn-Message"

/** Why an accepted batch added no samples (it has none, or it was received before), or the note of its profile. */
struct ingest_remark {
        char text[320];
};
void describe_added_samples(const struct profile *p, bool duplicate, struct ingest_remark *ret);
/** Set the response header MESSAGE_HEADER to a remark that is not empty. */
void set_ingest_remark(struct http_request *req, const struct ingest_remark *r);

struct otlp_body {
        const void *bytes; /* unpacked */
        size_t size;
        bool is_json;
};

/** Content of an OTLP response. */
struct otlp_outcome {
        uint64_t rejected;
        uint64_t expiring; /* accepted samples that the age limit of retention removes; only of history batches */
        char message[640]; /* the first reason of a rejection, whether the batch is a duplicate, and the expiring
                              samples;
                              "": none */
};

/**
 * Decode an ExportProfilesServiceRequest and append it, for any protocol. The caller counts failures.
 * @param ret  untouched on failure.
 */
enum status ingest_otlp_batch(const struct ingest_batch *batch, const struct otlp_body *body, struct otlp_outcome *ret,
                              struct error *err) MUST_CHECK;

/**
 * Append the batches of a page of a gateway (docs/formats/head-page.md), and count them. They are durable when it
 * returns ST_OK, with --ack=store in the object store.
 */
enum status append_forwarded_batches(const struct ingest_batch *batch, const void *page, size_t n,
                                     struct forwarded_batches *ret, struct error *err) MUST_CHECK;

/** Register the histogram of ingest before the first batch. */
void register_ingest_duration(void);

/** Count a refused batch by its reason. @param text  error text */
void count_ingest_failure(const struct ingest_batch *batch, enum status st, const char *text);

/** Count a failure, and log it if the service itself failed. @return whether it did. */
bool report_ingest_failure(const struct ingest_batch *batch, enum status st, const struct error *err);

/**
 * Report a failure and respond. A full disk or lack of memory is 503 with Retry-After: OTLP clients retry only after
 * 429, 502, 503 and 504.
 */
void fail_ingest(struct http_request *req, enum status st, const struct error *err);

/** The same for a gRPC call: UNAVAILABLE with the time of a retry. */
void fail_ingest_call(struct grpc_call *call, const struct ingest_batch *batch, enum status st,
                      const struct error *err);

#endif
