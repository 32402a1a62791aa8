/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_SCAN_INTERNAL_H
#define CAIRN_PROFILE_STORE_SCAN_INTERNAL_H

/*
 * A scan walks chunks: each batch of the head and each row group of a samples
 * part, both with the rows that a filter chose.
 */
#include "profile-store/scan.h"
#include "profile-store/scan_filter.h"
#include "profile-store/store_internal.h"

struct store_scan {
        struct symbol_index *symbols; /* for what is in the head; NULL: none */
        struct arena arena; /* what results borrow */
        struct batch **head;
        size_t head_count;
        struct tables *tables;
        struct work_meter *meter; /* NULL: unlimited; borrowed */
};

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
