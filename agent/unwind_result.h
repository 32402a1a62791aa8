/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_UNWIND_RESULT_H
#define CAIRN_AGENT_UNWIND_RESULT_H

/**
 * @file
 * An unwind table on its way from the confined worker to the agent: a file
 * with the arrays of a table and of the rules that it uses, one after the
 * other. Reading checks all that the agent and the BPF program rely on, since
 * the worker had a stranger's file.
 *
 * Threads: any.
 */
#include "unwind-tables/table.h"

/** Write at the file's current end. */
enum status unwind_result_write(int fd, const struct unwind_table *t, const struct unwind_rules *rules,
                                struct error *err) MUST_CHECK;

/** The part of the shared rules that a table takes. */
struct unwind_rules_part {
        uint64_t left;    /* in and out */
        uint64_t taken;   /* added to */
        uint64_t refused; /* added to: those that found no room */
};

/**
 * Read what unwind_result_write() wrote, from the start.
 * @param rules new rules are added; the table's rows have their numbers.
 * @param part  how many may be added, and how many were. Rows of those that found no room are UNWIND_RULE_FULL.
 * @param ret   owned, unwind_table_deinit(); untouched on failure. Without statistics.
 */
enum status unwind_result_read(int fd, struct unwind_rules *rules, struct unwind_rules_part *part, struct unwind_table *ret,
                               struct error *err) MUST_CHECK;

#endif
