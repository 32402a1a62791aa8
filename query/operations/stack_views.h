/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_OPERATIONS_STACK_VIEWS_H
#define CAIRN_QUERY_OPERATIONS_STACK_VIEWS_H

/** @file What the operations on stacks have in common: their tables and call trees. Private to query/. */
#include "query/engine/loaded_sides.h"
#include "query/engine/top.h"
#include "query/formats/flame.h"

/** Keep the rows of target functions; all rows if none are chosen. */
enum status filter_top_rows(struct query_call *q, const struct function_targets *targets, struct top *top) MUST_CHECK;

/** @return borrows all of its parameters. */
struct flame make_flame(const struct query_call *q, const struct loaded_sides *l, const struct tree *tree,
                        const struct tree_focus *focus);

#endif
