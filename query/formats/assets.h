/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_FORMATS_ASSETS_H
#define CAIRN_QUERY_FORMATS_ASSETS_H

/**
 * @file
 * The pages of web/ and their assets. The page of the service loads assets, whose names change with their content; the
 * page with one flame graph embeds its scripts and style, because it is also opened from disk.
 *
 * Threads: any.
 */
#include "common/memory/buf.h"

/** A script or style of the page at "/"; all texts are constants. */
struct page_asset {
        const char *name; /* "service.0123456789abcdef.js", with a prefix of the content's SHA-256 */
        const char *content_type;
        const char *text;
        size_t n;
};

/** @return NULL when not found. */
const struct page_asset *page_find_asset(const char *name);

/** The page served at "/", which loads "assets/NAME". Its Content-Security-Policy is PAGE_INDEX_POLICY. */
void page_put_index(struct buf *ret);
#define PAGE_INDEX_POLICY                                                                                              \
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "          \
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'"

/** A page that shows one flame graph; json as in docs/formats/query-api.md, "Flame graph". */
void page_put_flame(struct buf *ret, const char *json, size_t n);

/** The Content-Security-Policy in that page's meta element, with the hashes of its scripts and style. A constant. */
const char *page_flame_policy(void);

#endif
