/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_QUERY_H
#define CAIRN_QUERY_QUERY_H

/**
 * @file
 * Queries of a profile store.
 *
 * The HTTP routes GET /api/v1/query/OPERATION and the command line both use this
 * interface. Parameters and results: docs/formats/query-api.md.
 *
 * Threads: any number of calls at once on one store.
 */
#include "common/arena.h"
#include "common/buf.h"
#include "common/error.h"
#include "common/work_meter.h"
#include "disassembler/disassembly.h"
#include "profile-store/scan.h"

/** The value of a parameter, or NULL; borrowed until query_run() returns. */
typedef const char *query_param(void *context, const char *name);

/** Where the texts of source files come from. */
struct query_sources {
        /**
         * Append a file that debuginfo of the object names.
         * @param may_fetch  whether upstreams may be asked, which takes time.
         * @return ST_NOT_FOUND, ST_BUSY when upstreams did not answer, with the reason for people; ST_TOO_BIG past the
         *         max of ret.
         */
        enum status (*read)(void *context, const struct build_id *id, const char *path, bool may_fetch, struct buf *ret,
                            struct error *err);
        void *context;
};

/** Code of an object that a query asks for. */
struct query_code_request {
        const struct build_id *id;
        const uint64_t *addresses; /* the functions around them, those that cost most first; */
        size_t address_count;      /* 0: the range */
        uint64_t start, end;       /* half-open */
        bool is_att;               /* syntax of AT&T, else Intel's; x86 only */
};

/** What the index has for one address: the innermost function, which may be inlined there. "" and 0: unknown. */
struct code_place {
        const char *function, *file;
        const char *outer; /* the function that is not inlined */
        uint32_t line;
};

/** Where code comes from. */
struct query_code {
        /**
         * Disassemble.
         * @return ST_NOT_FOUND when the executable is missing, with the reason for people; else as disassemble_file().
         */
        enum status (*disassemble)(void *context, const struct query_code_request *request, struct disassembly *ret,
                                   struct error *err);
        /** Look up addresses of an object. @param texts  what the places point to is there. */
        enum status (*look_up)(void *context, const struct build_id *id, const uint64_t *addresses, size_t count,
                               struct arena *texts, struct code_place *ret, struct error *err);
        void *context;
};

/** What a query was asked and took, for the log; also of one that failed. */
struct query_report {
        char selector[256]; /* cut; of the last one that was parsed */
        int64_t from_unix_ns, to_unix_ns;
        size_t memory_bytes; /* that it held at most */
};

/** What a query reads beside the store; all borrowed. */
struct query_input {
        query_param *param;
        void *param_context;
        int64_t now_unix_ns; /* the value of "now" in times */
        /* Counts all work, and may end it; NULL: the budgets of work_meter_init() alone. */
        struct work_meter *meter;
        const struct query_sources *sources; /* NULL: none */
        const struct query_code *code;       /* NULL: none */
        struct query_report *report;         /* filled; NULL: none */
};

struct query_answer {
        const char *content_type; /* a constant */
        /* What the answer leaves out, in one printable line without its end; "" for nothing. */
        char note[600];
};

/**
 * Run one query.
 * @param operation  "top", "flame", "folded", "firefox", "pprof", "autofdo", "diff", "series", "spans", "sandwich",
 * "lines", "disassembly", "labels", "values", "types", "missing", "uploads".
 * @param ret  the answer is appended; its max bounds it.
 * @return ST_NOT_FOUND: unknown operation; ST_USAGE: a parameter is wrong, the text names it; ST_TOO_BIG; the status
 *         of the meter when it ended the query.
 */
enum status query_run(struct profile_store *store, const char *operation, const struct query_input *in, struct buf *ret,
                      struct query_answer *answer, struct error *err) MUST_CHECK;

/** The same for an existing scan, for example of profiles outside of a store. */
enum status query_run_scan(struct store_scan *scan, const char *operation, const struct query_input *in,
                           struct buf *ret, struct query_answer *answer, struct error *err) MUST_CHECK;

/** Profiles outside of a store, and what is asked about them. */
struct profile_query {
        const struct profile *const *profiles;
        size_t count;
        const char *operation;
        const struct query_input *input; /* now_unix_ns is not used: now is the end of the profiles */
};

/** As query_run() for profiles outside of a store; without from and to, from their first sample to their last. */
enum status query_run_profiles(const struct profile_query *query, struct buf *ret, struct query_answer *answer,
                               struct error *err) MUST_CHECK;

#endif
