/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_PROCESS_H
#define CAIRN_AGENT_PROCESS_H

/**
 * @file
 * The processes that were sampled: their name, container and mappings, and
 * what an address of theirs means on every host.
 *
 * Mappings are read when a process is first noticed, because many do not live
 * until the interval ends; again when the kernel tells that its executable
 * mappings grew or shrank (each of the first few times, later twice a second at
 * most); and, once a drain at most, when an address lies in none of them or
 * they are older than half a minute. A process is one life: a reused pid or an exec is another one.
 * One that was not sampled for some intervals is forgotten, and so are the
 * longest unused ones past LIMIT_AGENT_PROCESSES.
 *
 * Processes that the selection leaves out are told to the sampler at first
 * sight; their mappings are not read.
 *
 * Threads: one thread at a time.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/cgroup.h"
#include "agent/jit_names.h"
#include "agent/object_cache.h"
#include "agent/proc_maps.h"
#include "agent/selection.h"
#include "agent/unwinder.h"
#include "bpf/sample.h"

struct process {
        struct sample_process id;
        char name[SAMPLE_COMM_SIZE]; /* of the thread group's leader */
        struct cgroup_names cgroup;
        char *executable;            /* its path in the process's own root, NULL unknown; owned */
        bool is_excluded;
        struct proc_maps maps;
        const struct object **objects; /* one for each mapping, NULL when it has none; owned array */
        bool has_maps;                 /* they could be read at least once */
        struct jit_names jit;
        int64_t read_at_ns;            /* monotonic */
        int64_t read_cost_ns;          /* CPU time that took */
        unsigned notice_count;
        unsigned vain_reads;           /* in a row, for code that is in no mapping */
        bool is_stale;                 /* its mappings changed, but they were read just before */
        uint64_t read_in, jit_read_in, used_in; /* numbers of drains */
        struct unwinder_process unwind;
};

struct process_table {
        struct id_table by_id;
        struct process **items; /* owned */
        size_t count;
        uint64_t drain;         /* number of the last drain that began */
        struct object_cache objects;
        uint64_t unreadable;    /* processes that ended before their mappings were read */
        struct unwinder *unwinder; /* borrowed; told of all processes. NULL none */
        const struct selection *selection; /* borrowed; NULL: nobody is left out */
        const struct sample_process *lives; /* borrowed; what else has the number of one of them is left out */
        size_t life_count;
        void (*on_excluded)(void *ctx, const struct sample_process *id); /* NULL none */
        void *ctx;
        struct code_budget jit_budget; /* of all processes' names of code made at run time */
        struct code_names vdso; /* by link-time address */
        bool vdso_tried;
        uint64_t jit_left;      /* bytes of their files that may still be read in this drain */
        uint64_t jit_left_out;  /* pieces of code whose name found no room */
        uint64_t excluded;      /* processes that were left out */
};

void process_table_init(struct process_table *t);
void process_table_deinit(struct process_table *t);

/** It was sampled although it is left out: tell the sampler once more, which had forgotten it. */
void process_table_exclude(struct process_table *t, const struct process *p);

/** A process is new or has new mappings: read what will be gone when it ends. */
void process_table_notice(struct process_table *t, const struct sample_notice *notice);

/**
 * Is there a mapping of code at pc, which the process ran at? When there is none, its mappings are read again, unless
 * that was done just before or is in vain again and again: code that is made at run time needs no other number of pages.
 */
bool process_table_covers(struct process_table *t, struct process *p, uint64_t pc);

/**
 * The process of a sample; made and read now when it was never noticed.
 * @param comm  name to use when the process is gone.
 * @return borrowed until process_table_end_drain(); NULL without memory.
 */
struct process *process_table_get(struct process_table *t, const struct sample_process *id, const char *comm);

/** Unwind tables are done: tell the unwinder once more of the processes that wait for one. */
void process_table_unwind_again(struct process_table *t);

/** The samples of an interval are about to be looked at. */
void process_table_begin_drain(struct process_table *t);

/** Forget who was not sampled of late, and objects when there are too many. */
void process_table_end_drain(struct process_table *t);

enum place_kind {
        PLACE_OBJECT,      /* address is an ELF virtual address of mapping's object */
        PLACE_FILE_OFFSET, /* address is an offset in mapping's file, whose segments are unknown */
        PLACE_NAMED,       /* jit tells all: code made at run time */
        PLACE_ANONYMOUS,   /* code that no file and no perf map knows */
        PLACE_NOWHERE,     /* in no executable mapping: no code, so no frame */
        PLACE_GONE,        /* the process ended before its mappings could be read */
};

struct place {
        enum place_kind kind;
        uint64_t address;
        const struct proc_mapping *mapping; /* borrowed until the process is used again */
        const struct object *object;        /* NULL unless PLACE_OBJECT */
        struct jit_place jit;               /* of PLACE_NAMED, and of a function of the vDSO; else no name; as mapping */
};

/** What addr of the process is. */
struct place process_locate(struct process_table *t, struct process *p, uint64_t addr);

#endif
