/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_DELTA_DELTA_LOG_H
#define CAIRN_PROFILE_STORE_DELTA_DELTA_LOG_H

/**
 * @file
 * The Delta Lake transaction log of one table: the objects of a storage below a folder, "samples".
 *
 * A table is the set of Parquet files that its log names: a file is visible to readers from the commit that adds it to
 * the commit that removes it, and is unlinked later. A commit is one file, _delta_log/00000000000000000007.json,
 * published as STORAGE_NEW (optimistic concurrency): the second of two writers gets ST_BUSY. When
 * delta_commit() returns ST_OK the commit is durable; the files that it adds must be durable before.
 *
 * Periodically the state is also written as a Parquet checkpoint, so that opening a table reads few files: after
 * DELTA_CHECKPOINT_INTERVAL commits that add and remove a DELTA_CHECKPOINT_SHARE-th of the files. A checkpoint that
 * cannot be written costs time, not data, until delta_table_clean_up_log() deletes the commits before it.
 *
 * Threads: every call may come from any thread; a lock in the table orders them. Of a group of tables one thread at a
 * time calls delta_tables_read_next(), which takes the locks of all. A snapshot is immutable and may be shared.
 * Source: delta-io PROTOCOL.md, reader version 1 and writer version 2.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/hash.h"
#include "common/memory/buf.h"
#include "parquet/parquet_writer.h"
#include "parquet/schema.h"
#include "storage/storage.h"

#define DELTA_CHECKPOINT_INTERVAL 100 /* minimum number of commits */
#define DELTA_CHECKPOINT_SHARE 10

struct delta_table;
struct delta_actions;

struct delta_partition {
        const char *key;
        const char *value; /* NULL: null */
};

/** A live or removed file of a table. */
struct delta_file {
        const char *path; /* relative to the table, "date=2026-11-20/NAME.parquet" */
        uint64_t size;
        int64_t modified_ms;
        const char *stats; /* JSON as in the log; NULL without statistics, and for a removed file */
        const struct delta_partition *partitions;
        size_t partition_count;
        int64_t removed_ms;        /* removed files: time of removal, Unix milliseconds; 0 when unknown */
        bool removal_changes_data; /* removed files: dataChange of the removal; false: the rows are in other files */
};

/** How long older versions can be read, in seconds; stored as table properties that other programs read. */
struct delta_retention {
        int64_t removed_s; /* delta.deletedFileRetentionDuration: removed files stay this long */
        int64_t log_s;     /* delta.logRetentionDuration: commits stay this long, at least until midnight UTC */
};

/** A consistent state of a table, ordered by path. */
struct delta_snapshot {
        uint64_t version;
        const struct delta_file *const *files;
        size_t file_count;
        const char *schema_json; /* the table's schemaString */
};

/**
 * Create a table: version 0 of its log.
 *
 * @param folder  of the table, without a slash at its end; "" when the table is the whole storage.
 * @param fields  all columns, including those of partitions (STRING or DATE).
 * @param partition_columns  names among fields, in order.
 * @param retention  NULL: the properties are not set.
 * @return ST_OK; ST_BUSY when the table exists; ST_USAGE for a type without a Delta equivalent; ST_OS.
 */
enum status delta_table_create(struct storage *s, const char *folder, const struct parquet_field *fields,
                               size_t field_count, const char *const *partition_columns, size_t partition_count,
                               const struct delta_retention *retention, struct error *err) MUST_CHECK;

/**
 * Load a table's latest state. The storage is borrowed until delta_table_close().
 *
 * @return ST_OK; ST_NOT_FOUND without a log; ST_BAD_DATA for a log with a gap or a broken commit; ST_UNSUPPORTED for a
 *         table that needs newer readers or writers; ST_TOO_BIG; ST_OS; ST_NO_MEMORY.
 */
enum status delta_table_open(struct storage *s, const char *folder, struct delta_table **ret,
                             struct error *err) MUST_CHECK;
void delta_table_close(struct delta_table *t);

/**
 * Read commits that other writers made since. Whether later commits were deleted is asked only from time to time if the
 * table says how long they stay (delta_retention.log_s).
 */
enum status delta_table_refresh(struct delta_table *t, struct error *err) MUST_CHECK;

/** Note which file the last commit is, for delta_reading.may_be_replaced: right after opening. */
void delta_table_begin_follow(struct delta_table *t);

/** One of several tables whose next commits are read. */
struct delta_reading {
        struct delta_table *table;
        /*
         * The table may be replaced by another copy, as when a backup is restored: when the file of the last commit
         * read is missing and no later one exists, or it is another file than before, the whole state is read again,
         * and may be of a lower version.
         */
        bool may_be_replaced;
        /* Set by the call: */
        bool has_changed; /* there may be further commits */
        bool is_replaced; /* files of known paths may have other content */
        enum status status;
};
#define DELTA_READINGS_MAX 4

/**
 * Read the next commit of each table, if there is one; they are asked for at the same time. Where a commit was deleted,
 * or the table replaced, the whole state is read.
 * @param readings  of different tables of one storage.
 * @return the first failure; each table has its own status.
 */
enum status delta_tables_read_next(struct delta_reading *readings, size_t count, struct error *err) MUST_CHECK;

/**
 * Read all commits that were made before the call, and maybe some that were made since. Several are asked for at the
 * same time, so it ends unless others make DELTA_AHEAD_MOST during each round trip. After delta_tables_read_next(),
 * which notices deleted commits and replaced tables.
 * @param has_removed_ret  whether one of them removed files.
 */
enum status delta_table_catch_up(struct delta_table *t, bool *has_removed_ret, struct error *err) MUST_CHECK;
#define DELTA_AHEAD_MOST 16
#define DELTA_AHEAD_BYTES MiB(4) /* of a commit behind the next one; a larger one is read when it is the next */
#define DELTA_ROUNDS_MAX 6       /* of delta_tables_read_next() that find a commit, before it is better to catch up */

/** The current state; release it with delta_snapshot_release(), also after delta_table_close(). */
enum status delta_snapshot_acquire(struct delta_table *t, struct delta_snapshot **ret, struct error *err) MUST_CHECK;
void delta_snapshot_release(struct delta_snapshot *s);

/**
 * The removed files that the table remembers, as a snapshot (schema_json is NULL). The log and its checkpoints remember
 * a removed file until delta_table_forget().
 */
enum status delta_removed_acquire(struct delta_table *t, struct delta_snapshot **ret, struct error *err) MUST_CHECK;

/**
 * Omit a removed file from checkpoints from now on: its retention is over and it was unlinked. No effect when the path
 * was added or removed again.
 */
void delta_table_forget(struct delta_table *t, const struct delta_file *f);

/** Commit the table properties of r unless the table already has them. Errors as of delta_commit(). */
enum status delta_table_set_retention(struct delta_table *t, const struct delta_retention *r,
                                      struct error *err) MUST_CHECK;

#define DELTA_TABLE_ID_SIZE 41
/** The id of the table, which it has since it was made; "" unless it is of at most 40 letters, digits and hyphens. */
void delta_table_copy_id(struct delta_table *t, char ret[static DELTA_TABLE_ID_SIZE]);

/** The version recorded by the last commit with this application id; -1 without one. */
int64_t delta_table_get_txn_version(struct delta_table *t, const char *app_id);

struct delta_add {
        const char *path; /* characters [A-Za-z0-9._=/-] only */
        uint64_t size;
        const char *stats;                        /* from delta_stats_append(); NULL for none */
        const struct delta_partition *partitions; /* one value for each partition column of the table */
        size_t partition_count;
};

/* An operation parameter of a commit, which delta_past_commit_read() returns. */
struct delta_parameter {
        const char *name, *value; /* NULL: none */
};

struct delta_commit {
        size_t size;           /* sizeof(struct delta_commit) */
        const char *operation; /* "WRITE", "OPTIMIZE", "DELETE": informational */
        bool rearranges;       /* compaction: the same rows in other files; dataChange is false */
        const struct delta_add *adds;
        size_t add_count;
        const char *const *removes; /* paths of live files */
        size_t remove_count;
        const struct parquet_field *fields; /* NULL, or the new schema: all old columns, and new optional ones */
        size_t field_count;
        const struct delta_retention *retention; /* NULL keeps the properties */
        const char *app_id; /* NULL, or the application id that txn_version belongs to, for idempotent commits */
        int64_t txn_version;
        bool is_exact; /* only as the version after after_version: what the commit relies on was read there */
        int64_t after_version;
        const struct hash128 *batch_ids; /* of the batches whose rows the commit adds, for other writers */
        size_t batch_id_count;
        struct delta_parameter parameter;
        const struct delta_actions *const *included; /* of other writers: their files, transactions and batch ids */
        size_t included_count;
};

/**
 * Make adds, removes and a new schema visible at once.
 *
 * @return ST_OK; ST_BUSY when another writer took the version, or the table is not at after_version: refresh, check
 *         again, retry; ST_NOT_FOUND when a path to remove is not live; ST_USAGE for a schema that drops or changes
 * columns, or an added path that is already live; ST_OS; ST_NO_MEMORY. The table's state is unchanged on failure; after
 * ST_OS the commit may nevertheless be in the log: refresh.
 */
enum status delta_commit(struct delta_table *t, const struct delta_commit *c, struct error *err) MUST_CHECK;

/**
 * Append the text of a commit, as delta_commit() would put it into the log now, for another writer that includes it.
 * Errors as of delta_commit(), except those of storage.
 */
enum status delta_commit_write(struct delta_table *t, const struct delta_commit *c, struct buf *ret,
                               struct error *err) MUST_CHECK;

/**
 * The ids of the batches of all commits of the last LIMIT_BATCH_ID_AGE_S that no earlier call returned, up to the
 * table's current version (delta_batch_ids.h). Some may be returned again.
 * @param ret  owned; untouched on failure, after which the next call returns them.
 */
enum status delta_table_take_batch_ids(struct delta_table *t, struct hash128 **ret, size_t *count_ret,
                                       struct error *err) MUST_CHECK;

/** What was taken could not be kept: the next call of delta_table_take_batch_ids() returns all ids again. */
void delta_table_return_batch_ids(struct delta_table *t);

/** Remove the objects with ids of batches that are older than LIMIT_BATCH_ID_AGE_S. */
enum status delta_table_expire_batch_ids(struct delta_table *t, struct error *err) MUST_CHECK;

/** What a commit of the log changed. */
struct delta_past_commit {
        const struct delta_file *const *adds; /* borrowed from `memory`, as all below */
        size_t add_count, remove_count;
        bool rearranges; /* as in struct delta_commit; false without removes */
        char *parameter; /* owned; NULL: the commit does not have it */
        struct delta_actions *memory;
};
void delta_past_commit_deinit(struct delta_past_commit *c);
#define _cleanup_delta_past_commit_ _cleanup_(delta_past_commit_deinit)

/**
 * Read a commit again.
 * @param parameter  name of the operation parameter to return.
 * @return ST_OK; ST_NOT_FOUND when there is none of this version, or it was deleted; errors of delta_table_open().
 */
enum status delta_past_commit_read(struct delta_table *t, uint64_t version, const char *parameter,
                                   struct delta_past_commit *ret, struct error *err) MUST_CHECK;

/** Write a checkpoint of the current state; delta_commit() also writes one when it is due. */
enum status delta_checkpoint(struct delta_table *t, struct error *err) MUST_CHECK;

/** Count files and bytes of the log of a table: commits and checkpoints. */
enum status delta_log_measure(struct storage *s, const char *folder, uint64_t *files_ret, uint64_t *bytes_ret,
                              struct error *err) MUST_CHECK;

struct delta_log_cleanup {
        uint64_t files, bytes; /* deleted */
};

/**
 * Delete the log files that no reader needs: those below the newest intact checkpoint that is older than before_ms and
 * not the newest of all. First, this checkpoint and the newest one are read back and must yield the current state with
 * the commits after them, and `_last_checkpoint` is updated if it names a file to be deleted. Old files are deleted
 * first, so that a crash leaves no gap.
 * @param before_ms  Unix time by the clock of the storage, compared with the time of commits; PROTOCOL.md requires a
 *                   midnight.
 * @param ret  added to, also on failure.
 * @return ST_OK; ST_BAD_DATA when no such checkpoint yields the current state: nothing is deleted; ST_OS; ST_NO_MEMORY.
 * Memory: another state of the table.
 */
enum status delta_table_clean_up_log(struct delta_table *t, int64_t before_ms, struct delta_log_cleanup *ret,
                                     struct error *err) MUST_CHECK;

/**
 * The columns with statistics: those of these names, and the first prefix_count of those whose names begin with prefix.
 * The statistics of a file are repeated in each checkpoint, so only columns that queries select by should have them.
 */
struct delta_stats_columns {
        const char *const *names;
        size_t count;
        const char *prefix;
        size_t prefix_count;
};

/**
 * Append the statistics of a finished file, as an add's JSON: row count, and for its flat columns among these the count
 * of nulls and, except for binary and boolean ones, bounds.
 */
enum status delta_stats_append(const struct parquet_writer *w, const struct delta_stats_columns *columns,
                               struct buf *out) MUST_CHECK;

/**
 * A file's bounds of an INT64, INT32 or TIMESTAMP column (microseconds UTC; the log has milliseconds, so they are
 * rounded outwards).
 *
 * @return false without statistics: the file must be read.
 */
bool delta_file_get_int_range(const struct delta_file *f, const char *column, int64_t *min_ret, int64_t *max_ret);

/**
 * A file's bounds of a STRING column; they may be prefixes of values, the upper one rounded up.
 *
 * @param min_ret  owned; both NULL without statistics, both "" when every value is null.
 * @return ST_OK; ST_NO_MEMORY.
 */
enum status delta_file_get_text_range(const struct delta_file *f, const char *column, char **min_ret, char **max_ret,
                                      struct error *err) MUST_CHECK;

/** A file's statistics, parsed. */
struct delta_stats;
/** NULL when the file has no statistics, they are not JSON, or memory runs out. */
struct delta_stats *delta_stats_parse(const struct delta_file *f);
void delta_stats_free(struct delta_stats *s);
bool delta_stats_has_rows(const struct delta_stats *s);

/** Statistics of a flat column; texts are borrowed from them. */
struct delta_column_stats {
        bool has_null_count, has_int_range;
        uint64_t null_count;
        int64_t min_int, max_int;        /* as delta_file_get_int_range() */
        const char *min_text, *max_text; /* NULL: none */
        size_t min_size, max_size;
};
void delta_stats_get_column(const struct delta_stats *s, const char *column, struct delta_column_stats *ret);

/** Rows of a file; false without statistics. */
bool delta_file_get_row_count(const struct delta_file *f, uint64_t *ret);

#endif
