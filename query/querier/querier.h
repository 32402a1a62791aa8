/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_QUERIER_QUERIER_H
#define CAIRN_QUERY_QUERIER_QUERIER_H

/**
 * @file
 * The methods of querier.v1.QuerierService and of parca.query.v1alpha1.QueryService: a message in, a message out
 * (profile-formats/proto/querier.proto, parca_query.proto). docs/formats/querier.md, docs/formats/parca.md.
 *
 * Threads: any number of concurrent calls on one store.
 */
#include "common/error.h"
#include "common/memory/arena.h"
#include "common/threads/work_meter.h"
#include "profile-formats/proto_message.h"
#include "profile-store/profile_store.h"

struct querier_method;
struct query_report;

/** Find a method by name; NULL: unknown. */
const struct querier_method *querier_find_method(const char *name);
/** Find a method of Parca's service by name; NULL: unknown. */
const struct querier_method *querier_find_parca_method(const char *name);
/** Descriptor of the request message. */
const ProtobufCMessageDescriptor *querier_get_request_type(const struct querier_method *m);

/** Input of a call; all borrowed. */
struct querier_input {
        const struct querier_method *method;
        const void *request; /* generated struct of the method's request message */
        int64_t now_unix_ns;
        struct work_meter *meter;    /* charged for all work, and may end the call */
        struct query_report *report; /* as in query/query.h; set by the call. NULL: none */
};

/**
 * Run one method.
 * @param memory  holds the answer; charged to the budget of queries.
 * @param ret     valid until arena_deinit(memory); untouched on failure.
 * @return ST_USAGE: an invalid request, explained by the message; ST_UNSUPPORTED; ST_TOO_BIG; the status of the meter
 *         when it ended the query.
 */
enum status querier_run(struct profile_store *store, const struct querier_input *in, struct arena *memory,
                        const ProtobufCMessage **ret, struct error *err) MUST_CHECK;

/** The value of a point of a series as an integer: those out of range are the nearest one, NaN is 0. */
int64_t querier_round_point(double value);

#endif
