/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOL_INDEX_TEXT_PAGE_H
#define CAIRN_SYMBOL_INDEX_TEXT_PAGE_H

/**
 * @file
 * Text page of the index (docs/formats/index.md, "Text page"): a few hundred sorted texts, front-coded and compressed
 * with zstd, in a value of up to half an LMDB page.
 *
 * A name takes 11 bytes front-coded, and half of that compressed; but reading one name decompresses its page, about 10
 * microseconds. Therefore pages are small, and unpacked pages are cached.
 *
 * Threads: a packer and an unpacker belong to one thread; unpacked pages are
 * read by any number.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/memory/buf.h"
#include "common/error.h"
#include "common/limits.h"

#define TEXT_PAGE_BYTES 2016 /* two such values fill a page of 4096 bytes */
#define TEXT_PAGE_TEXTS_MAX 4096
#define TEXT_PAGE_CHARS_MAX 65536 /* total of a page; one text may exceed it slightly */

struct text_item {
        const char *text; /* borrowed for the call */
        uint32_t size;    /* 1 to LIMIT_NAME_BYTES, without NUL */
};

struct text_packer;
enum status text_packer_create(struct text_packer **ret, struct error *err) MUST_CHECK;
void text_packer_destroy(struct text_packer *p);

/**
 * Write a page with the first of some sorted texts, as many as fit.
 * @param last_before number before that of the first text. @param out cleared first. @param used_ret their number.
 */
enum status text_page_pack(struct text_packer *p, uint32_t last_before, const struct text_item *items, size_t count,
                           struct buf *out, size_t *used_ret, struct error *err) MUST_CHECK;

/** An unpacked page. */
struct text_page {
        uint32_t last, count; /* numbers last - count + 1 to last */
        size_t size;          /* bytes of the whole struct */
        const char *chars;
        uint32_t ends[]; /* end of each text in chars */
};

struct text_unpacker;
enum status text_unpacker_create(struct text_unpacker **ret, struct error *err) MUST_CHECK;
void text_unpacker_destroy(struct text_unpacker *u);

/** @param last the page's key. @param ret owned, free(). ST_BAD_DATA for data that no packer wrote. */
enum status text_page_unpack(struct text_unpacker *u, uint32_t last, const void *value, size_t size,
                             struct text_page **ret, struct error *err) MUST_CHECK;

/** Text `index` of a page, from 0; not NUL-terminated. */
static inline const char *text_page_get(const struct text_page *p, uint32_t index, uint32_t *size_ret)
{
        uint32_t begin = index ? p->ends[index - 1] : 0;

        *size_ret = p->ends[index] - begin;
        return p->chars + begin;
}

/** Index of a text in a page; UINT32_MAX if it is not in it. */
uint32_t text_page_find(const struct text_page *p, const char *text, uint32_t size);

/** Order of texts in a page: bytewise, a prefix before longer texts. Result like memcmp(). */
int text_compare(const char *a, uint32_t a_size, const char *b, uint32_t b_size);

/*
 * Cache of unpacked pages by their last numbers, of bounded size. A committed page never changes, so one cache serves
 * all views of an index; uncommitted pages must not be added. Threads: any.
 */
#define TEXT_PAGE_CACHE_SLOTS 2048
#define TEXT_PAGE_CACHE_PAGE_BYTES KiB(32) /* larger pages are not cached: 64 MiB at most, usually a quarter of it */

struct text_page_cache;
struct text_page_cache *text_page_cache_create(void);
void text_page_cache_destroy(struct text_page_cache *c);

/** Store text `number` of the page that ends with number `last` in out, which is cleared first; false on a miss. */
bool text_page_cache_get(struct text_page_cache *c, uint32_t last, uint32_t number, struct buf *out);

/** Takes page. */
void text_page_cache_put(struct text_page_cache *c, struct text_page *page);

#endif
