/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_LOCATION_ROWS_H
#define CAIRN_PROFILE_STORE_LOCATION_ROWS_H

/**
 * @file
 * Rows of the locations table in memory: made of a batch, or read from a part;
 * given their frames by one batch lookup; written to a part or shown by a scan.
 *
 * Whose frames a row has:
 *  1. Frames that the sender resolved stay when one of them names a file.
 *     Names alone (a kernel's kallsyms) give way to symbols with lines.
 *  2. Else the index decides, and a newer generation replaces an older one.
 *  3. A row that has frames never loses them: an object that is gone, pending
 *     or failed since leaves its rows as they are.
 *
 * Threads: one at a time.
 */
#include "common/arena.h"
#include "profile-store/batch.h"
#include "profile-store/scan.h"
#include "symbolizer/lookup.h"

struct location_row {
        struct scan_location shown; /* shown.state is symbol_state_name(state) */
        enum profile_address_kind kind;
        enum symbol_state state;
        uint64_t generation;
};

/** A row of a batch's location, not looked up yet. Texts are borrowed from the batch, the frames are in a. */
enum status location_row_of_batch(struct location_row *row, const struct batch_location *from, struct arena *a,
                                  struct error *err) MUST_CHECK;

/**
 * Look rows up, in slices of one view, and apply the rules above. Equal frames
 * are shared. Rows that have no room within LIMIT_FLUSH_FRAMES or the arena,
 * the deepest first, become SYMBOL_TOO_LARGE, or keep the frames they had.
 * @param symbols  NULL: nothing is known of any object.
 * @param changed  NULL, or one flag per row, set where its row changed.
 */
enum status location_rows_resolve(struct location_row *rows, size_t count, struct symbol_index *symbols,
                                  struct arena *a, uint8_t *changed, struct error *err) MUST_CHECK;

/** How many lookups of this process met damage in the index; their rows are `failed`. */
int64_t location_rows_damaged(void);

/** By build-id, then address, then id: the order of a part. */
int location_row_compare(const void *a, const void *b);

const char *address_kind_name(enum profile_address_kind kind); /* "object", "file_offset", "none" */

#endif
