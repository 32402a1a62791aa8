/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_TABLES_PART_WRITE_H
#define CAIRN_PROFILE_STORE_TABLES_PART_WRITE_H

/**
 * @file
 * Writes parts, the Parquet files of the tables, in the schema of docs/formats/tables.md.
 *
 * A part replaces any object that an interrupted attempt left, and is durable before a commit names it
 * (storage/storage.h).
 *
 * Memory: one row group, up to PART_GROUP_BYTES reserved from the budget of `use`. When that is refused, row groups are
 * smaller, down to PART_LEAST_GROUP_BYTES, which is not reserved: writing always makes progress.
 *
 * Threads: no shared state.
 */
#include "common/memory/buf.h"
#include "common/memory/memory_budget.h"
#include "parquet/parquet_writer.h"
#include "profile-store/rows/batch.h"
#include "profile-store/rows/location_rows.h"
#include "profile-store/tables/table_schema.h"
#include "storage/storage.h"

struct part_written {
        uint64_t rows, bytes;
        char *stats; /* JSON for the table's log; owned */
};

#define LABELS_WITH_STATS 16 /* label columns per part with statistics in the table's log */
#define PART_GROUP_BYTES MiB(64)
#define PART_LEAST_GROUP_BYTES MiB(1)

struct part_limits {
        uint64_t max_rows; /* of one file */
        enum memory_use use;
        size_t group_bytes; /* of a row group; 0: PART_GROUP_BYTES */
};

/* A part that is being written. */
struct part_writer {
        struct storage_upload upload;
        struct parquet_writer *w;
        uint64_t rows, max_rows;
        struct memory_reservation memory;
};

/** Discard the part unless it was finished. */
void part_writer_deinit(struct part_writer *p);
#define _cleanup_part_writer_ _cleanup_(part_writer_deinit)

/**
 * Begin a part. The caller puts rows into p->w, in the table's order.
 * @param columns  for samples: the label columns; NULL otherwise.
 * @param ret  part_writer_deinit() is required, also on failure.
 */
enum status part_writer_begin(struct part_writer *ret, struct storage *s, const char *key, enum table t,
                              const struct label_columns *columns, const struct part_limits *limits,
                              struct error *err) MUST_CHECK;
/** Declare count rows complete in every column. Call only while the part has room. */
enum status part_writer_end_rows(struct part_writer *p, uint64_t count, struct error *err) MUST_CHECK;

/**
 * A part of locations, written row by row: begin, put while there is room, finish.
 * @param ret  part_writer_deinit() is required, also on failure.
 */
struct location_part {
        struct part_writer part;
        uint32_t id, build_id, address, kind, mapping, is_kernel, frames, state, quality, generation, start_lines,
                start_line;
        struct {
                uint32_t function, linkage_name, file, line, inlined;
        } frame;
};
enum status location_part_begin(struct location_part *ret, struct storage *s, const char *key,
                                const struct part_limits *limits, struct error *err) MUST_CHECK;
/** Whether the file has room for another row: within max_rows and the limits of a reader. The first row always fits. */
bool part_writer_has_room(const struct part_writer *p);
/** Rows must be put in the order of compare_location_rows(). */
enum status location_part_put(struct location_part *l, const struct location_row *row, struct error *err) MUST_CHECK;
enum status part_writer_finish(struct part_writer *p, struct part_written *ret, struct error *err) MUST_CHECK;

/*
 * These write up to *count rows, as many as one file takes, at least one, and set *count to the number written. The
 * caller continues with the next file.
 */

/** rows must be in the order of compare_location_rows(). */
enum status part_write_locations(struct storage *s, const char *key, const struct location_row *rows, size_t *count,
                                 const struct part_limits *limits, struct part_written *ret,
                                 struct error *err) MUST_CHECK;

/** stacks must be sorted by id. */
enum status part_write_stacks(struct storage *s, const char *key, const struct batch_stack *const *stacks,
                              size_t *count, const struct part_limits *limits, struct part_written *ret,
                              struct error *err) MUST_CHECK;

struct sample_row {
        const struct batch *batch;
        const struct batch_sample *sample;
        uint32_t type_rank, labels_rank; /* order of its type and labels among all rows of the flush */
};

/** rows must be sorted by type_rank, labels_rank, stack, time. */
enum status part_write_samples(struct storage *s, const char *key, const struct label_columns *columns,
                               const struct sample_row *rows, size_t *count, const struct part_limits *limits,
                               struct part_written *ret, struct error *err) MUST_CHECK;

#endif
