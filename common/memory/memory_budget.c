/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_reserve() tests three limits and counts in all of them or in none: that of the query (struct memory_account,
 * of the thread), that of the sender (struct memory_group), and the budget itself, which is fits_budget(): the ceiling
 * of the use, the limit of the process, and the memory that other uses claim. Which of them refused determines the
 * error.
 *
 * State: `held` per use, and `committed`, the sum of the larger of held and floor of each use. set_held() changes both
 * together. Below its floor a use takes memory that is committed already, so the budget cannot refuse it.
 *
 * Lock: `lock` protects this state and the counters of accounts and groups; nothing is allocated or called back under
 * it. The bytes of a reservation belong to its owner and need no lock. Limits are set before other threads exist.
 *
 * Order: shares and metrics, limits, tests and claims, reservation, limits of queries, shrinking, the default limit
 * from the machine's memory and its cgroups.
 */
#include "common/memory/memory_budget.h"

#include <assert.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/limits.h"
#include "common/metrics.h"

#define BASE_BYTES MiB(64)
#define SHORT_NS INT64_C(3000000000)

/*
 * Percent of the limit minus BASE_BYTES. The floors add up to 65; the other 35 are allocated first come, first served.
 */
static const struct {
        const char *name;
        unsigned floor, ceiling;
} shares[MEMORY_USES] = {
        [MEMORY_BASE] = { "base", 0, 0 },
        [MEMORY_CONNECTIONS] = { "connections", 5, 10 },
        [MEMORY_INGEST] = { "ingest", 10, 40 },
        [MEMORY_QUEUE] = { "queue", 10, 25 },
        [MEMORY_FLUSH] = { "flush", 15, 50 },
        [MEMORY_RESYMBOLIZE] = { "resymbolize", 5, 30 },
        [MEMORY_BODIES] = { "bodies", 0, 20 },
        [MEMORY_UPLOADS] = { "uploads", 0, 20 },
        [MEMORY_QUERIES] = { "queries", 5, 40 },
        [MEMORY_SYMBOLIZE] = { "symbolize", 0, 25 },
        [MEMORY_ANSWERS] = { "answers", 0, 25 },
        [MEMORY_CACHES] = { "caches", 10, 10 },
        [MEMORY_COMPACTION] = { "compaction", 5, 20 },
};

#define HELD(label) METRIC_GAUGE("cairn_memory_bytes", "Memory held, by use.", "use=\"" label "\"")
#define REFUSED(label)                                                                                                 \
        METRIC_COUNTER("cairn_memory_refused_total", "Refused memory reservations, by use.", "use=\"" label "\"")

static struct metric held_metrics[MEMORY_USES] = {
        HELD("base"),        HELD("connections"), HELD("ingest"), HELD("queue"),   HELD("flush"),
        HELD("resymbolize"), HELD("compaction"),  HELD("bodies"), HELD("uploads"), HELD("queries"),
        HELD("symbolize"),   HELD("answers"),     HELD("caches"),
};
static struct metric refused_metrics[MEMORY_USES] = {
        REFUSED("base"),        REFUSED("connections"), REFUSED("ingest"), REFUSED("queue"),   REFUSED("flush"),
        REFUSED("resymbolize"), REFUSED("compaction"),  REFUSED("bodies"), REFUSED("uploads"), REFUSED("queries"),
        REFUSED("symbolize"),   REFUSED("answers"),     REFUSED("caches"),
};
static struct metric limit_metric = METRIC_GAUGE("cairn_memory_limit_bytes", "The limit of --memory.", "");

/* committed is the sum over all uses of max(held, floor); it never exceeds limit. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t limit = SIZE_MAX, committed;
static size_t held[MEMORY_USES], floors[MEMORY_USES];
static unsigned claims[MEMORY_USES];

static size_t one_query, all_queries; /* limits; 0: default */
static _Thread_local struct memory_account *account;

static _Atomic int64_t refused_ns = -SHORT_NS; /* time of the last refused reservation */

static size_t max_size(size_t a, size_t b)
{
        return a > b ? a : b;
}

static size_t percent_of_limit(unsigned percent)
{
        return (limit - BASE_BYTES) / 100 * percent;
}

enum status memory_budget_set_limit(size_t limit_bytes, struct error *err)
{
        if (limit_bytes < LIMIT_MEMORY_LEAST_BYTES)
                return error_set(err, ST_USAGE, "a memory limit of %zu bytes is too low: at least %zu MiB are needed",
                                 limit_bytes, LIMIT_MEMORY_LEAST_BYTES >> 20);
        pthread_mutex_lock(&lock);
        limit = limit_bytes;
        held[MEMORY_BASE] = BASE_BYTES;
        committed = 0;
        for (unsigned u = 0; u < MEMORY_USES; u++) {
                floors[u] = percent_of_limit(shares[u].floor);
                committed += max_size(held[u], floors[u]);
        }
        assert(committed <= limit);
        pthread_mutex_unlock(&lock);
        for (unsigned u = 0; u < MEMORY_USES; u++) {
                metric_set(&held_metrics[u], (int64_t)held[u]);
                metric_register(&refused_metrics[u]);
        }
        metric_set(&limit_metric, (int64_t)limit_bytes);
        return ST_OK;
}

size_t memory_budget_limit(void)
{
        return limit;
}

size_t memory_use_ceiling(enum memory_use use)
{
        if (use == MEMORY_QUERIES && all_queries)
                return all_queries;
        return limit == SIZE_MAX ? SIZE_MAX : percent_of_limit(shares[use].ceiling);
}

bool memory_budget_refused_recently(void)
{
        return monotonic_ns() - atomic_load(&refused_ns) < SHORT_NS;
}

size_t memory_use_held(enum memory_use use)
{
        size_t n;

        pthread_mutex_lock(&lock);
        n = held[use];
        pthread_mutex_unlock(&lock);
        return n;
}

/* Bytes claimed but not held by other uses. Caller holds the lock. */
static size_t sum_claimed_bytes(enum memory_use use)
{
        size_t sum = 0;

        for (unsigned u = 0; u < MEMORY_USES; u++) {
                size_t has = max_size(held[u], floors[u]);

                if (claims[u] && u != use && has < memory_use_ceiling(u))
                        sum += memory_use_ceiling(u) - has;
        }
        return sum;
}

/* Caller holds the lock. */
static bool fits_budget(enum memory_use use, size_t n)
{
        size_t now = held[use], more;

        if (limit == SIZE_MAX)
                return n <= SIZE_MAX / 2 - now;
        if (n > memory_use_ceiling(use) || now > memory_use_ceiling(use) - n)
                return false;
        more = max_size(now + n, floors[use]) - max_size(now, floors[use]);
        return more == 0 || (more <= limit - committed && sum_claimed_bytes(use) <= limit - committed - more);
}

void memory_claim(enum memory_use use)
{
        pthread_mutex_lock(&lock);
        claims[use]++;
        pthread_mutex_unlock(&lock);
}

void memory_end_claim(enum memory_use use)
{
        pthread_mutex_lock(&lock);
        assert(claims[use] > 0);
        claims[use]--;
        pthread_mutex_unlock(&lock);
}

/* Caller holds the lock. */
static void set_held(enum memory_use use, size_t n)
{
        committed -= max_size(held[use], floors[use]);
        held[use] = n;
        committed += max_size(n, floors[use]);
}

/* Caller holds the lock. */
static bool fits_account(enum memory_use use, size_t n)
{
        bool fits = !account || use != MEMORY_QUERIES || n <= account->limit - account->held;

        if (!fits)
                account->refused = true;
        return fits;
}

/* Caller holds the lock. */
static bool fits_group(const struct memory_reservation *r, size_t n)
{
        const struct memory_group *g = r->group;

        return !g || (g->held <= g->most && n <= g->most - g->held) || r->bytes >= g->held - r->bytes;
}

enum status memory_reserve(struct memory_reservation *r, size_t n, struct error *err)
{
        size_t ceiling = memory_use_ceiling(r->use);
        bool fits, fits_query, fits_sender;

        pthread_mutex_lock(&lock);
        fits_query = fits_account(r->use, n);
        fits_sender = fits_group(r, n);
        fits = fits_query && fits_sender && fits_budget(r->use, n);
        if (fits)
                set_held(r->use, held[r->use] + n);
        if (fits && r->group)
                r->group->held += n;
        if (fits && account && r->use == MEMORY_QUERIES) {
                account->held += n;
                account->most = max_size(account->most, account->held);
        }
        pthread_mutex_unlock(&lock);
        if (fits) {
                r->bytes += n;
                metric_add(&held_metrics[r->use], (int64_t)n);
                return ST_OK;
        }
        metric_add(&refused_metrics[r->use], 1);
        if (!fits_query)
                return error_set(err, ST_TOO_BIG, "a query may hold %zu MiB of memory", account->limit >> 20);
        if (!fits_sender)
                return error_set(err, ST_BUSY, "one sender may hold %zu MiB of memory for '%s'; retry later",
                                 r->group->most >> 20, shares[r->use].name);
        atomic_store(&refused_ns, monotonic_ns());
        if (n > ceiling || r->bytes > ceiling - n)
                return error_set(err, ST_TOO_BIG,
                                 "more memory is needed than the %zu bytes that '%s' may use; ask for less, or "
                                 "raise --memory",
                                 ceiling, shares[r->use].name);
        return error_set(err, ST_BUSY, "the memory for '%s' is in use (--memory %zu MiB); retry later",
                         shares[r->use].name, limit >> 20);
}

/* ---- queries ---- */

void memory_set_account(struct memory_account *a)
{
        account = a;
}

struct memory_account *memory_get_account(void)
{
        return account;
}

enum status memory_set_query_limits(size_t one_bytes, size_t all_bytes, struct error *err)
{
        if ((one_bytes && one_bytes < MiB(1)) || (all_bytes && all_bytes < MiB(1)))
                return error_set(err, ST_USAGE, "--query-memory is at least 1M");
        if (all_bytes > limit)
                return error_set(err, ST_USAGE, "--query-memory for all queries is more than --memory, %zu MiB",
                                 limit >> 20);
        all_queries = all_bytes;
        one_query = one_bytes;
        if (one_bytes <= memory_use_ceiling(MEMORY_QUERIES))
                return ST_OK;
        one_query = all_queries = 0;
        return error_set(err, ST_USAGE, "--query-memory for one query is more than for all, %zu MiB",
                         (all_bytes ? all_bytes : memory_use_ceiling(MEMORY_QUERIES)) >> 20);
}

size_t memory_get_query_limit(void)
{
        size_t all = memory_use_ceiling(MEMORY_QUERIES);

        return one_query ? one_query : all == SIZE_MAX ? SIZE_MAX : all / 2;
}

void memory_shrink(struct memory_reservation *r, size_t n)
{
        size_t less;

        if (n >= r->bytes)
                return;
        less = r->bytes - n;
        pthread_mutex_lock(&lock);
        assert(held[r->use] >= less);
        set_held(r->use, held[r->use] - less);
        if (r->group) {
                assert(r->group->held >= less);
                r->group->held -= less;
        }
        if (account && r->use == MEMORY_QUERIES)
                account->held -= less < account->held ? less : account->held;
        pthread_mutex_unlock(&lock);
        r->bytes = n;
        metric_add(&held_metrics[r->use], -(int64_t)less);
}

enum status memory_resize(struct memory_reservation *r, size_t n, struct error *err)
{
        if (n > r->bytes)
                return memory_reserve(r, n - r->bytes, err);
        memory_shrink(r, n);
        return ST_OK;
}

void memory_release(struct memory_reservation *r)
{
        memory_shrink(r, 0);
}

/* ---- the default ---- */

static void lower_to_file(const char *path, size_t *bytes)
{
        FILE *f = fopen(path, "re");
        unsigned long long n;

        if (!f)
                return;
        if (fscanf(f, "%llu", &n) == 1 && n < *bytes) /* fails for "max" */
                *bytes = (size_t)n;
        fclose(f);
}

/*
 * The limits of all parent cgroups apply. In a container the path may name directories of the host that are not
 * visible.
 */
static void lower_to_cgroup(const char *root, const char *name, char *path, size_t *bytes)
{
        char text[PATH_MAX + 80], *slash;

        do {
                snprintf(text, sizeof text, "%s%s/%s", root, path, name);
                lower_to_file(text, bytes);
                slash = strrchr(path, '/');
                if (slash)
                        *slash = 0;
        } while (slash);
}

/* Source: cgroups(7), /proc/self/cgroup: "0::PATH" for version 2, "N:memory:PATH" for version 1. */
static void lower_to_cgroups(size_t *bytes)
{
        FILE *f = fopen("/proc/self/cgroup", "re");
        char line[PATH_MAX];

        if (!f)
                return;
        while (fgets(line, sizeof line, f)) {
                char *path = strchr(line, '/'), *controllers = strchr(line, ':');

                line[strcspn(line, "\n")] = 0;
                if (!path || !controllers)
                        continue;
                if (strncmp(line, "0::", 3) == 0)
                        lower_to_cgroup("/sys/fs/cgroup", "memory.max", path, bytes);
                else if (strncmp(controllers, ":memory:", 8) == 0)
                        lower_to_cgroup("/sys/fs/cgroup/memory", "memory.limit_in_bytes", path, bytes);
        }
        fclose(f);
}

size_t memory_budget_default(void)
{
        long pages = sysconf(_SC_PHYS_PAGES), page_size = sysconf(_SC_PAGESIZE);
        size_t bytes = pages > 0 && page_size > 0 ? (size_t)pages * (size_t)page_size : GiB(2);

        lower_to_cgroups(&bytes);
        return max_size(bytes / 2, LIMIT_MEMORY_LEAST_BYTES);
}
