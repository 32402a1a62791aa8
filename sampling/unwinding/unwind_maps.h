/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_UNWINDING_UNWIND_MAPS_H
#define CAIRN_SAMPLING_UNWINDING_UNWIND_MAPS_H

/**
 * @file
 * Writes the BPF maps that the unwinding program reads (bpf/unwind.h).
 *
 * Replaced and removed entries stay intact until unwind_maps_reclaim(), which
 * is called after every program that ran before has ended; then their space is
 * reused.
 *
 * Without a BPF program the same tables are kept in the agent's memory, to
 * walk copies of stacks.
 *
 * Threads: one thread at a time.
 */
#include "bpf/hotspot_walk.h"
#include "bpf/python_walk.h"
#include "sampling/runtimes/v8_symbols.h"
#include "bpf/sample.h"
#include "bpf/unwind.h"
#include "sampling/unwinding/extent_alloc.h"
#include "unwind-tables/unwind_table.h"

/** Descriptors of the maps of a loaded program; borrowed. */
struct unwind_map_fds {
        int row_segments, pages, rules, mappings, process_runs, known, python_processes, v8_layouts, hotspot_processes,
                context_processes;
};

struct unwind_maps {
        struct unwind_map_fds fds;
        struct extent_alloc rows, mappings;
        void *segments[UNWIND_SEGMENTS_MAX];  /* mapped; NULL: not created yet */
        struct unwind_rule *rule_items;       /* mapped */
        struct unwind_mapping *mapping_items; /* mapped */
        struct unwind_bucket *buckets;        /* mapped */
        struct python_process *python_items;  /* mapped; NULL: no BPF program */
        struct v8_layout *v8_items;           /* likewise */
        struct v8_symbols *v8_builds;         /* owned; V8_LAYOUTS_MAX, as far as in use */
        uint32_t v8_count;                    /* of entries in use, from 1 */
        bool python_used[PYTHON_PROCESSES_MAX];
        struct hotspot_process *hotspot_items; /* mapped; NULL: no BPF program */
        bool hotspot_used[HOTSPOT_PROCESSES_MAX];
        struct context_process *context_items; /* mapped; NULL: no BPF program */
        bool context_used[CONTEXT_PROCESSES_MAX];
        size_t rules_written;
        uint32_t segment_limit;
        uint32_t last_table;
        uint64_t page_count;
};

struct unwind_loaded_page {
        uint32_t page;
        struct unwind_page_rows rows;
};

/** Location of a loaded table's rows. */
struct unwind_loaded_table {
        uint32_t table;         /* its number in the kernel, never reused */
        struct extent *extents; /* owned */
        size_t extent_count;
        struct unwind_loaded_page *pages; /* owned; ascending */
        size_t page_count;
};

/**
 * @param fds        NULL: no BPF program.
 * @param row_bytes  limit for all tables together, in whole segments of 4 MiB.
 */
enum status unwind_maps_init(struct unwind_maps *m, const struct unwind_map_fds *fds, uint64_t row_bytes,
                             struct error *err) MUST_CHECK;
void unwind_maps_deinit(struct unwind_maps *m);

/** Write the rules added since the last call. */
void unwind_maps_write_rules(struct unwind_maps *m, const struct unwind_rules *rules);

/** @return ST_TOO_BIG without space; ST_NO_MEMORY; ST_OS. @param ret  owned, for unwind_maps_remove_table(). */
enum status unwind_maps_add_table(struct unwind_maps *m, const struct unwind_table *t, struct unwind_loaded_table *ret,
                                  struct error *err) MUST_CHECK;
void unwind_maps_remove_table(struct unwind_maps *m, struct unwind_loaded_table *p);

/** The rule number for an address of the table's object: UNWIND_RULE_GAP when there is none. */
uint16_t unwind_maps_find_rule(const struct unwind_maps *m, const struct unwind_loaded_table *table, uint64_t address);

/** The mappings to write for a process. */
struct unwind_process_mappings {
        uint64_t executable_pages;          /* as reported by the kernel */
        uint32_t generation;                /* of the run */
        const struct unwind_mapping *items; /* borrowed */
        uint32_t count;
        uint64_t count_max; /* quota for count */
        uint32_t python;    /* from unwind_maps_add_python(); 0: none */
        uint32_t v8;        /* from unwind_maps_add_v8(); 0: none */
        uint32_t hotspot;   /* from unwind_maps_add_hotspot(); 0: none */
        uint32_t context;   /* from unwind_maps_add_context(); 0: none */
};

/**
 * Replace the mappings of a process. Does nothing when a later life with this pid is stored.
 * @param run  in: their current location, count 0: none; out: the new location.
 * @return ST_TOO_BIG without space: the process then has no mappings, and its stacks are walked
 *         by frame pointers; without space even for that, it keeps the old ones.
 */
enum status unwind_maps_set_process(struct unwind_maps *m, const struct sample_process *id,
                                    const struct unwind_process_mappings *mappings, struct extent *run,
                                    struct error *err) MUST_CHECK;
/** Make the kernel send another notice at the next sample of a process. */
void unwind_maps_request_notice(struct unwind_maps *m, uint32_t tgid);
/** Remove a process; its next sample sends a notice as if it were new. */
void unwind_maps_remove_process(struct unwind_maps *m, const struct sample_process *id, struct extent *run);

/** Whether the kernel walks Python frames. */
bool unwind_maps_have_python(const struct unwind_maps *m);

/**
 * Write where a process keeps its Python frames. Returns the entry's number, 0 without space. A removed entry may be
 * reused while a program still reads it: the frames of that sample are then not found, or are wrong in one stack of a
 * process that is ending.
 */
uint32_t unwind_maps_add_python(struct unwind_maps *m, const struct python_process *p);
/** @param number  0 is allowed. */
void unwind_maps_remove_python(struct unwind_maps *m, uint32_t number);

/** Whether the kernel recognizes frames of V8. */
bool unwind_maps_have_v8(const struct unwind_maps *m);

#define V8_UNSUPPORTED UINT32_MAX

/**
 * The number of a build of V8, which is written to the kernel, if that recognizes its frames, and stays; V8_UNSUPPORTED
 * if it cannot be read, or there are too many.
 */
uint32_t unwind_maps_add_v8(struct unwind_maps *m, const struct v8_symbols *s);

/** How to read the objects of a build, borrowed. */
const struct v8_objects *unwind_maps_get_v8(const struct unwind_maps *m, uint32_t number);

/** Whether the kernel unwinds the code of HotSpot. */
bool unwind_maps_have_hotspot(const struct unwind_maps *m);

/** Write where a process keeps its generated code. As unwind_maps_add_python(). */
uint32_t unwind_maps_add_hotspot(struct unwind_maps *m, const struct hotspot_process *p);
/** @param number  0 is allowed. */
void unwind_maps_remove_hotspot(struct unwind_maps *m, uint32_t number);

/** Whether the kernel reads the contexts of threads. */
bool unwind_maps_have_context(const struct unwind_maps *m);

/** Write where the threads of a process keep their contexts. As unwind_maps_add_python(). */
uint32_t unwind_maps_add_context(struct unwind_maps *m, const struct context_process *p);
/** @param number  0 is allowed. */
void unwind_maps_remove_context(struct unwind_maps *m, uint32_t number);

void unwind_maps_reclaim(struct unwind_maps *m);

#endif
