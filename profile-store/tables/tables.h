/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_TABLES_TABLES_H
#define CAIRN_PROFILE_STORE_TABLES_TABLES_H

/**
 * @file
 * The tables: snapshots and commits.
 *
 * struct tables is a snapshot: immutable, reference-counted, consistent across the logs of the tables.
 *
 * Order of reading. Rows refer to rows of other tables, whose commits are ordered:
 *  - a flush commits locations, then stacks, then the samples that refer to them;
 *  - stacks and locations are removed only after all samples that refer to them (core/table_removal.h);
 *  - function_history is derived from samples and locations that were committed before.
 * A snapshot has all that its rows refer to if samples, stacks and locations were each asked for their next commit, and
 * had none, after the last commit that the snapshot has of any table was read: then it has whatever was committed
 * before that one. Reading samples last would not do, since a flush may commit a stack and its sample between the two
 * answers, nor would reading them first, since retention may remove a sample and its stack.
 *
 * All logs are asked for their next commit at the same time (delta_tables_read_next()). When none has one, the snapshot
 * before is still the current one: a single round trip. Otherwise those that have one, and samples, stacks and
 * locations, are asked again. `behind` has the tables to be asked, also after a failure.
 *
 * If others commit as often as this process reads, no round finds all logs at their ends. After DELTA_ROUNDS_MAX the
 * logs are therefore read one after the other, each up to some version that it has after the reading began: samples,
 * then stacks, then locations, so that what a sample refers to was committed before its table was read. If a file of
 * stacks or locations was removed meanwhile, samples may lack their removal: all are read again. So a snapshot has at
 * least what was committed before its reading began, and later commits of samples only up to some version.
 *
 * Removed files are kept for a grace period, for readers of older snapshots (profile-store/tables/table_vacuum.h).
 *
 * Threads: a snapshot may be shared; calls that take struct table_logs must be serialized.
 */
#include <stdatomic.h>

#include "common/build_id.h"
#include "profile-store/delta/delta_log.h"
#include "profile-store/tables/part_write.h"
#include "profile-store/tables/table_schema.h"

struct part_locations;

struct table_part {
        atomic_uint references;
        struct storage *storage; /* borrowed */
        char *path;              /* storage_make_name(), for messages; owned */
        const char *key;         /* within path */
        char *name;              /* as in the log: without the table's folder; within path */
        uint64_t bytes, rows;
        int64_t added_s; /* Unix time of the commit that added it */
        bool has_day;
        int64_t day;                 /* of its partition */
        int64_t min_us, max_us;      /* of samples, and the hours of function_history; INT64_MIN and INT64_MAX without
                                        statistics */
        int64_t source_version;      /* of function_history: its rows have all samples up to this version at least */
        _Atomic uint32_t done_rules; /* of samples: rules that select no row (store_limits.h) */
        _Atomic int64_t unresolved;  /* of locations: rows without frames, -1 until counted */
        atomic_bool is_searched;     /* of locations: profile_store_list_unnamed() has read it */
        char *min_build_id;          /* of locations: bounds of the hexadecimal build-ids, "" when no row has one; */
        char *max_build_id;          /* NULL without statistics */
        struct part_locations *_Atomic locations; /* of locations: cached rows (location_cache.h) */
};

/** Whether min_us and max_us are known. */
static inline bool table_part_has_times(const struct table_part *p)
{
        return p->min_us != INT64_MIN;
}

struct tables {
        atomic_uint references;
        int64_t versions[TABLE_COUNT];          /* of the logs */
        struct table_part **parts[TABLE_COUNT]; /* by name */
        size_t part_count[TABLE_COUNT];
        struct label_columns columns;
        uint64_t flushed; /* last position of this node's raw queue that the samples cover */
        int64_t removal;  /* number of the last removal of stacks or locations that began (table_removal.h) */
        int64_t settled[TABLE_COUNT]; /* of stacks and locations: the last removal that ended or was stopped there */
        /* By table: function_history was derived from its commits up to this version; -1: from none. Only samples and
         * locations have one. */
        int64_t covered[TABLE_COUNT];
        bool is_absent;        /* empty, because they could not be read yet (core/table_absence.h) */
        uint64_t replacements; /* reader only: how many tables were replaced by other copies since the opening */
};

#define NODE_ID_SIZE 17 /* 16 hexadecimal digits */

struct table_logs {
        struct storage *storage;        /* of DIR/tables; borrowed */
        char node[NODE_ID_SIZE];        /* whose raw queue `flushed` is about; "": the tables have one writer */
        int64_t grace_ms;               /* removed files are kept this long */
        int64_t opened_ms;              /* when the logs were opened, by the clock of the storage */
        bool read_only;                 /* another process may replace the tables, as when a backup is restored */
        bool was_replaced[TABLE_COUNT]; /* since the last loaded snapshot */
        uint64_t replacements;          /* until that one */
        unsigned behind;                /* tables to be read before the next snapshot, as bits */
        struct delta_table *logs[TABLE_COUNT];
        struct {
                int64_t latest_ms;      /* Unix time of the latest removal seen that was in the future */
                int64_t noticed_ns;     /* monotonic time when it was first seen */
        } future_removals[TABLE_COUNT]; /* table_vacuum.h */
};

/**
 * Open the logs; unless read_only, missing tables are created. A missing one is ST_NOT_FOUND, except function_history,
 * which stores of earlier releases lack: its log is NULL until tables_load() finds it.
 * @param storage  borrowed until table_logs_close() and the last table_unref().
 * @param node  "", or the identity of the node whose queue is flushed to these tables (node_identity.h).
 */
enum status table_logs_open(struct storage *storage, const char *node, bool read_only, int64_t grace_ms,
                            struct table_logs *ret, struct error *err) MUST_CHECK;

/** Commit the grace period as retention properties of the tables whose properties differ. */
enum status table_logs_set_retention(struct table_logs *l, struct error *err) MUST_CHECK;
void table_logs_close(struct table_logs *l);

/**
 * Load the current state of the tables.
 * @param refresh  look for commits of other writers first; those that must be in the snapshot are always looked for.
 * @param before   an older snapshot or NULL: its parts are shared, except for tables that were replaced.
 */
enum status tables_load(struct table_logs *l, bool refresh, struct tables *before, struct tables **ret,
                        struct error *err) MUST_CHECK;
struct tables *tables_create_empty(void); /* NULL without memory */
struct tables *tables_ref(struct tables *t);
void tables_unref(struct tables *t); /* NULL is allowed */

#define PART_PREFIX "part-" /* of the names of files that flushes add */

/* A file that a commit adds. */
struct table_add {
        char *name; /* owned, and written.stats too */
        bool has_day;
        int64_t day;
        struct part_written written;
};
void table_add_deinit(struct table_add *a);

/* That function_history was derived from the commits of a table up to this version. */
struct table_coverage {
        enum table table;
        uint64_t version;
};

/* One atomic change of one table. */
struct table_change {
        enum table table;
        const struct table_add *adds;
        size_t add_count;
        struct table_part *const *removes;
        size_t remove_count;
        bool rearranges;                     /* adds hold exactly the rows of removes: compaction */
        uint64_t flushed;                    /* samples: the new tables.flushed; 0 keeps it */
        const struct table_coverage *covers; /* function_history: the new tables.covered; NULL keeps it */
        const char *build_ids;               /* locations: see TABLE_BUILD_IDS; NULL: no frames change */
        const struct label_columns *columns; /* samples: the new tables.columns; NULL keeps them */
        const char *mark;                    /* NULL, or an application id whose version becomes mark_version */
        int64_t mark_version;                /* not together with flushed */
        const struct tables *base;           /* NULL, or the snapshot that must still be the newest one of the table */
        const struct hash128 *batch_ids;     /* samples: of the batches that are added, for other nodes */
        size_t batch_id_count;
        const struct delta_actions *const *included; /* samples: commits of other nodes (core/commit_group.h) */
        size_t included_count;
};
/**
 * Commit a change. One without a base that only adds files goes after the commits of other writers.
 * @return ST_BUSY when another writer took the version of another change, or kept committing: reconcile,
 *         check that the removed files are still live, retry at most COMMIT_ATTEMPTS times; else as delta_commit().
 */
enum status tables_commit(struct table_logs *l, const struct table_change *change, struct error *err) MUST_CHECK;
#define COMMIT_ATTEMPTS 5

/** Append the text of the commit that tables_commit() would make, for another node that includes it. */
enum status tables_write_commit(struct table_logs *l, const struct table_change *change, struct buf *ret,
                                struct error *err) MUST_CHECK;

/** The application id of the positions of a node's queue in the log of samples. */
#define QUEUE_APP_ID "cairn-raw-queue"
/** Up to which position of its queue another node's batches are in the samples that were read last. */
uint64_t tables_get_flushed(struct table_logs *l, const char *node);

#define REMOVAL_APP_ID                                                                                                 \
        "cairn-removal" /* of tables.removal in the log of samples, and of tables.settled in the others */

/** Ids of batches that any node committed, as delta_table_take_batch_ids(). */
enum status tables_take_batch_ids(struct table_logs *l, struct hash128 **ret, size_t *count_ret,
                                  struct error *err) MUST_CHECK;
/** As delta_table_return_batch_ids(). */
void tables_return_batch_ids(struct table_logs *l);

/* The parameter of commits to locations that has table_change.build_ids: hexadecimal, separated by commas; "*": all. */
#define TABLE_BUILD_IDS "buildIds"
#define TABLE_BUILD_IDS_ALL "*"

/** The live part of this name in a snapshot, borrowed; NULL without one. */
struct table_part *find_live_part(const struct tables *t, enum table table, const char *name);
/** Whether all parts, which may be of an older snapshot, are live in this one. */
bool are_live_parts(const struct tables *t, enum table table, struct table_part *const *parts, size_t count);

/** The key of a file of a table; owned. */
char *make_table_key(enum table t, const char *name);

/** Whether a part of locations may have rows of an object, by the log's statistics. */
bool table_part_may_have_build_id(const struct table_part *p, const struct build_id *id);

/** "2026-01-31" for days since 1970. */
void format_table_day(int64_t day, char ret[static 32]);

/** "date=2026-01-31/NAME", owned. */
char *make_day_path(int64_t day, const char *name);

#endif
