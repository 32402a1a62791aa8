/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_UNWINDING_UNWINDER_H
#define CAIRN_SAMPLING_UNWINDING_UNWINDER_H

/**
 * @file
 * The unwind tables in the kernel, and the processes that use them.
 *
 * An object's table is built when a process that maps it is first seen, and
 * shared by all processes. Files with equal tables share one, such as copies
 * of a library in containers. Sharing by build-id would be unsafe, since a file
 * may claim any: one program could corrupt the stacks of every user of the C
 * library. A process is written to the kernel when all its tables are ready;
 * until then its samples are deferred (sampling/deferred_samples.h).
 * Unused tables are evicted when space runs out
 * (sampling/unwinding/unwind_eviction.h).
 *
 * Threads: one thread at a time.
 */
#include "sampling/containers/cgroup.h"
#include "sampling/objects/object.h"
#include "sampling/objects/proc_maps.h"
#include "sampling/runtimes/runtime_symbols.h"
#include "sampling/unwinding/unwind_builder.h"
#include "sampling/unwinding/unwind_maps.h"
#include "sampling/unwinding/unwind_quota.h"
#include "unwind-tables/unwind_step.h"

struct unwinder_table;

struct unwinder_stats {
        uint64_t tables_ready;      /* in the kernel now; the others are totals */
        uint64_t tables_none;       /* the file has no CFI, or could not be read */
        uint64_t tables_failed;     /* the file crashed its worker, or exceeded its limits */
        uint64_t tables_no_worker;  /* no worker could be started; tried again */
        uint64_t tables_refused;    /* no space */
        uint64_t tables_over_quota; /* over their owner's quota (sampling/unwinding/unwind_quota.h) */
        uint64_t tables_evicted;
        uint64_t rules;                /* in the kernel now */
        uint64_t rules_refused;        /* rules of tables without space */
        uint64_t rules_over_quota;     /* over their owner's quota */
        uint64_t processes_refused;    /* no space for their mappings */
        uint64_t processes_over_quota; /* over their owner's quota */
};

struct unwinder {
        struct unwind_maps maps;
        struct unwind_builder *builder;
        struct unwind_rules rules;
        struct unwind_quota quota;
        struct unwinder_table *tables; /* owned; table n is at index n - 1 */
        size_t table_count, table_capacity;
        struct id_table *by_object;  /* owned; by object serial */
        struct id_table *by_content; /* owned; by digest of the table */
        size_t free_from;            /* no table before it is free */
        uint32_t last_generation;
        uint64_t clock; /* logical time of use, for LRU eviction */
        uint64_t tables_waiting;
        struct unwinder_stats stats;
};

/** State of a process in the kernel. Zeroed: not in the kernel. */
struct unwinder_process {
        struct extent run;
        uint32_t *tables; /* owned; the tables it uses */
        size_t table_count;
        struct unwind_mapping *mappings; /* owned; as in the kernel */
        uint32_t *numbers;               /* owned; each mapping's table number; 0: none */
        uint32_t mapping_count;
        uint64_t executable_pages; /* as last reported by the kernel; 0: not yet */
        bool waits;                /* it is not in the kernel yet, because a table is being built */
        bool has_owner;
        uint32_t owner;                 /* of its mappings, for the quota */
        struct python_symbols python;   /* addresses in the process; runtime 0: no interpreter is known */
        uint32_t python_number;         /* of its entry in the kernel: unwind_maps_add_python(); 0: none */
        struct hotspot_symbols hotspot; /* addresses in the process; structs 0: none is known */
        uint32_t hotspot_number;        /* of its entry in the kernel: unwind_maps_add_hotspot(); 0: none */
        struct context_symbols context; /* addresses in the process; is_defined 0: none is known */
        struct go_symbols go;           /* likewise, of the first file with Go */
        uint32_t context_number;        /* of its entry in the kernel: unwind_maps_add_context(); 0: none */
        uint32_t v8;                    /* V8 that it maps: unwind_maps_add_v8(); 0: none is known */
        uint32_t v8_number;             /* the same, if its frames are to be read */
};

/**
 * @param fds      NULL: for copies of stacks only.
 * @param fork_server  of the workers that build tables, borrowed; NULL: none.
 * @param row_bytes  limit for the rows of all tables.
 */
enum status unwinder_init(struct unwinder *u, const struct unwind_map_fds *fds, struct fork_server *fork_server,
                          uint64_t row_bytes, struct error *err) MUST_CHECK;
void unwinder_deinit(struct unwinder *u);

/**
 * Write the mappings of a process to the kernel. Failures are counted: its stacks are then
 * walked by frame pointers.
 * @param proc_fd directory /proc/PID of the process; -1 when it exited: no table is built then.
 * @param container that the process runs in; "": none.
 * @param objects one per mapping, NULL when unknown.
 */
void unwinder_set_process(struct unwinder *u, const struct sample_process *id, int proc_fd, const char *container,
                          const struct proc_maps *maps, const struct object *const *objects,
                          struct unwinder_process *p);
void unwinder_remove_process(struct unwinder *u, const struct sample_process *id, struct unwinder_process *p);

/** Request the tables of a process that will be sampled. Parameters as for unwinder_set_process(). */
void unwinder_prepare(struct unwinder *u, int proc_fd, const char *container, const struct proc_maps *maps,
                      const struct object *const *objects);

/** Forget object serials. The processes must have been removed before. Tables stay. */
void unwinder_forget_objects(struct unwinder *u);

/** Whether pc is in a mapping of the process. */
bool unwinder_has_mapping(const struct unwinder_process *p, uint64_t pc);

/**
 * The rule for a frame; UNWIND_CFA_NONE when there is none. Returns how the stack ends if the
 * rule fails, as in the BPF program.
 */
enum sample_end unwinder_find_rule(const struct unwinder *u, const struct unwinder_process *p,
                                   const struct unwind_regs *regs, struct unwind_rule *ret);

/** A descriptor that is readable when unwinder_poll() has work. */
int unwinder_fd(const struct unwinder *u);

/** Load finished tables; true when waiting processes should be updated. */
bool unwinder_poll(struct unwinder *u);

/** Reuse released space. Call after a grace period: every BPF program that ran before the last change has ended. */
void unwinder_reclaim(struct unwinder *u);

#endif
