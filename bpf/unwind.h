/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CAIRN_BPF_UNWIND_H
#define CAIRN_BPF_UNWIND_H

/**
 * @file
 * How the agent hands unwind tables and the mappings of processes to the
 * sampling program.
 *
 * A table has a number, never used twice. Its rows (unwind-tables/row.h) lie in
 * segments, inner maps of the outer map `row_segments`; a row's number counts
 * through all of them. `pages` says where the rows of one page of code begin;
 * the rows of a page never cross a segment's end. Rules are in `rules`.
 *
 * A process has a run of `mappings`: first a head that says which life of it
 * this is, in the place of a mapping, then its executable mappings, ascending
 * and apart. A run is written before anybody is told of it and then stays as it
 * is. `process_runs` says where the run of a process begins, in one number, so
 * that it is never seen half written. What a number named before is given to another only after every
 * program that may have read the number has ended, so a program never sees
 * half of the old and half of the new.
 */
#include "unwind-tables/row.h"

#define UNWIND_CHUNK_BITS 10 /* rows of one value of a segment */
#define UNWIND_CHUNK_ROWS (1u << UNWIND_CHUNK_BITS)
#define UNWIND_SEGMENT_BITS 20 /* rows of a segment: 4 MiB */
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
 * What a CPU looked up of late: rules, and where in a block of 256 bytes of
 * code each holds. Stacks come again and again, the interrupted pc not always
 * at the same instruction, and finding a rule anew takes a dozen places in
 * memory that are in no cache any more. What shares a place is the two that
 * came last, a line of the cache, so a frame that was met before costs one miss.
 * Each CPU has UNWIND_RECENT_MAX places.
 */
#define UNWIND_RECENT_BITS 11
#define UNWIND_RECENT_MAX (1u << UNWIND_RECENT_BITS)
#define UNWIND_RECENT_PAGE_BITS 6  /* of them in 4 KiB of memory: those of a page of code */
#define UNWIND_RECENT_BLOCK_BITS 8
#define UNWIND_RECENT_BLOCK_SIZE (1u << UNWIND_RECENT_BLOCK_BITS)
#define UNWIND_RECENT_NEAR_BITS 5  /* addresses of so many low bits share a place */
#define UNWIND_HASH_FACTOR 0x9e3779b97f4a7c15ull

struct unwind_recent {
        __u32 table;     /* 0: free */
        __u32 block_low; /* link-time address >> UNWIND_RECENT_BLOCK_BITS; the highest 8 of its 40 bits are in rule.why */
        struct unwind_rule rule; /* reserved: offsets in the block, the first and, 8 bits higher, the last where it holds */
};

struct unwind_recent_line {
        struct unwind_recent entries[2]; /* the newer one first */
};
_Static_assert(sizeof(struct unwind_recent_line) == 64, "a line of the cache");

#define UNWIND_TABLE_NONE 0 /* frame pointers: code made at run time, or a file whose table could not be had */

struct unwind_mapping {
        __u64 start, end; /* in the process */
        __u64 bias;       /* link-time address = address - bias */
        __u32 table;
        __u32 generation; /* of the process's run that it is part of */
};

/**
 * The head of a run. A process of which the program sees another life (exec_id,
 * start) or another number of executable pages has not been told of yet.
 */
struct unwind_process {
        __u64 start_boot_ns;
        __u64 executable_pages;
        __u32 exec_id;
        __u32 generation;
        __u32 mapping_count; /* of those that follow */
        __u32 reserved;
};
_Static_assert(sizeof(struct unwind_process) == sizeof(struct unwind_mapping), "a head takes the place of a mapping");

/**
 * Processes whose tgids have the same low bits, a line of the cache: the tgid,
 * and 32 bits higher where its run begins; 0 is free. A hash map of the kernel
 * takes five lines to find one.
 */
#define UNWIND_BUCKET_RUNS 8
#define UNWIND_BUCKETS (UNWIND_PROCESSES_MAX / UNWIND_BUCKET_RUNS)

struct unwind_bucket {
        __u64 runs[UNWIND_BUCKET_RUNS];
};

static inline __attribute__((always_inline)) __u32 unwind_bucket_of(__u32 tgid)
{
        return tgid & (UNWIND_BUCKETS - 1);
}

#endif
