/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_SCAN_FILTER_H
#define CAIRN_PROFILE_STORE_SCAN_FILTER_H

/*
 * Which samples a filter chooses: of a batch of the head, and of a row group of
 * a part. What can be told by a part's day, the log's bounds, a row group's
 * bounds or a dictionary is not tested row by row.
 */
#include "profile-store/batch.h"
#include "profile-store/part_read.h"
#include "profile-store/scan.h"
#include "profile-store/tables.h"

/* A filter with its bounds in the tables' unit: time_us in [from_us, to_us). */
struct row_filter {
        const struct scan_filter *filter;
        int64_t from_us, to_us;
        struct work_meter *meter; /* NULL: unlimited; borrowed */
        char **columns; /* one a matcher: its label's column spelling */
};
enum status row_filter_init(struct row_filter *r, const struct scan_filter *filter, struct work_meter *meter,
                            struct error *err) MUST_CHECK;
void row_filter_deinit(struct row_filter *r);
#define _cleanup_row_filter_ _cleanup_(row_filter_deinit)

/* The rows of a row group, or the samples of a batch, that fit: mask is one byte a row. */
struct chosen {
        uint8_t *mask; /* owned */
        uint64_t row_count, chosen_count;
        int64_t *times_us; /* of a row group's rows; owned. NULL for a batch */
};
void chosen_deinit(struct chosen *c);
#define _cleanup_chosen_ _cleanup_(chosen_deinit)

enum status choose_in_batch(const struct row_filter *r, const struct batch *b, struct chosen *ret,
                            struct error *err) MUST_CHECK;
bool part_may_fit(const struct row_filter *r, const struct table_part *part);
enum status choose_in_group(const struct row_filter *r, const struct part_file *f, uint32_t group,
                            struct chosen *ret, struct error *err) MUST_CHECK;

#endif
