/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_MEMORY_BUDGET_H
#define CAIRN_COMMON_MEMORY_BUDGET_H

/**
 * @file
 * The memory budget of a process: every allocation whose size an outsider
 * chooses is reserved here before it is made.
 *
 * Each use has a floor, which no other use can take, and a ceiling. A
 * reservation is granted while
 *
 *     used(u) + n <= ceiling(u)   and   sum over all uses of max(used, floor) <= limit
 *
 * so a flush and honest ingest progress while queries and uploads fill the
 * rest, and the newest work is what is refused. A reservation only counts bytes
 * and allocates nothing; its owner releases it after freeing the memory. Without a limit (other programs than `cairn
 * serve`) everything is granted and only counted.
 *
 * Workers have memory beside it, together at most as much as the limit
 * (sandbox/worker_budget.h).
 *
 * Threads: any; one reservation belongs to one thread at a time.
 */
#include <stdbool.h>
#include <stddef.h>

#include "common/cleanup.h"
#include "common/error.h"

enum memory_use {
        MEMORY_BASE,        /* code, stacks and tables of fixed size */
        MEMORY_CONNECTIONS, /* of the HTTP server: buffers of each */
        MEMORY_INGEST,      /* bodies and decoded profiles of requests that are not acknowledged yet */
        MEMORY_QUEUE,       /* acknowledged batches that are not in a part yet */
        MEMORY_FLUSH,       /* distinct stacks and locations of a flush, and the parts it writes */
        MEMORY_RESYMBOLIZE, /* of a round of re-symbolization */
        MEMORY_COMPACTION,  /* row groups of the parts that are merged and of the one that is written */
        MEMORY_BODIES,      /* other request bodies and the data parsed from them */
        MEMORY_UPLOADS,     /* decompression contexts and pieces of uploads in progress */
        MEMORY_QUERIES,     /* stacks, locations and trees of running queries */
        MEMORY_SYMBOLIZE,   /* keys and frames of running symbolize requests */
        MEMORY_ANSWERS,     /* answers until they are sent */
        MEMORY_CACHES,      /* kept between requests: names, pages, parts of objects */
        MEMORY_USES,
};

/**
 * What one sender may hold. Past `most` it is refused more, but for the reservation that has as much as all its others
 * together: of several large ones that grow at the same time one gets through.
 */
struct memory_group {
        size_t most;
        size_t held; /* under the lock of the budget */
};

/** Memory that is held for one purpose. Start with { .use = ... }. */
struct memory_reservation {
        enum memory_use use;
        size_t bytes;
        struct memory_group *group; /* set while bytes is 0; outlives the reservation. NULL: none */
};

/** Set the limit, before other threads exist. ST_USAGE below LIMIT_MEMORY_LEAST_BYTES. */
enum status memory_budget_set_limit(size_t limit_bytes, struct error *err) MUST_CHECK;
/**
 * Half of the memory of the machine, or of the limit of the cgroup (v2, v1) if that is less; at least
 * LIMIT_MEMORY_LEAST_BYTES.
 */
size_t memory_budget_default(void);
/** SIZE_MAX without a limit. */
size_t memory_budget_limit(void);
/** The ceiling of a use: the most it may hold while no other use holds anything. SIZE_MAX without a limit. */
size_t memory_use_ceiling(enum memory_use use);
/** Whether a reservation was refused within the last seconds. */
bool memory_budget_refused_recently(void);
/**
 * While a use claims memory, other uses are refused what it could still take up to its ceiling, so that it gets what
 * they release. Floors stay. For work that everything behind it waits for, after a refusal; end the claim when it is
 * done. Claims are counted: the last end counts.
 */
void memory_claim(enum memory_use use);
void memory_end_claim(enum memory_use use);
/** Bytes that a use holds. */
size_t memory_use_held(enum memory_use use);

/**
 * Reserve n more bytes.
 * @return ST_OK; ST_BUSY when the use is at its ceiling, the group at its most or the process at its limit (retry
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
 * The memory of one query. What a thread reserves for MEMORY_QUERIES while it charges an account counts against the
 * account's limit too, with ST_TOO_BIG past it.
 */
struct memory_account {
        size_t limit;
        size_t held;  /* under the lock of the budget */
        size_t most;  /* that was held at one time */
        bool refused; /* a reservation passed the limit */
};

/** Charge an account from now on; NULL: none. Any number of threads may charge one. */
void memory_set_account(struct memory_account *a);
struct memory_account *memory_get_account(void);

/**
 * Limits of queries, before other threads exist and after memory_budget_set_limit(): what one may hold, and all
 * together, in place of the ceiling of MEMORY_QUERIES. 0: the default of each, half of all for one.
 * @return ST_USAGE when a limit is under 1 MiB or over the one around it.
 */
enum status memory_set_query_limits(size_t one_bytes, size_t all_bytes, struct error *err) MUST_CHECK;

/** What one query may hold; SIZE_MAX without a limit. */
size_t memory_get_query_limit(void);

#endif
