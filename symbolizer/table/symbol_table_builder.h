/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_TABLE_SYMBOL_TABLE_BUILDER_H
#define CAIRN_SYMBOLIZER_TABLE_SYMBOL_TABLE_BUILDER_H

/**
 * @file
 * Builder of symbol tables. Texts and functions are interned; chains are too,
 * except for those added in bulk; ranges may be added in any order and may
 * overlap.
 *
 * The first failure is kept: every later call does nothing and returns the
 * number 0, and symbol_table_builder_finish() reports it.
 *
 * Threads: a builder belongs to one thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/memory/buf.h"
#include "symbol-index/symbol_table.h"

/** Hash table of numbers; the caller compares the elements. Hot: its slots are prefetched and in huge pages. */
struct intern {
        uint64_t *slots; /* the hash's lower half, then number + 1; 0 is free */
        size_t slot_count, count;
};

struct symbol_table_builder {
        enum status failed;
        struct buf strings;
        struct intern string_set, function_set, chain_set;
        struct symbol_function *functions;
        size_t function_capacity;
        struct symbol_chain *chains;
        size_t chain_count, chain_capacity;
        struct symbol_table_frame *frames;
        size_t frame_count, frame_capacity;
        struct symbol_range *ranges;
        size_t range_count, range_capacity;
        bool has_positions; /* set by the caller: frames have columns; their lines are numbers of positions */
        struct symbol_position *positions;
        size_t position_count, position_capacity;
};

void symbol_table_builder_init(struct symbol_table_builder *b);
void symbol_table_builder_deinit(struct symbol_table_builder *b);

/** String offset of a text; one longer than LIMIT_NAME_BYTES is cut. */
uint32_t symbol_table_builder_add_string(struct symbol_table_builder *b, const char *text);

/** Number of the function with these names and no place of declaration; either may be "". */
uint32_t symbol_table_builder_add_function(struct symbol_table_builder *b, const char *linkage_name, const char *name);

/** Number of the chain of these frames, innermost first; count is at least 1. */
uint32_t symbol_table_builder_add_chain(struct symbol_table_builder *b, const struct symbol_table_frame *frames,
                                        size_t count);

/** As symbol_table_builder_add_string(), with a known hash. @param size at most LIMIT_NAME_BYTES; without a NUL. */
uint32_t symbol_table_builder_add_text(struct symbol_table_builder *b, const char *text, size_t size, uint64_t hash);
uint64_t hash_symbol_text(const char *text, size_t size);
/** Prefetch the slot that symbol_table_builder_add_text() will read. */
void symbol_table_builder_prefetch_text(const struct symbol_table_builder *b, uint64_t hash);

/** Number of the function with these string offsets and line; any may be 0. */
uint32_t symbol_table_builder_intern_function(struct symbol_table_builder *b, const struct symbol_function *f);

/**
 * Append chains without interning.
 * @param chains first_frame is an index of frames.  @return number of the first.
 */
uint32_t symbol_table_builder_add_chains(struct symbol_table_builder *b, const struct symbol_chain *chains,
                                         size_t count, const struct symbol_table_frame *frames, size_t frame_count);

/** The line of a frame from a source without columns: the number of its position if the table has positions. */
uint32_t symbol_table_builder_number_line(struct symbol_table_builder *b, uint32_t line);

/** Append count positions for the caller to fill in. @return number of the first; 0 is the unknown one. */
uint32_t symbol_table_builder_reserve_positions(struct symbol_table_builder *b, size_t count);

/** Add [start, end), or extend the last range if this one continues it. An empty range is dropped. */
void symbol_table_builder_add_range(struct symbol_table_builder *b, uint64_t start, uint64_t end, uint32_t chain);

/** True when the outermost function of the chain is unknown. */
bool symbol_table_builder_is_nameless(const struct symbol_table_builder *b, uint32_t chain);

/**
 * Sort the ranges added so far and resolve overlaps: a range with a file (a
 * line row) wins over one without, then one with a function over one with a
 * line only (two units may share a line table), then the earlier chain.
 */
void symbol_table_builder_settle(struct symbol_table_builder *b);
/** Whether a range with this chain gives way only to an earlier one that also has a line row and a function. */
bool symbol_table_builder_has_row_and_name(const struct symbol_table_builder *b, uint32_t chain);

/**
 * In-place rewriting of the ranges of a settled builder. Get the old ranges in
 * order with symbol_table_rewrite_next(), add the new ones in order, then end;
 * b->ranges must not be read in between.
 */
struct symbol_table_rewrite {
        struct symbol_table_builder *b;
        size_t read, write; /* [0, write) is new, [read, range_count) is still to be read */
};
bool symbol_table_rewrite_next(struct symbol_table_rewrite *w, struct symbol_range *ret);
void symbol_table_rewrite_add(struct symbol_table_rewrite *w, uint64_t start, uint64_t end, uint32_t chain);
void symbol_table_rewrite_end(struct symbol_table_rewrite *w);

/** Settle and move the arrays to ret; build-id, quality and segments stay zero. @param ret owned. */
enum status symbol_table_builder_finish(struct symbol_table_builder *b, struct symbol_table *ret,
                                        struct error *err) MUST_CHECK;

#endif
