/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_STRINGS_INTERNAL_H
#define CAIRN_SYMBOLIZER_STRINGS_INTERNAL_H

/* What looking texts up and interning them have in common. */
#include "symbolizer/strings.h"
#include "symbolizer/text_ids.h"
#include "symbolizer/text_page.h"

/* The page of a number, and the last number in it. ST_BAD_DATA when there is none. */
enum status strings_page_of(const struct strings *s, MDB_txn *txn, uint32_t number, uint32_t *last_ret,
                            MDB_val *value_ret, struct error *err) MUST_CHECK;

#endif
