/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_MEMORY_MEMORY_BUDGET_H
#define CAIRN_COMMON_MEMORY_MEMORY_BUDGET_H

/**
 * @file
 * Memory budget of the process: every allocation whose size an outsider controls is reserved here first.
 *
 * Each use has a floor, which other uses cannot take, and a ceiling. A reservation is granted while
 *
 *     used(u) + n <= ceiling(u)   and   sum over all uses of max(used, floor) <= limit
 *
 * so flush and ingest make progress while queries and uploads fill the rest, and the newest work is refused. A
 * reservation only counts bytes and allocates nothing; its owner releases it after freeing the memory. Without a limit
 * (programs other than `cairn serve`) all reservations are granted and only counted.
 *
 * Worker processes are not part of the budget; together they use at most the limit again (sandbox/worker_budget.h).
 *
 * Threads: any; one reservation belongs to one thread at a time.
 */
#include <stdbool.h>
#include <stddef.h>

#include "common/cleanup.h"
#include "common/error.h"

enum memory_use {
        MEMORY_BASE,        /* code, stacks and tables of fixed size */
        MEMORY_CONNECTIONS, /* buffers of the HTTP server's connections */
        MEMORY_INGEST,      /* bodies and decoded profiles of requests that are not acknowledged yet */
        MEMORY_QUEUE,       /* acknowledged batches not yet in a part */
        MEMORY_FLUSH,       /* distinct stacks and locations of a flush, and the parts it writes */
        MEMORY_RESYMBOLIZE, /* a round of re-symbolization */
        MEMORY_COMPACTION,  /* row groups of the merged parts and of the new part */
        MEMORY_BODIES,      /* other request bodies and the data parsed from them */
        MEMORY_UPLOADS,     /* decompression contexts and buffers of uploads in progress */
        MEMORY_QUERIES,     /* stacks, locations and trees of running queries */
        MEMORY_SYMBOLIZE,   /* keys and frames of running symbolize requests */
        MEMORY_ANSWERS,     /* responses until they are sent */
        MEMORY_CACHES,      /* data kept between requests: names, pages, parts of objects */
        MEMORY_USES,
};

/**
 * Memory limit of one sender. Beyond `most`, reservations are refused, except that a reservation as large as all others
 * of the group together may grow: of several large concurrent ones, one completes.
 */
struct memory_group {
        size_t most;
        size_t held; /* protected by the budget's lock */
};

/** Memory reserved for one purpose. Initialize with { .use = ... }. */
struct memory_reservation {
        enum memory_use use;
        size_t bytes;
        struct memory_group *group; /* set it while bytes is 0; must outlive the reservation. NULL: none */
};

/** Set the limit; call it before other threads exist. ST_USAGE below LIMIT_MEMORY_LEAST_BYTES. */
enum status memory_budget_set_limit(size_t limit_bytes, struct error *err) MUST_CHECK;
/** Half of the machine's memory, or of the cgroup limit (v2, v1) if that is less; at least LIMIT_MEMORY_LEAST_BYTES. */
size_t memory_budget_default(void);
/** SIZE_MAX without a limit. */
size_t memory_budget_limit(void);
/** The ceiling of a use: the most it may hold while no other use holds anything. SIZE_MAX without a limit. */
size_t memory_use_ceiling(enum memory_use use);
/** Whether a reservation was refused within the last seconds. */
bool memory_budget_refused_recently(void);
/**
 * While a use claims memory, other uses are refused the memory up to its ceiling, so that released memory becomes
 * available to it. Floors remain. For work on the critical path that was refused memory; end the claim when it is done.
 * Claims nest.
 */
void memory_claim(enum memory_use use);
void memory_end_claim(enum memory_use use);
/** Bytes held by a use. */
size_t memory_use_held(enum memory_use use);

/**
 * Reserve n more bytes.
 * @return ST_OK; ST_BUSY when the use is at its ceiling, the group at its limit, or the process at its limit (retry
 * later); ST_TOO_BIG when this reservation alone exceeds the ceiling (do not retry). Unchanged on failure.
 */
enum status memory_reserve(struct memory_reservation *r, size_t n, struct error *err) MUST_CHECK;
/** Resize the reservation to n bytes; shrinking never fails. */
enum status memory_resize(struct memory_reservation *r, size_t n, struct error *err) MUST_CHECK;
/** Shrink the reservation to n bytes; no effect when it holds less. */
void memory_shrink(struct memory_reservation *r, size_t n);
/** Release the whole reservation. */
void memory_release(struct memory_reservation *r);
#define _cleanup_memory_ _cleanup_(memory_release)

/* ---- queries ---- */

/**
 * The memory of one query. Reservations of a thread for MEMORY_QUERIES while it charges an account also count against
 * the account's limit; beyond it: ST_TOO_BIG. Its threads count here, too, what they ask an object store for.
 */
struct memory_account {
        size_t limit;
        size_t held;  /* protected by the budget's lock */
        size_t most;  /* high-water mark of held */
        bool refused; /* a reservation exceeded the limit */
        _Atomic uint64_t store_requests, store_bytes;
};

/** Set the account that this thread charges; NULL: none. Several threads may charge one account. */
void memory_set_account(struct memory_account *a);
struct memory_account *memory_get_account(void);

/**
 * Set the memory limits of one query and of all queries together (replaces the ceiling of MEMORY_QUERIES). Call it
 * after memory_budget_set_limit() and before other threads exist. 0: default; for one query half of that for all.
 * @return ST_USAGE if a limit is below 1 MiB or exceeds the enclosing limit.
 */
enum status memory_set_query_limits(size_t one_bytes, size_t all_bytes, struct error *err) MUST_CHECK;

/** Memory limit of one query; SIZE_MAX without a limit. */
size_t memory_get_query_limit(void);

#endif
