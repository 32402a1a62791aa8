/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_SCAN_INTERNAL_H
#define CAIRN_PROFILE_STORE_SCAN_INTERNAL_H

/*
 * A scan walks chunks: each batch of the head and each row group of a samples
 * part, both with the rows that a filter chose. What can be told by a part's
 * day, the log's bounds, a row group's bounds or a dictionary is not tested
 * row by row.
 */
#include "profile-store/part_read.h"
#include "profile-store/scan.h"
#include "profile-store/store_internal.h"

struct store_scan {
        struct symbol_index *symbols; /* for what is in the head; NULL: none */
        struct arena arena; /* what results borrow */
        struct batch **head;
        size_t head_count;
        struct tables *tables;
};

/* A filter with its bounds in the tables' unit: time_us in [from_us, to_us). */
struct row_filter {
        const struct scan_filter *filter;
        int64_t from_us, to_us;
        char **columns; /* one a matcher: its label's column spelling */
};
enum status row_filter_init(struct row_filter *r, const struct scan_filter *filter, struct error *err) MUST_CHECK;
void row_filter_deinit(struct row_filter *r);
#define _cleanup_row_filter_ _cleanup_(row_filter_deinit)

/* Whether a label's text, "" for a missing one, fits. */
bool matcher_fits(const struct label_matcher *m, const char *text, size_t n);

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

/* Visit every chunk that has chosen rows; exactly one of batch and file is given. */
struct chunk {
        const struct batch *batch;
        const struct part_file *file;
        uint32_t group;
        const struct chosen *chosen;
};
typedef enum status visit_chunk(void *context, const struct chunk *chunk, struct error *err);
enum status scan_chunks(struct store_scan *scan, const struct scan_filter *filter, visit_chunk *visit,
                        void *context, struct error *err) MUST_CHECK;

/* As store_scan_sum(), for its samples: when values have several units the sum has none, and they say nothing. */
enum status scan_count_samples(struct store_scan *scan, const struct scan_filter *filter, struct stack_sums *ret,
                               struct error *err) MUST_CHECK;

enum status scan_full(struct error *err);

#endif
