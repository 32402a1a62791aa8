/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_ENGINE_CODE_ALIGNMENT_H
#define CAIRN_QUERY_ENGINE_CODE_ALIGNMENT_H

/**
 * @file
 * The instructions of two builds that correspond to each other. Functions are partners by name; their instructions are
 * aligned as lines of a text are (line_alignment.h), of which each is an instruction without addresses: a call has the
 * name of what it calls, and other addresses are "*". Code that only moved is therefore equal.
 *
 * Threads: no shared state.
 */
#include "common/memory/memory_budget.h"
#include "common/threads/work_meter.h"
#include "disassembler/disassembly.h"

#define NO_CODE UINT32_MAX /* no range or instruction of that side */

/** The code of one side; all borrowed. */
struct code_side {
        const struct disassembly *code;
        const char *const *range_names;  /* of the function of each range, "" unknown */
        const char *const *target_names; /* of the function that each instruction leads to, NULL: none */
};

/** Instructions beside each other, by their indexes; one of them may be NO_CODE. */
struct code_row {
        uint32_t before, after;
        bool is_changed; /* both are there, and differ by more than addresses */
};

/** Ranges beside each other, by their indexes, and their rows. One of the ranges may be NO_CODE. */
struct code_pair {
        uint32_t before, after;
        uint32_t first, count;
};

struct code_alignment {
        struct code_pair *pairs; /* owned: in the order of the ranges after, then those only before */
        struct code_row *rows;   /* owned */
        uint32_t pair_count, row_count;
        struct memory_reservation memory; /* of both */
};
void code_alignment_deinit(struct code_alignment *a); /* also fine on a zeroed one */

/**
 * Work and memory grow with the number of instructions, whatever they are.
 * @param sides  before and after.
 * @return ST_OK; ST_BUSY or ST_TOO_BIG of the memory of the query; ST_NO_MEMORY; the status of the meter.
 */
enum status code_alignment_make(const struct code_side sides[2], struct work_meter *meter, struct code_alignment *ret,
                                struct error *err) MUST_CHECK;

/** Append an instruction without its addresses. @param target_name  NULL: none. */
void code_put_without_addresses(const struct code_instruction *in, const char *target_name, struct buf *ret);

#endif
