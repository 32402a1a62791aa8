/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CAIRN_BPF_UNWIND_H
#define CAIRN_BPF_UNWIND_H

/**
 * @file
 * Data structures through which the agent passes unwind tables and
 * process mappings to the sampling program.
 *
 * A table has a number that is never reused. Its rows (unwind-tables/unwind_row.h)
 * are in segments, inner maps of `row_segments`; row numbers count through all
 * segments. `pages` locates the rows of one page of code; they never cross the
 * end of a segment. Rules are in `rules`.
 *
 * A process has a run of entries in `mappings`: a head that identifies the
 * life of the process, then its executable mappings, ascending and disjoint. A
 * run is written before it is published and immutable afterwards.
 * `process_runs` holds the start of a process's run in one word, so it is
 * updated atomically. Numbers are reused only after every program that may
 * have read them has ended, so a program never sees a mix of old and new.
 */
#include "unwind-tables/unwind_row.h"

#define UNWIND_CHUNK_BITS 10 /* rows per value of a segment */
#define UNWIND_CHUNK_ROWS (1u << UNWIND_CHUNK_BITS)
#define UNWIND_SEGMENT_BITS 20 /* rows per segment: 4 MiB */
#define UNWIND_SEGMENT_ROWS (1u << UNWIND_SEGMENT_BITS)
#define UNWIND_SEGMENTS_MAX 64
#define UNWIND_PAGES_MAX 65536u /* 4 GiB of code */
#define UNWIND_MAPPINGS_MAX 131072u
#define UNWIND_PROCESS_MAPPINGS_MAX 8192u
#define UNWIND_PROCESSES_MAX 65536u

struct unwind_chunk {
        struct unwind_row rows[UNWIND_CHUNK_ROWS];
};

struct unwind_page_key {
        __u32 table;
        __u32 page; /* link-time address >> UNWIND_PAGE_BITS */
};

struct unwind_page_rows {
        __u32 first, count;
};

/**
 * Per-CPU cache of recent lookups: rules, and the part of a 256-byte block of code where each is valid. Stacks
 * repeat, although the interrupted pc varies within a block, and finding a rule touches a dozen uncached lines.
 * Two entries share a line, so a frame that was seen before costs one cache miss. Each CPU has UNWIND_RECENT_MAX
 * lines.
 */
#define UNWIND_RECENT_BITS 11
#define UNWIND_RECENT_MAX (1u << UNWIND_RECENT_BITS)
#define UNWIND_RECENT_PAGE_BITS 6 /* lines in 4 KiB of memory, for one page of code */
#define UNWIND_RECENT_BLOCK_BITS 8
#define UNWIND_RECENT_BLOCK_SIZE (1u << UNWIND_RECENT_BLOCK_BITS)
#define UNWIND_RECENT_NEAR_BITS 5 /* addresses that differ in these low bits share a line */
#define UNWIND_HASH_FACTOR 0x9e3779b97f4a7c15ull

struct unwind_recent {
        __u32 table;     /* 0: free */
        __u32 block_low; /* link-time address >> UNWIND_RECENT_BLOCK_BITS; the upper 8 of its 40 bits are in rule.reason
                          */
        struct unwind_rule rule; /* reserved: first and, in the upper 8 bits, last valid offset in the block */
};

struct unwind_recent_line {
        struct unwind_recent entries[2]; /* the newer entry first */
};
_Static_assert(sizeof(struct unwind_recent_line) == 64, "a line of the cache");

#define UNWIND_TABLE_NONE 0 /* frame pointers: generated code, or a file without a table */

struct unwind_mapping {
        __u64 start, end; /* in the process */
        __u64 bias;       /* link-time address = address - bias */
        __u32 table;
        __u32 generation; /* of the run that it belongs to */
};

/** The head of a run. It is outdated when its life (exec_id, start) or number of executable pages has changed. */
struct unwind_process {
        __u64 start_boot_ns;
        __u32 executable_pages;
        __u16 context; /* where its threads keep their context: its entry in `context_processes`; 0: nowhere */
        __u16 reserved;
        __u32 exec_id;
        __u32 generation;
        __u16 mapping_count; /* of the entries that follow */
        __u16 python;        /* its entry in `python_processes`; 0: none */
        __u16 v8;            /* likewise in `v8_layouts` */
        __u16 hotspot;       /* likewise in `hotspot_processes` */
};
_Static_assert(sizeof(struct unwind_process) == sizeof(struct unwind_mapping), "a head takes the place of a mapping");
_Static_assert(UNWIND_PROCESS_MAPPINGS_MAX <= 0xffff, "mapping_count");

/**
 * Hash bucket of one cache line: the tgid in the lower 32 bits, the start of its run in the upper ones; 0 is free.
 * A kernel hash map touches five lines per lookup.
 */
#define UNWIND_BUCKET_RUNS 8
#define UNWIND_BUCKETS (UNWIND_PROCESSES_MAX / UNWIND_BUCKET_RUNS)

struct unwind_bucket {
        __u64 runs[UNWIND_BUCKET_RUNS];
};

static inline __attribute__((always_inline)) __u32 unwind_bucket_index(__u32 tgid)
{
        return tgid & (UNWIND_BUCKETS - 1);
}

_Static_assert(sizeof(struct unwind_bucket) == 64, "a cache line");
_Static_assert(UNWIND_PROCESSES_MAX % UNWIND_BUCKET_RUNS == 0 && (UNWIND_BUCKETS & (UNWIND_BUCKETS - 1)) == 0,
               "the bucket index is a mask");

#endif
