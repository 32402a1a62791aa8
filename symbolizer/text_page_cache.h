/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_TEXT_PAGE_CACHE_H
#define CAIRN_SYMBOLIZER_TEXT_PAGE_CACHE_H

/**
 * @file
 * Unpacked pages of texts, a bounded number of them, by their last numbers.
 * A committed page never changes, so one cache serves all views of an index;
 * what is not committed yet must not get into it.
 *
 * Threads: any number.
 */
#include <stdbool.h>

#include "common/buf.h"
#include "common/limits.h"
#include "symbolizer/text_page.h"

#define TEXT_PAGE_CACHE_SLOTS 2048
#define TEXT_PAGE_CACHE_PAGE_BYTES KiB(32) /* larger pages are not kept: 64 MiB at most, a quarter of it usually */

struct text_page_cache;
struct text_page_cache *text_page_cache_create(void);
void text_page_cache_destroy(struct text_page_cache *c);

/** Append text `number` of the page that ends with number `last` to out, cleared first; false when the page is not here. */
bool text_page_cache_get(struct text_page_cache *c, uint32_t last, uint32_t number, struct buf *out);

/** @param page takes it. */
void text_page_cache_put(struct text_page_cache *c, struct text_page *page);

#endif
