/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_QUERIER_QUERIER_H
#define CAIRN_QUERY_QUERIER_QUERIER_H

/**
 * @file
 * The methods of querier.v1.QuerierService and of parca.query.v1alpha1.QueryService: a message in, a message out
 * (profile-formats/proto/querier.proto, parca_query.proto). docs/formats/querier.md, docs/formats/parca.md.
 *
 * Threads: any number of calls at once on one store.
 */
#include "common/arena.h"
#include "common/error.h"
#include "common/work_meter.h"
#include "profile-formats/proto_message.h"
#include "profile-store/store.h"

struct querier_method;
struct query_report;

/** NULL when there is none with this name. */
const struct querier_method *querier_find_method(const char *name);
/** The same of Parca's service. */
const struct querier_method *querier_find_parca_method(const char *name);
/** Descriptor of the request message. */
const ProtobufCMessageDescriptor *querier_get_request_type(const struct querier_method *m);

/** What a call reads; all borrowed. */
struct querier_input {
        const struct querier_method *method;
        const void *request; /* the generated struct of its request */
        int64_t now_unix_ns;
        struct work_meter *meter;    /* counts all work, and may end it */
        struct query_report *report; /* query/query.h; filled. NULL: none */
};

/**
 * Run one method.
 * @param memory  holds the answer; of the budget of queries.
 * @param ret     valid until arena_deinit(memory); untouched on failure.
 * @return ST_USAGE: the request is wrong, the text says how; ST_UNSUPPORTED; ST_TOO_BIG; the status of the meter when
 *         it ended the query.
 */
enum status querier_run(struct profile_store *store, const struct querier_input *in, struct arena *memory,
                        const ProtobufCMessage **ret, struct error *err) MUST_CHECK;

#endif
