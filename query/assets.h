/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_ASSETS_H
#define CAIRN_QUERY_ASSETS_H

/** @file The pages of web/, each with its script and style inlined. */
#include "common/buf.h"

/** The page served at "/". */
void page_put_index(struct buf *ret);

/** A page that shows one flame graph; json is the text of docs/formats/query-api.md, "Flame graph". */
void page_put_flame(struct buf *ret, const char *json, size_t n);

#endif
