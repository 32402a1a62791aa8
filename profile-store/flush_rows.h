/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_FLUSH_ROWS_H
#define CAIRN_PROFILE_STORE_FLUSH_ROWS_H

/**
 * @file
 * The order and the columns of the samples of a flush.
 *
 * Threads: no shared state.
 */
#include "profile-store/part_write.h"

/** All samples of the batches by day, profile type, labels, stack and time; owned by the caller, borrowing the
 * batches. */
enum status flush_sort(struct batch *const *batches, size_t count, struct sample_row **ret, size_t *count_ret,
                       struct error *err) MUST_CHECK;

/** The columns there are, and after them new ones for the labels of the batches, by name, up to
 * LIMIT_LABEL_COLUMNS. */
enum status flush_columns(struct batch *const *batches, size_t count, const struct label_columns *before,
                          struct label_columns *ret, bool *grown_ret, struct error *err) MUST_CHECK;

#endif
