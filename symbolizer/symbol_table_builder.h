/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_SYMBOL_TABLE_BUILDER_H
#define CAIRN_SYMBOLIZER_SYMBOL_TABLE_BUILDER_H

/**
 * @file
 * Makes a symbol table: texts and functions are kept once each, chains too but
 * for those that come in lots, ranges may come in any order and may overlap.
 *
 * A failure is kept: every later call does nothing and returns the number 0,
 * and symbol_table_builder_finish() reports it.
 *
 * Threads: a builder belongs to one thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "symbolizer/symbol_table.h"

/** A set of numbers found by the hash of what they stand for. */
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
};

void symbol_table_builder_init(struct symbol_table_builder *b);
void symbol_table_builder_deinit(struct symbol_table_builder *b);

/** String offset of a text; one longer than LIMIT_NAME_BYTES is cut. */
uint32_t symbol_table_builder_string(struct symbol_table_builder *b, const char *text);

/** Number of the function with these names; either may be "". */
uint32_t symbol_table_builder_function(struct symbol_table_builder *b, const char *linkage_name, const char *name);

/** Number of the chain of these frames, innermost first; count is at least 1. */
uint32_t symbol_table_builder_chain(struct symbol_table_builder *b, const struct symbol_table_frame *frames,
                                    size_t count);

/** The same of a text whose hash is known. @param size at most LIMIT_NAME_BYTES, and no NUL in it. */
uint32_t symbol_table_builder_text(struct symbol_table_builder *b, const char *text, size_t size, uint64_t hash);
uint64_t symbol_text_hash(const char *text, size_t size);
/** Begin to fetch what the above will look at. */
void symbol_table_builder_prefetch_text(const struct symbol_table_builder *b, uint64_t hash);

/** Number of the function with these string offsets; either may be 0. */
uint32_t symbol_table_builder_function_of(struct symbol_table_builder *b, uint32_t linkage_name, uint32_t name);

/**
 * Add chains as they are, equal to others or not, in their order.
 * @param chains first_frame is an index of frames.  @return number of the first.
 */
uint32_t symbol_table_builder_add_chains(struct symbol_table_builder *b, const struct symbol_chain *chains, size_t count,
                                         const struct symbol_table_frame *frames, size_t frame_count);

/** Add [start, end), or make the last range longer when this one continues it. An empty one is dropped. */
void symbol_table_builder_range(struct symbol_table_builder *b, uint64_t start, uint64_t end, uint32_t chain);

/** Is the outermost function of the chain unknown? */
bool symbol_table_builder_is_nameless(const struct symbol_table_builder *b, uint32_t chain);

/**
 * Sort the ranges that were added so far and take overlaps out: a range with a
 * function wins over one with nothing but a line (two units may share a line
 * table), else the earlier chain.
 */
void symbol_table_builder_settle(struct symbol_table_builder *b);

/**
 * Going through the ranges of a settled table while new ones take their place,
 * without a second array. Take the old ones in order with
 * symbol_table_rewrite_next(), add new ones in order, end; the builder's own
 * ranges are not to be looked at in between.
 */
struct symbol_table_rewrite {
        struct symbol_table_builder *b;
        size_t read, write; /* [0, write) is done, [read, range_count) is still to do */
};
bool symbol_table_rewrite_next(struct symbol_table_rewrite *w, struct symbol_range *ret);
void symbol_table_rewrite_add(struct symbol_table_rewrite *w, uint64_t start, uint64_t end, uint32_t chain);
void symbol_table_rewrite_end(struct symbol_table_rewrite *w);

/** Settle and hand the arrays over; build-id, quality and segments stay zero. @param ret owned. */
enum status symbol_table_builder_finish(struct symbol_table_builder *b, struct symbol_table *ret,
                                        struct error *err) MUST_CHECK;

#endif
