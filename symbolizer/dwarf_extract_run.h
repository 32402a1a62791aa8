/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_DWARF_EXTRACT_RUN_H
#define CAIRN_SYMBOLIZER_DWARF_EXTRACT_RUN_H

/**
 * @file
 * One run over units of a file, all or some of them: read, flattened and merged.
 *
 * Threads: a run belongs to one thread, and starts others that have ended when
 * it returns.
 */
#include <pthread.h>

#include "symbolizer/dwarf_extract.h"
#include "symbolizer/dwarf_spans.h"

struct dwarf_slot;

struct dwarf_extraction {
        struct dwarf_object object;
        struct dwarf_regions regions;
        struct symbol_table_builder *builder; /* of who merges */
        struct dwarf_merge merge;             /* of who merges */
        struct dwarf_summary summary;         /* of who merges */
        uint64_t function_count;
        uint64_t *tables; /* borrowed; by unit: the offset of its line table, UINT64_MAX none */
        const struct wanted *wanted; /* borrowed; NULL: everything */
        const size_t *units; /* borrowed; those to be read, NULL all */
        size_t unit_count;   /* to be read */
        uint64_t unit_bytes; /* in them */

        pthread_mutex_t lock;
        pthread_cond_t changed;
        struct dwarf_slot *slots;  /* owned */
        struct dwarf_slot **turns; /* owned; of the i-th unit that is read at i % slot_count, from next_merge to next_unit */
        struct dwarf_slot **free;  /* owned; a stack */
        size_t slot_count, free_count, thread_count;
        size_t next_unit, next_merge;
        uint64_t waiting_bytes; /* in the units between these two */
        bool is_merging;
        enum status failed;
};

/**
 * Add what the units give to x->builder, and count it in x->summary and x->function_count. object, regions,
 * builder, tables, wanted, units and their numbers are set by the caller.
 * @return ST_TOO_BIG, ST_NO_MEMORY.
 */
enum status dwarf_extraction_run(struct dwarf_extraction *x, struct error *err) MUST_CHECK;

/** Free what a run left, and take its counts back; the builder keeps what it has. */
void dwarf_extraction_forget(struct dwarf_extraction *x);

#endif
