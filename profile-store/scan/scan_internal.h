/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_SCAN_SCAN_INTERNAL_H
#define CAIRN_PROFILE_STORE_SCAN_SCAN_INTERNAL_H

/*
 * A scan visits chunks: each batch of the head and each row group of a samples
 * part, with the rows that a filter selects.
 */
#include "profile-store/scan.h"
#include "profile-store/part_read.h"
#include "profile-store/store_internal.h"

struct store_scan {
        struct symbol_index *symbols; /* for locations of the head; NULL: none */
        struct arena arena;           /* of results */
        struct batch **head;
        size_t head_count;
        struct tables *tables;
        struct work_meter *meter; /* NULL: unlimited; borrowed */
};

/* The rows of a row group, or the samples of a batch, that a filter selects: mask has one byte per row. */
struct row_selection {
        uint8_t *mask; /* owned */
        uint64_t row_count, selected_count;
        int64_t *times_us; /* of the rows of a row group; owned. NULL for a batch */
};
void row_selection_deinit(struct row_selection *s);
#define _cleanup_row_selection_ _cleanup_(row_selection_deinit)

/* Visit every chunk with selected rows; exactly one of batch and file is set. */
struct scan_chunk {
        const struct batch *batch;
        const struct part_file *file;
        uint32_t group;
        const struct row_selection *selection;
};
typedef enum status visit_chunk(void *context, const struct scan_chunk *chunk, struct error *err);
enum status scan_visit_chunks(struct store_scan *scan, const struct scan_filter *filter, visit_chunk *visit,
                              void *context, struct error *err) MUST_CHECK;

/* store_scan_sum() for its sample counts: with values of several units the unit is "" and the values are meaningless.
 */
enum status scan_count_samples(struct store_scan *scan, const struct scan_filter *filter, struct stack_sums *ret,
                               struct error *err) MUST_CHECK;

enum status set_scan_too_big(struct error *err);

#endif
