/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_DWARF_SPANS_H
#define CAIRN_SYMBOLIZER_DWARF_SPANS_H

/**
 * @file
 * From the scopes and rows of a unit to spans, and from these into a table.
 *
 * The frame of the innermost scope gets the line row's file and line; each
 * scope around it gets the place of the call that was inlined into it.
 */
#include "dwarf/code.h"
#include "symbolizer/extract_internal.h"
#include "symbolizer/symbol_table_builder.h"

/** Addresses of one scope and one row. */
struct dwarf_span {
        uint64_t start, end;
        uint32_t scope; /* DWARF_NO_SCOPE: lines only */
        uint32_t file;  /* UINT32_MAX unknown */
        uint32_t line;
};

/** One unit on its way into the table; reused. */
struct dwarf_part {
        struct dwarf_code code;
        struct dwarf_span *spans; /* owned; ascending, apart */
        size_t span_count, span_capacity;
};

void dwarf_part_init(struct dwarf_part *p);
void dwarf_part_deinit(struct dwarf_part *p);

/** Make the spans of p->code. @param scratch reused from part to part. */
enum status dwarf_part_flatten(struct dwarf_part *p, struct interval_list *scratch) MUST_CHECK;

/** Numbers of the builder for what a unit names; reused from part to part. */
struct dwarf_merge {
        uint32_t *functions, *files; /* owned; by the unit's numbers */
        size_t function_capacity, file_capacity;
};
void dwarf_merge_deinit(struct dwarf_merge *m);

/**
 * A plain name as tables have it, behind the function it stands in.
 * @param text unused or deinitialized; owns the result where one had to be made.  @return "" without any.
 */
const char *dwarf_plain_name(const struct dwarf_name *n, struct buf *text);

/** Add the spans to the builder; failures stay in the builder. */
void dwarf_part_merge(const struct dwarf_part *p, struct dwarf_merge *m, struct symbol_table_builder *b);

#endif
