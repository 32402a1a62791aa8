/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_ROWS_VIEW_TEXTS_H
#define CAIRN_PROFILE_STORE_ROWS_VIEW_TEXTS_H

/**
 * @file
 * Names and paths of a symbol index view, copied to an arena once per number, for frames that outlive the view.
 *
 * Memory: the copies are in the arena. Their addresses, 16 bytes per number in
 * pages of 64 numbers, are reserved from the same budget until view_texts_deinit().
 * Threads: one.
 */
#include "common/memory/arena.h"
#include "profile-store/scan.h"
#include "symbol-index/lookup.h"

struct text_copy_page;

struct text_copies {
        struct text_copy_page **pages;
        uint32_t page_count;
};

struct view_texts {
        struct symbol_view *view; /* owned; NULL before it begins */
        struct arena *arena;      /* borrowed: holds the copies */
        struct arena pages;
        struct text_copies functions, files;
};

/** Begin a view; t is valid for view_texts_deinit() also on failure. */
enum status view_texts_init(struct view_texts *t, struct symbol_index *symbols, struct arena *a,
                            struct error *err) MUST_CHECK;
void view_texts_deinit(struct view_texts *t);

/** Set function, linkage_name, file, line and inlined of a frame. ST_BUSY and ST_TOO_BIG as of report_full_arena(). */
enum status view_texts_convert_frame(struct view_texts *t, const struct symbol_frame *from, struct scan_frame *frame,
                                     struct error *err) MUST_CHECK;

#endif
