/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_QUERY_H
#define CAIRN_QUERY_QUERY_H

/**
 * @file
 * Queries of a profile store.
 *
 * Interface of the HTTP routes GET /api/v1/query/OPERATION and of the command line.
 * Parameters and results: docs/formats/query-api.md.
 *
 * Threads: any number of concurrent calls on one store.
 */
#include "common/memory/arena.h"
#include "common/memory/buf.h"
#include "common/error.h"
#include "common/threads/work_meter.h"
#include "disassembler/disassembly.h"
#include "profile-store/scan.h"

/** Get the value of a parameter, or NULL; borrowed until query_run() returns. */
typedef const char *query_param(void *context, const char *name);

/** Provider of source files. */
struct query_sources {
        /**
         * Append a file that is named by the object's debuginfo.
         * @param may_fetch  whether upstreams may be queried, which takes time.
         * @return ST_NOT_FOUND, ST_BUSY when upstreams did not answer, with a human-readable reason; ST_TOO_BIG past
         *         the max of ret.
         */
        enum status (*read)(void *context, const struct build_id *id, const char *path, bool may_fetch, struct buf *ret,
                            struct error *err);
        void *context;
};

/** Code of an object to disassemble. */
struct query_code_request {
        const struct build_id *id;
        const uint64_t *addresses; /* the functions that contain them are disassembled, by falling cost */
        size_t address_count;      /* 0: [start, end) is disassembled instead */
        uint64_t start, end;
        bool is_att; /* AT&T syntax, else Intel; x86 only */
};

/** Symbols of one address: the innermost function, which may be inlined there. "" and 0: unknown. */
struct code_place {
        const char *function, *file;
        const char *outer; /* the enclosing function that is not inlined */
        uint32_t line;
};

/** Provider of disassembled code. */
struct query_code {
        /**
         * @return ST_NOT_FOUND when the executable is missing, with a human-readable reason; else as
         * disassemble_file().
         */
        enum status (*disassemble)(void *context, const struct query_code_request *request, struct disassembly *ret,
                                   struct error *err);
        /** Look up addresses of an object. @param texts  holds the texts of the places. */
        enum status (*look_up)(void *context, const struct build_id *id, const uint64_t *addresses, size_t count,
                               struct arena *texts, struct code_place *ret, struct error *err);
        /** Addresses in the objects of locations whose own are offsets in the file, or relative to the kernel's start;
         * UINT64_MAX: none. */
        enum status (*find_addresses)(void *context, const struct scan_location *const *locations, size_t count,
                                      uint64_t *ret, struct error *err);
        void *context;
};

/** What a query has used; of several for one answer, all together. */
struct query_cost {
        uint64_t rows, bytes;                 /* selected rows of samples, and stored bytes of their columns */
        uint64_t memory_bytes;                /* peak */
        uint64_t store_requests, store_bytes; /* of an object store, for what was not in the cache */
};

/** Selection and cost of a query, for the log; also set when it fails. */
struct query_report {
        char selector[256]; /* truncated; the last one that was parsed */
        int64_t from_unix_ns, to_unix_ns;
        struct query_cost cost;
        char note[600]; /* as in struct query_answer */
};

/** Input of a query beside the store; all borrowed. */
struct query_input {
        query_param *param;
        void *param_context;
        int64_t now_unix_ns; /* the value of "now" in times */
        /* Charged for all work, and may end the query; NULL: only the budgets of work_meter_init() apply. */
        struct work_meter *meter;
        const struct query_sources *sources; /* NULL: none */
        const struct query_code *code;       /* NULL: none */
        struct query_report *report;         /* set by the query; NULL: none */
};

struct query_answer {
        const char *content_type; /* a constant */
        /* Omissions of the answer, one printable line without line end; "" none. */
        char note[600];
};

/**
 * Run one query.
 * @param operation  a name of query_operations.h.
 * @param ret  the answer is appended; bounded by its max.
 * @return ST_NOT_FOUND: unknown operation; ST_USAGE: an invalid parameter, named by the message; ST_TOO_BIG; the
 *         status of the meter when it ended the query.
 */
enum status query_run(struct profile_store *store, const char *operation, const struct query_input *in, struct buf *ret,
                      struct query_answer *answer, struct error *err) MUST_CHECK;

/** query_run() on an existing scan, for example of profiles outside of a store. */
enum status query_run_scan(struct store_scan *scan, const char *operation, const struct query_input *in,
                           struct buf *ret, struct query_answer *answer, struct error *err) MUST_CHECK;

/** A query of profiles outside of a store. */
struct profile_query {
        const struct profile *const *profiles;
        size_t count;
        const char *operation;
        const struct query_input *input; /* now_unix_ns is ignored: now is the end of the profiles */
};

/** query_run() on profiles outside of a store; from and to default to their first and last sample. */
enum status query_run_profiles(const struct profile_query *query, struct buf *ret, struct query_answer *answer,
                               struct error *err) MUST_CHECK;

#endif
