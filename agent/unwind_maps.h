/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_UNWIND_MAPS_H
#define CAIRN_AGENT_UNWIND_MAPS_H

/**
 * @file
 * The BPF maps that the unwinding program reads (bpf/unwind.h), written.
 *
 * What is replaced or removed stays as it was until unwind_maps_settle(), which
 * is called when every program that ran before has ended; only then its place
 * is used again.
 *
 * Without a program the same tables lie in the agent's memory alone, for walking
 * copies of stacks.
 *
 * Threads: one thread at a time.
 */
#include "agent/runs.h"
#include "bpf/sample.h"
#include "bpf/unwind.h"
#include "unwind-tables/table.h"

/** Of a loaded program; borrowed. */
struct unwind_map_fds {
        int row_segments, pages, rules, mappings, process_runs, known;
};

struct unwind_maps {
        struct unwind_map_fds fds;
        struct runs rows, mappings;
        void *segments[UNWIND_SEGMENTS_MAX]; /* mapped; NULL not yet made */
        struct unwind_rule *rule_items;      /* mapped */
        struct unwind_mapping *mapping_items; /* mapped */
        struct unwind_bucket *buckets;       /* mapped */
        size_t rules_written;
        uint32_t segment_limit;
        uint32_t last_table;
        uint64_t page_count;
};

struct unwind_placed_page {
        uint32_t page;
        struct unwind_page_rows rows;
};

/** Where a table's rows are. */
struct unwind_placed {
        uint32_t table;              /* its number in the kernel, given once only */
        struct run_of_numbers *runs; /* owned */
        size_t run_count;
        struct unwind_placed_page *pages; /* owned; ascending */
        size_t page_count;
};

/**
 * @param fds        NULL: there is no program.
 * @param row_bytes  bound on all tables together, whole segments of 4 MiB.
 */
enum status unwind_maps_init(struct unwind_maps *m, const struct unwind_map_fds *fds, uint64_t row_bytes,
                             struct error *err) MUST_CHECK;
void unwind_maps_deinit(struct unwind_maps *m);

/** Hand over the rules that are new. */
void unwind_maps_rules(struct unwind_maps *m, const struct unwind_rules *rules);

/** @return ST_TOO_BIG when there is no room; ST_NO_MEMORY; ST_OS. @param ret owned, for unwind_maps_remove(). */
enum status unwind_maps_add(struct unwind_maps *m, const struct unwind_table *t, struct unwind_placed *ret,
                            struct error *err) MUST_CHECK;
void unwind_maps_remove(struct unwind_maps *m, struct unwind_placed *p);

/** The rule's number for an address of a table's object: UNWIND_RULE_GAP when there is none. */
uint16_t unwind_maps_rule(const struct unwind_maps *m, const struct unwind_placed *table, uint64_t address);

/**
 * The mappings of a process, in place of those it had. Nothing is done when a later life of its number is there.
 * @param count_max at most so many.
 * @param run in: where they are, count 0 nowhere; out: where they are now.
 * @return ST_TOO_BIG when there is no room: the process then has none, and its stacks are walked by frame pointers; without
 *         room for that either, it keeps those it had.
 */
enum status unwind_maps_process(struct unwind_maps *m, const struct sample_process *id, uint64_t executable_pages,
                                uint32_t generation, const struct unwind_mapping *mappings, uint32_t count, uint64_t count_max,
                                struct run_of_numbers *run, struct error *err) MUST_CHECK;
/** Have the kernel tell of a process at its next sample, though it did before. */
void unwind_maps_ask(struct unwind_maps *m, uint32_t tgid);
/** Forget a process; its next sample is told of as if it were new. */
void unwind_maps_forget(struct unwind_maps *m, const struct sample_process *id, struct run_of_numbers *run);

void unwind_maps_settle(struct unwind_maps *m);

#endif
