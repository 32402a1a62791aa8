/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_PART_WRITE_H
#define CAIRN_PROFILE_STORE_PART_WRITE_H

/**
 * @file
 * Writes one part of each table, in the schema of docs/formats/tables.md.
 *
 * A part is written under a temporary name, synced, renamed over whatever an
 * interrupted attempt left under its name, and its directory synced: it is
 * there before a commit speaks of it.
 *
 * A file ends before a reader's limits (parquet_writer_is_full()) or max_rows:
 * *count holds the rows to write, and then those that are in the file. At
 * least one row is written; the caller goes on in a next file.
 *
 * Threads: no shared state.
 */
#include "common/buf.h"
#include "profile-store/batch.h"
#include "profile-store/location_rows.h"
#include "profile-store/table_schema.h"

struct part_written {
        uint64_t rows, bytes;
        char *stats; /* JSON for the table's log; owned */
};

/** rows in the order of location_row_compare(). */
enum status part_write_locations(const char *path, const struct location_row *rows, size_t *count,
                                 uint64_t max_rows, struct part_written *ret, struct error *err) MUST_CHECK;

/** stacks sorted by id. */
enum status part_write_stacks(const char *path, const struct batch_stack *const *stacks, size_t *count,
                              uint64_t max_rows, struct part_written *ret, struct error *err) MUST_CHECK;

struct sample_row {
        const struct batch *batch;
        const struct batch_sample *sample;
        uint32_t type_rank, labels_rank; /* their order among all rows of the flush */
};

/** rows sorted by type_rank, labels_rank, stack, time. */
enum status part_write_samples(const char *path, const struct label_columns *columns, const struct sample_row *rows,
                               size_t *count, uint64_t max_rows, struct part_written *ret, struct error *err) MUST_CHECK;

#endif
