/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_PROFILE_STORE_H
#define CAIRN_PROFILE_STORE_PROFILE_STORE_H

/**
 * @file
 * Storage of acknowledged samples: write-ahead queue, head in memory, tables, re-symbolization.
 *
 * DIR/queue/     raw queue segments (docs/formats/raw-queue.md)
 * DIR/tables/samples, stacks, locations, function_history   Delta tables (docs/formats/tables.md)
 *
 * Locations in the head are looked up in the symbol index by each scan; those in parts have their frames stored.
 *
 * Threads: every call may come from any thread, except open and close. One process at a time may write a directory (it
 * holds a lock file); others open it read-only.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/build_id.h"
#include "common/error.h"
#include "common/hash.h"
#include "common/wanted_object.h"
#include "profile-formats/profile.h"
#include "symbol-index/lookup.h"

struct profile_store;

struct handed_commit;
struct label_matcher;
struct missing_nodes;
struct storage;

#define LABEL_RULES_MAX 16

/* Maximum age of samples with certain labels. */
struct label_rule {
        const struct label_matcher *matchers; /* as in struct scan_filter; used by one thread at a time */
        size_t matcher_count;
        const char *type; /* profile type id, or NULL for any */
        uint64_t age_s;
};

/* How many samples are kept (profile-store/lifecycle/sample_retention.h); 0: no limit. */
struct sample_limits {
        uint64_t age_s;
        uint64_t size_bytes;            /* of the files of all tables */
        uint64_t history_age_s;         /* of function_history, by whole days */
        const struct label_rule *rules; /* borrowed: those of a store's options until it is closed */
        size_t rule_count;              /* at most LABEL_RULES_MAX */
};

/** What happens when the object store of the tables is away while a profile store is opened for writing. */
enum tables_away {
        TABLES_ARE_NEEDED,  /* the error of the object store */
        TABLES_MAY_BE_AWAY, /* batches are queued, and the tables are read later (core/table_absence.h) */
        TABLES_ARE_AWAY,    /* as before, without trying: another one has just found it away */
};

/** What became of a commit that was handed to another node (profile-store/handed_commits.h), as far as is known. */
enum hand_result {
        HAND_COMMITTED,
        HAND_REFUSED,    /* a batch of it is committed, or the table is not as it relies on: look again */
        HAND_NOT_HOLDER, /* the node that was asked does not make commits for others now */
        HAND_NO_ANSWER,  /* it may be made or not, now or later */
};

struct profile_store_options {
        size_t size; /* sizeof this struct */
        bool read_only;
        uint64_t flush_bytes;         /* memory of the head that triggers an early flush; 0: default 64 MiB */
        uint64_t flush_interval_ms;   /* 0: default 10 s; UINT64_MAX: only profile_store_flush() */
        uint64_t commit_interval_ms;  /* from profile_store_wait_flushed() to a flush, at most; 0: default 2 s */
        uint64_t max_queued_bytes;    /* memory limit of the head; past it append is ST_BUSY. 0: default 512 MiB */
        uint64_t resymbolize_rows;    /* locations per round of re-symbolization; 0: default 1000000 */
        uint64_t removed_grace_ms;    /* removed files are kept this long for readers of older versions; 0: 1 h, and
                                         opening a store without a flush thread deletes none */
        uint64_t compact_interval_ms; /* between checks for files to merge; 0: default, with the flush thread;
                                         UINT64_MAX: only profile_store_compact() */
        struct sample_limits limits;  /* applied by the maintenance */
        uint64_t part_rows;           /* maximum per file; 0: the limit of a reader */
        struct symbol_index *symbols; /* borrowed; NULL: every location stays unresolved */
        struct storage *tables;       /* borrowed; NULL: local files in DIR/tables */
        uint64_t lease_ms;            /* of work that one node does for all (core/store_lease.h); 0: default 60 s */
        bool is_shared;               /* other nodes write the tables, too; assumed of those in an object store */
        unsigned peer_count;          /* other nodes whose heads scans have, at most LIMIT_PEERS; 0: none */
        /*
         * Called before each scan without locks: give the store the heads of its peers (profile-store/peer_heads.h),
         * and name those that did not answer. NULL: not asked.
         */
        void (*ask_peers)(void *context, struct missing_nodes *ret);
        void *ask_context;
        enum tables_away when_away;
        /*
         * Called once before the tables are first read, in an object store maybe long after the opening; a failure is
         * that of the opening, or of a flush. May be NULL. With a lock of the store: it must not call the store.
         */
        enum status (*check_tables)(void *context, struct storage *tables, struct error *err);
        void *check_context;
        bool has_follower; /* read-only, of tables in an object store: a thread follows them (core/table_follow.h) */
        /* What other nodes do, of those on one object store; without flush_interval_ms == UINT64_MAX. */
        bool has_no_flush;       /* nothing is appended; a thread flushes only what the queue has from before */
        bool has_no_maintenance; /* no retention, compaction or removal of files by threads */
        bool has_no_scans;       /* caches for scans are not filled at the opening */
        /*
         * Called after a flush with the build-ids that lack debuginfo, for federation. May be NULL. Called on the flush
         * thread, without locks.
         */
        void (*missing_debuginfo)(void *context, const struct wanted_object *objects, size_t count);
        void *missing_context;
        /*
         * Of a gateway: a flush gives its batches to this function, in pages (docs/formats/head-page.md), instead of
         * writing them to the tables. ST_OK when another node has them durably; ST_BAD_DATA or ST_TOO_BIG when that
         * refuses a batch of the page; after other failures the flush is repeated. Called with the lock of the writer:
         * it must not call the store. NULL: not a gateway.
         */
        enum status (*forward)(void *context, const void *page, size_t n, struct error *err);
        void *forward_context;
        /*
         * Of one of several nodes: ask the node base->holder to make a commit of samples
         * (profile-store/handed_commits.h). Called by flushes, without locks. NULL: each commit is the node's own, and
         * it makes none for others.
         */
        enum hand_result (*hand)(void *context, const struct handed_commit *base, const void *text, size_t n);
        void *hand_context;
};

/** Whether the tables could not be read since the opening (TABLES_MAY_BE_AWAY). */
bool profile_store_lacks_tables(struct profile_store *store);

enum status profile_store_open(const char *dir, const struct profile_store_options *options, struct profile_store **ret,
                               struct error *err) MUST_CHECK;

/**
 * ST_NOT_FOUND, with a text that names dir, when dir holds no store: for commands that change an existing store and
 * must not create an empty one when the user mistyped a path.
 */
enum status profile_store_check_exists(const char *dir, struct error *err) MUST_CHECK;

/**
 * Replace options.limits of an open store, and apply them soon. Work in progress ends with the previous limits.
 * @param release  called with context when limits->rules are no longer used, at the latest when the store is closed;
 *         not called after a failure. NULL: they outlive the store.
 */
enum status profile_store_set_limits(struct profile_store *store, const struct sample_limits *limits,
                                     void (*release)(void *context), void *context, struct error *err) MUST_CHECK;

/** Let running and later flushes, merges and so on end soon with ST_BUSY. Before profile_store_close(). */
void profile_store_stop(struct profile_store *store);

/**
 * Whether this node fetches debuginfo in the background for all nodes on the same tables: the one with the lease
 * `fetches`, which the call takes or renews. True without other nodes, and when the tables do not answer: two nodes
 * that fetch the same store it once.
 */
bool profile_store_leads_fetches(struct profile_store *store);

/** Let another node do that, if one wants to: this one cannot reach an upstream. */
void profile_store_leave_fetches(struct profile_store *store);

/** Batches in the queue that are not in the tables, and their memory. */
void profile_store_count_queued(struct profile_store *store, uint64_t *batches_ret, uint64_t *bytes_ret);

/** Stop the threads. Queued batches stay in the queue, which is durable. */
void profile_store_close(struct profile_store *store);

/**
 * Append a batch. After ST_OK its samples survive kill -9 and power loss, and queries see them.
 * @param batch_id  identity of the batch: a second one with the same id returns ST_OK and is not counted (duplicate_ret
 *         is true).
 * @return ST_BUSY when the queue is full: answer 429, retry later.
 */
enum status profile_store_append(struct profile_store *store, const struct profile *profile, struct hash128 batch_id,
                                 bool *duplicate_ret, struct error *err) MUST_CHECK;

/** As profile_store_append(). @param sender  for missing_debuginfo, as in struct wanted_object; not stored. */
enum status profile_store_append_from(struct profile_store *store, const struct profile *profile, uint32_t sender,
                                      struct hash128 batch_id, bool *duplicate_ret, struct error *err) MUST_CHECK;

/** Of a page: batches, those of them that were received before, and the samples of the others. */
struct forwarded_batches {
        uint64_t batches, duplicates, samples;
};

/**
 * Append the batches of a page that a gateway forwards, each with its id, by one sync. After a failure some may have
 * been added: the page is sent again.
 * @return ST_BAD_DATA, ST_TOO_BIG or ST_UNSUPPORTED for a damaged page, or a batch that profile_store_append() refuses;
 *         ST_BUSY when the queue is full.
 */
enum status profile_store_append_page(struct profile_store *store, const void *page, size_t n,
                                      struct forwarded_batches *ret, struct error *err) MUST_CHECK;

/**
 * Wait until the commit of an appended batch is made: in an object store it then survives the loss of this machine.
 * Batches that wait at the same time share a flush, which begins within commit_interval_ms.
 * @return ST_BAD_DATA when the batch was set aside meanwhile (quarantine): it is on this machine only; ST_TIMEOUT after
 * timeout_ms, or when the store is closed: the batch stays queued, and a second one with its id counts once.
 */
enum status profile_store_wait_flushed(struct profile_store *store, struct hash128 batch_id, uint64_t timeout_ms,
                                       struct error *err) MUST_CHECK;

/**
 * Flush all queued batches, and wait. ST_OK even if some were moved to the quarantine: the others are in the tables.
 */
enum status profile_store_flush(struct profile_store *store, struct error *err) MUST_CHECK;

/** Progress of a re-symbolization. Called on the calling thread; may be NULL. */
typedef void profile_store_progress(void *context, uint64_t done_locations, uint64_t all_locations);

struct quarantine_item;

/**
 * Append a quarantined batch to the queue durably, and remove its file. Idempotent: if repeated after a crash, the
 * batch counts once.
 */
enum status profile_store_requeue(struct profile_store *store, const struct quarantine_item *item,
                                  struct error *err) MUST_CHECK;

/** Remove a quarantined batch; its samples are lost. */
enum status profile_store_discard(struct profile_store *store, const struct quarantine_item *item,
                                  struct error *err) MUST_CHECK;

struct resymbolize_request {
        const struct build_id *ids;   /* borrowed */
        size_t count;                 /* 0: all objects */
        int64_t indexed_since_unix_s; /* only those objects indexed at or after this time; 0: all of them */
        bool dry_run;                 /* look up and count, write nothing */
        profile_store_progress *progress;
        void *context;
};

struct resymbolize_result {
        uint64_t locations_seen, locations_changed;
        uint64_t files_read;      /* files opened; the others have no such build-id according to the log's statistics */
        uint64_t files_rewritten; /* in a dry run: files that would be rewritten */
        uint64_t files_skipped;   /* unreadable files of locations: their rows stay as they are */
        uint64_t before[SYMBOL_STATE_COUNT], after[SYMBOL_STATE_COUNT]; /* locations examined, by state */
};

/**
 * Look up the locations of the requested objects again and rewrite the rows whose result improved or changed, in one
 * atomic commit per round of options.resymbolize_rows. Samples and stacks are unchanged; queries and flushes continue.
 * After a crash or failure a second call completes the rest. Unreadable files are skipped (files_skipped).
 * @return ST_BUSY when memory was refused for some files: retry later; the others are done.
 */
enum status profile_store_resymbolize(struct profile_store *store, const struct resymbolize_request *request,
                                      struct resymbolize_result *ret, struct error *err) MUST_CHECK;

/**
 * The objects of locations that were committed as SYMBOL_NO_DEBUGINFO, in files that no earlier call has read. The
 * first call reads all files, later ones those of other nodes and of merges: a flush of this process has looked up its
 * locations and requested what was missing. For one thread.
 * @param ret  owned, sorted, each once; may be NULL without any.
 */
enum status profile_store_list_unnamed(struct profile_store *store, struct build_id **ret, size_t *count_ret,
                                       struct error *err) MUST_CHECK;
/** Let the next call read all files, because what the last one listed could not be handled. */
void profile_store_list_unnamed_again(struct profile_store *store);

struct compaction_result {
        uint64_t merges, files_before, files_after; /* of the merges */
        uint64_t bytes_read, bytes_written;
        uint64_t failed_partitions; /* days of a table, or all locations, whose merge failed; they are retried */
        uint64_t skipped_files;     /* unreadable, or too large for the memory: left unchanged */
};

/**
 * Called on the calling thread: after each merge, and repeatedly while waiting for a re-symbolization or another
 * thread.
 * @param files_due  of all merges that were due, including this one.
 * @return false to end early, with ST_BUSY.
 */
typedef bool profile_store_compact_progress(void *context, const struct compaction_result *so_far, uint64_t files_due);

/**
 * Merge small files of each day and table, and of locations, until nothing is left to merge. Queries and flushes
 * continue. A store with a flush thread compacts by itself (profile-store/compaction/); unlike that, this call does not
 * wait for days to end.
 * @param progress  may be NULL.
 * @return the first failure, after everything else was merged (ret is set in that case too); ST_BUSY when the store is
 *         closed meanwhile.
 */
enum status profile_store_compact(struct profile_store *store, profile_store_compact_progress *progress, void *context,
                                  struct compaction_result *ret, struct error *err) MUST_CHECK;

/**
 * Derive the hours of function_history that are over and whose samples changed, now instead of when they got no samples
 * for a while. A store with a flush thread does this by itself (profile-store/history/).
 * @return ST_BUSY when another writer changed the table: retry; ST_USAGE for a store opened read-only.
 */
enum status profile_store_update_history(struct profile_store *store, struct error *err) MUST_CHECK;

/** Whether acknowledged samples reach the tables. Times are Unix nanoseconds; texts are "" without a failure. */
struct profile_store_health {
        int64_t flush_failing_since; /* first failure after the last successful flush; 0: flushing works */
        char flush_failure[240];     /* text of the last failure since then */
        int64_t sync_failing_since;  /* the queue refuses batches since a write or fdatasync failed; 0: it accepts */
        char sync_failure[240];
        uint64_t queued_batches;      /* in the head */
        uint64_t queued_bytes;        /* of the head */
        uint64_t queue_limit_bytes;   /* options.max_queued_bytes */
        bool queue_full;              /* new batches are refused with ST_BUSY */
        uint64_t quarantined_batches; /* on disk now; each failed on its own (cairn store quarantine) */
        uint64_t quarantined_bytes;
        int64_t compaction_failing_since; /* several merges of one partition failed in a row; 0: compaction works */
        char compaction_failure[240];
        int64_t label_expiry_failing_since; /* retention by labels failed and is retried; 0: it works */
        char label_expiry_failure[240];
        int64_t unmaintained_since; /* neither this node nor another one compacts the tables and applies retention */
        char unmaintained[240];
        int64_t follow_failing_since; /* scans have no later commits of other nodes than those read before; 0: they do
                                       */
        char follow_failure[240];
        char quarantine_reason[240]; /* of the newest batch that this process quarantined */
};

/** Never waits for I/O: takes a mutex that is held only to copy these members. */
void profile_store_get_health(struct profile_store *store, struct profile_store_health *ret);

/* The live files of a table. */
struct profile_store_table_stat {
        uint64_t rows, files, bytes;
        int64_t oldest_unix_ns, newest_unix_ns; /* of samples in files, hours of the history, and of stacks by
                                                   day; 0: unknown */
};

struct profile_store_stat {
        uint64_t queued_bytes, queued_batches; /* in the head; bytes of memory */
        uint64_t queue_disk_bytes;
        uint64_t sample_rows, stack_rows, location_rows; /* in parts */
        uint64_t sample_files, stack_files, location_files, bytes;
        struct profile_store_table_stat samples, stacks, locations, history;
        uint64_t unresolved_locations;
        uint64_t compaction_backlog_files, compaction_backlog_bytes; /* waiting to be merged */
        int64_t oldest_unix_ns, newest_unix_ns;                      /* of samples; 0 when there are none */
        uint64_t failed_flushes;               /* since open; each is retried after the interval */
        char last_failure[240];                /* of the last failed flush; "" without one */
        uint64_t damaged_lookups;              /* lookups of this process that found a damaged symbol index */
        uint64_t torn_bytes, damaged_segments; /* found at open: profile-store/queue/raw_queue.h */
        struct profile_store_health health;
};
enum status profile_store_stat(struct profile_store *store, struct profile_store_stat *ret,
                               struct error *err) MUST_CHECK;

#endif
