/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_CSV_H
#define CAIRN_QUERY_CSV_H

/** @file CSV answers. Lines end with CR LF. Private to query/. Source: RFC 4180. */
#include "common/buf.h"

/** Append a text, in quotes where it needs them, with controls escaped as for a terminal, and what ends the field. */
void csv_put_text(struct buf *ret, const char *text, char end);

#endif
