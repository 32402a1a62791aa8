/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_CORE_FLUSH_ROWS_H
#define CAIRN_PROFILE_STORE_CORE_FLUSH_ROWS_H

/**
 * @file
 * Sort order and label columns of the samples of a flush.
 *
 * Threads: no shared state.
 */
#include "profile-store/tables/part_write.h"

/** Memory that sort_flush_samples() allocates. */
size_t get_sort_bytes(struct batch *const *batches, size_t count);

/**
 * Sort all samples of the batches by day, profile type, labels, stack and time.
 * @param ret  owned array that borrows from the batches.
 */
enum status sort_flush_samples(struct batch *const *batches, size_t count, struct sample_row **ret, size_t *count_ret,
                               struct error *err) MUST_CHECK;

/** The existing columns, then new ones for labels of the batches, sorted by name, up to LIMIT_LABEL_COLUMNS. */
enum status extend_label_columns(struct batch *const *batches, size_t count, const struct label_columns *before,
                                 struct label_columns *ret, bool *grown_ret, struct error *err) MUST_CHECK;

#endif
