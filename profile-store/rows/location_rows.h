/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_ROWS_LOCATION_ROWS_H
#define CAIRN_PROFILE_STORE_ROWS_LOCATION_ROWS_H

/**
 * @file
 * Rows of the locations table in memory: created from a batch or a part, resolved by a batch lookup, then written to a
 * part or returned by a scan.
 *
 * Precedence of frames:
 *  1. Frames resolved by the sender are replaced by symbols with lines, which include inlined calls. Start lines of
 *     functions are kept where the index has none. In a kernel module the function must be the one that the sender
 *     named: addresses in sections other than .text may belong to another function.
 *  2. Otherwise the index decides: frames of a better quality, or as good and of another generation, replace those of
 *     the row. Worse ones replace own frames only: their debuginfo was replaced on purpose.
 *  3. A row never loses its frames: removed, pending or failed objects leave their rows unchanged.
 *
 * Threads: one at a time.
 */
#include "common/memory/arena.h"
#include "profile-store/rows/batch.h"
#include "profile-store/scan.h"
#include "symbol-index/lookup.h"

struct location_row {
        struct scan_location shown; /* shown.state is symbol_state_name(state) */
        bool is_excluded;           /* location_rows_resolve() skips it */
        bool is_own;                /* its frames are of the index that is asked, not of another node's */
        uint32_t sender;            /* of its first batch */
        enum profile_address_kind kind;
        enum symbol_state state;
        uint64_t generation;
        uint64_t number; /* the value of its id in the map that selected it */
};

/** Make the row of a batch's location, before lookup. Texts are borrowed from the batch, frames are allocated in a. */
enum status location_row_from_batch(struct location_row *row, const struct batch_location *from, struct arena *a,
                                    struct error *err) MUST_CHECK;

/**
 * Look up the rows that are not excluded, in slices of one view, and apply the rules above. Equal frames are shared.
 * Rows that do not fit into LIMIT_FLUSH_FRAMES or the arena, the deepest first, become SYMBOL_TOO_LARGE or keep their
 * frames.
 * @param symbols  NULL: an empty index.
 * @param changed  NULL, or one flag per row, set where its row changed.
 * @return ST_BUSY when the budget refuses memory for the arena, or, if the arena has a budget, for the frames that are
 *         looked up; rows may be changed.
 */
enum status location_rows_resolve(struct location_row *rows, size_t count, struct symbol_index *symbols,
                                  struct arena *a, uint8_t *changed, struct error *err) MUST_CHECK;

/** Number of lookups in this process that found a damaged index; their rows are `failed`. */
int64_t location_rows_count_damaged(void);

/** Order of a part: by build-id, then address, then id. */
int compare_location_rows(const void *a, const void *b);

const char *address_kind_name(enum profile_address_kind kind); /* "object", "file_offset", "none" */

#endif
