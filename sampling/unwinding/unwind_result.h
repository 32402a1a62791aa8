/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_UNWINDING_UNWIND_RESULT_H
#define CAIRN_SAMPLING_UNWINDING_UNWIND_RESULT_H

/**
 * @file
 * Transfer format of an unwind table from the confined worker to the
 * agent: a file with the arrays of the table and of the rules it uses, and the
 * facts about the runtimes in the file. Reading
 * validates everything that the agent and the BPF program rely on, since the
 * worker parsed an untrusted file.
 *
 * Threads: any.
 */
#include "sampling/runtimes/runtime_symbols.h"
#include "unwind-tables/unwind_table.h"

/** Write at the file's current position. */
enum status unwind_result_write(int fd, const struct unwind_table *t, const struct unwind_rules *rules,
                                const struct runtime_symbols *runtimes, struct error *err) MUST_CHECK;

/** Quota of shared rules for a table. */
struct unwind_rules_part {
        uint64_t left;    /* in and out: how many may be added */
        uint64_t taken;   /* incremented: added */
        uint64_t refused; /* incremented: over the quota, or no space */
};

/**
 * Read a result of unwind_result_write() from the start.
 * @param rules  new rules are added; the table's rows refer to them.
 * @param part   quota. Rows of refused rules become UNWIND_RULE_FULL.
 * @param ret    owned, unwind_table_deinit(); untouched on failure. Without statistics.
 * @param runtimes_ret  as the file states it: not checked.
 */
enum status unwind_result_read(int fd, struct unwind_rules *rules, struct unwind_rules_part *part,
                               struct unwind_table *ret, struct runtime_symbols *runtimes_ret,
                               struct error *err) MUST_CHECK;

#endif
