/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_EXPORT_H
#define CAIRN_QUERY_EXPORT_H

/**
 * @file
 * Export of a selection as one flat table: a row for each step of time, profile type, set of labels and stack, with the
 * stack's names as text. Columns: docs/man/cairn-store.1.
 *
 * Memory: the sums and names of one step, and a row group. A step with more than fits into the limits of a scan
 * (profile-store/scan_groups.h) is exported in halves, down to a second; a selection that is larger even then fails.
 *
 * Threads: one export belongs to one thread.
 */
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "profile-store/store.h"

#define EXPORT_STEP_LEAST_NS INT64_C(1000000000)

struct export_options {
        const char *selector;             /* "" and NULL: everything */
        const char *type;                 /* NULL: every profile type */
        int64_t from_unix_ns, to_unix_ns; /* half-open */
        int64_t step_ns;                  /* at least EXPORT_STEP_LEAST_NS; steps begin at its multiples */
        bool csv;                         /* in place of Parquet */
        int fd;                           /* at the start of a file, or a pipe for CSV; borrowed */
        const char *name;                 /* of the file, for messages */
};

struct export_result {
        uint64_t rows, samples;
};

/**
 * Write the file. It is not synced; after a failure it is half-written.
 * @return ST_OK; ST_USAGE for a malformed selector; ST_TOO_BIG when a second has more stacks than fit: narrow the
 *         selection; ST_OS; ST_BAD_DATA; ST_NO_MEMORY.
 */
enum status export_stacks(struct profile_store *store, const struct export_options *o, struct export_result *ret,
                          struct error *err) MUST_CHECK;

#endif
