/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_TABLES_HISTORY_PART_H
#define CAIRN_PROFILE_STORE_TABLES_HISTORY_PART_H

/**
 * @file
 * Files of function_history: their rows, written and read. Rows of a file are sorted by history_row_compare().
 *
 * Threads: as profile-store/tables/part_write.h and part_read.h.
 */
#include "profile-store/history_scan.h"
#include "profile-store/tables/part_read.h"
#include "profile-store/tables/part_write.h"

/** Order of a file: by hour, type, unit, service, version, function, file, build-id, runtime. */
int history_row_compare(const void *a, const void *b);

struct history_part {
        struct part_writer part;
        uint32_t hour, type, unit, service, version, build_id, runtime, function, file;
        uint32_t self, total, self_samples, samples, source_version;
};
enum status history_part_begin(struct history_part *h, struct storage *s, const char *key,
                               const struct part_limits *limits, struct error *err) MUST_CHECK;
enum status history_part_put(struct history_part *h, const struct history_row *row, struct error *err) MUST_CHECK;

/**
 * Visit the rows of hours in [from_us, to_us), in order.
 * @param use  memory of the columns of a row group.
 */
enum status history_part_visit(const struct table_part *part, int64_t from_us, int64_t to_us, enum memory_use use,
                               visit_history_row *visit, void *context, struct error *err) MUST_CHECK;

#endif
