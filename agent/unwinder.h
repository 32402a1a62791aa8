/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_UNWINDER_H
#define CAIRN_AGENT_UNWINDER_H

/**
 * @file
 * Which unwind tables are in the kernel, and for which processes.
 *
 * An object's table is made when a process that has it is first met, and kept
 * once for all processes. Files whose tables came out equal share one, wherever
 * they lie: a container's copy of a library, say. A build-id counts for
 * nothing here, as any file may claim any: sharing by it would let one program
 * spoil the stacks of all that use the C library. The kernel is told of a process when all its tables are there;
 * until then its samples come late (agent/late.h). Tables that no process uses
 * make room for others when there is none left.
 *
 * Threads: one thread at a time.
 */
#include "agent/cgroup.h"
#include "agent/object.h"
#include "agent/proc_maps.h"
#include "agent/unwind_builder.h"
#include "agent/unwind_maps.h"
#include "agent/unwind_quota.h"
#include "unwind-tables/unwind_step.h"

struct unwinder_table;

struct unwinder_stats {
        uint64_t tables_ready;      /* in the kernel now; the others are totals */
        uint64_t tables_none;       /* the file has no CFI, or could not be read */
        uint64_t tables_refused;    /* no room */
        uint64_t tables_over_quota; /* no room in their owner's part (agent/unwind_quota.h) */
        uint64_t tables_evicted;
        uint64_t rules;             /* in the kernel now */
        uint64_t rules_refused;     /* tables' rules that found no room */
        uint64_t rules_over_quota;  /* those in their owner's part */
        uint64_t processes_refused; /* their mappings found no room */
        uint64_t processes_over_quota; /* those in their owner's part */
};

struct unwinder {
        struct unwind_maps maps;
        struct unwind_builder *builder;
        struct unwind_rules rules;
        struct unwind_quota quota;
        struct unwinder_table *tables; /* owned; number n has place n - 1 */
        size_t table_count, table_capacity;
        struct id_table *by_object;    /* owned; of objects' serials */
        struct id_table *by_content;   /* owned; of digests of tables */
        size_t free_from;              /* no table before it is free */
        uint32_t last_generation;
        uint64_t clock;                /* counts uses, for what was used last */
        uint64_t tables_waiting;
        struct unwinder_stats stats;
};

/** What a process has in the kernel. Zeroed: nothing. */
struct unwinder_process {
        struct run_of_numbers run;
        uint32_t *tables; /* owned; those it uses */
        size_t table_count;
        struct unwind_mapping *mappings; /* owned; as the kernel has them */
        uint32_t *numbers;               /* owned; the unwinder's number of each mapping's table, 0 none */
        uint32_t mapping_count;
        uint64_t executable_pages; /* as the kernel told of it last; 0 not told yet */
        bool waits;                /* for a table that is being made; the kernel is told then */
        bool has_owner;
        uint32_t owner;            /* of its mappings, for the quota */
};

/**
 * @param fds      NULL: for copies of stacks alone.
 * @param nursery  of the workers that make tables, borrowed; NULL none.
 * @param row_bytes  bound on the rows of all tables.
 */
enum status unwinder_init(struct unwinder *u, const struct unwind_map_fds *fds, struct nursery *nursery, uint64_t row_bytes,
                          struct error *err) MUST_CHECK;
void unwinder_deinit(struct unwinder *u);

/**
 * Tell the kernel of a process's mappings. Failures are counted: its stacks are then walked by frame pointers.
 * @param proc_fd directory /proc/PID of the process; -1 when it ended: no table is made then.
 * @param container that the process is in, "" none.
 * @param objects one for each mapping, NULL when it has none.
 */
void unwinder_process(struct unwinder *u, const struct sample_process *id, int proc_fd, const char *container,
                      const struct proc_maps *maps, const struct object *const *objects, struct unwinder_process *p);
void unwinder_forget(struct unwinder *u, const struct sample_process *id, struct unwinder_process *p);

/** Objects are forgotten, and their processes were before: serials mean nothing any more. Tables stay. */
void unwinder_forget_objects(struct unwinder *u);

/** Is pc in one of its mappings? */
bool unwinder_covers(const struct unwinder_process *p, uint64_t pc);

/** The rule for a frame, to be followed; one with UNWIND_CFA_NONE when there is none, and why, as in the BPF program. */
enum sample_end unwinder_rule(const struct unwinder *u, const struct unwinder_process *p, const struct unwind_regs *regs,
                              struct unwind_rule *ret);

/** A descriptor that is readable when unwinder_poll() has something to do. */
int unwinder_fd(const struct unwinder *u);

/** Take the tables that are done; true when processes that wait should be told of again. */
bool unwinder_poll(struct unwinder *u);

/** Every program that ran before the call has ended. */
void unwinder_settle(struct unwinder *u);

#endif
