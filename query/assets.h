/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_ASSETS_H
#define CAIRN_QUERY_ASSETS_H

/**
 * @file
 * The pages of web/ and what they load. The page of the service loads assets, whose names change with their content;
 * the page with one flame graph holds its scripts and style itself, as it is opened from a disk too.
 *
 * Threads: any.
 */
#include "common/buf.h"

/** A script or style of the page at "/"; all texts are constants. */
struct page_asset {
        const char *name; /* "service.0123456789abcdef.js": with the start of the SHA-256 of the content */
        const char *content_type;
        const char *text;
        size_t n;
};

/** @return NULL: there is none of this name. */
const struct page_asset *page_find_asset(const char *name);

/** The page served at "/": it loads "assets/NAME". Its Content-Security-Policy is PAGE_INDEX_POLICY. */
void page_put_index(struct buf *ret);
#define PAGE_INDEX_POLICY                                                                                              \
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "          \
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'"

/** A page that shows one flame graph; json is the text of docs/formats/query-api.md, "Flame graph". */
void page_put_flame(struct buf *ret, const char *json, size_t n);

/** The Content-Security-Policy that this page has in a meta element: the hashes of its scripts and style. A constant.
 */
const char *page_flame_policy(void);

#endif
