/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_TEXT_CSV_H
#define CAIRN_COMMON_TEXT_CSV_H

/** @file CSV answers. Lines end with CR LF. Private to query/. Source: RFC 4180. */
#include "common/memory/buf.h"

/** Append a field, quoted if necessary, with control characters escaped as for a terminal, and the separator `end`. */
void csv_put_text(struct buf *ret, const char *text, char end);

#endif
