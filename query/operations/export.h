/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_OPERATIONS_EXPORT_H
#define CAIRN_QUERY_OPERATIONS_EXPORT_H

/**
 * @file
 * Export of a selection as one flat table: a row for each time step, profile type, label set and stack, with the
 * stack's names as text. Columns: docs/man/cairn-store.1.
 *
 * Memory: the sums and names of one step, and a row group. A step that exceeds the limits of a scan
 * (profile-store/scan_groups.h) is split in halves, down to a second; if that is too large as well, the export fails.
 *
 * Threads: one export belongs to one thread.
 */
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "profile-formats/sample_count.h"
#include "profile-store/profile_store.h"

#define EXPORT_STEP_LEAST_NS INT64_C(1000000000)

struct export_options {
        const char *selector;             /* "" and NULL: everything */
        const char *type;                 /* id or part, matches like that of a query; NULL: every profile type */
        int64_t from_unix_ns, to_unix_ns; /* half-open */
        int64_t step_ns;                  /* at least EXPORT_STEP_LEAST_NS; steps begin at multiples of it */
        bool csv;                         /* instead of Parquet */
        int fd;                           /* at the start of a file, or a pipe for CSV; borrowed */
        const char *name;                 /* file name for messages */
};

struct export_result {
        uint64_t rows;
        struct counted_samples samples; /* those of several types of one profile count once */
};

/**
 * Write the file. It is not synced; after a failure it is incomplete.
 * @return ST_OK; ST_USAGE for a malformed selector; ST_TOO_BIG when one second has too many stacks; ST_OS; ST_BAD_DATA;
 *         ST_NO_MEMORY.
 */
enum status export_stacks(struct profile_store *store, const struct export_options *o, struct export_result *ret,
                          struct error *err) MUST_CHECK;

#endif
