/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CAIRN_BPF_UNWIND_USER_H
#define CAIRN_BPF_UNWIND_USER_H

/*
 * Walking the user half of a stack in the kernel, by unwind tables or frame
 * pointers, whichever the code of a frame has.
 *
 * The functions that are not inlined are global, so the verifier looks at each
 * once and the loop over 512 frames costs it next to nothing; no tail call is
 * needed. Numbers from one map are checked against the next map's size there.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "bpf/arch.h"
#include "bpf/sample.h"
#include "bpf/unwind.h"

struct unwind_segment {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(max_entries, UNWIND_SEGMENT_ROWS / UNWIND_CHUNK_ROWS);
        __uint(key_size, sizeof(__u32));
        __uint(value_size, sizeof(struct unwind_chunk));
        __uint(map_flags, BPF_F_MMAPABLE);
};

struct {
        __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
        __uint(max_entries, UNWIND_SEGMENTS_MAX);
        __type(key, __u32);
        __array(values, struct unwind_segment);
} row_segments SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_HASH);
        __uint(max_entries, UNWIND_PAGES_MAX);
        __type(key, struct unwind_page_key);
        __type(value, struct unwind_page_rows);
} pages SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(max_entries, UNWIND_RULES_MAX);
        __uint(map_flags, BPF_F_MMAPABLE);
        __type(key, __u32);
        __type(value, struct unwind_rule);
} rules SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(max_entries, UNWIND_MAPPINGS_MAX);
        __uint(map_flags, BPF_F_MMAPABLE);
        __type(key, __u32);
        __type(value, struct unwind_mapping);
} mappings SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_HASH);
        __uint(max_entries, UNWIND_PROCESSES_MAX);
        __type(key, __u32);
        __type(value, struct unwind_process);
} processes SEC(".maps");

/* Sized by the agent: UNWIND_RECENT_MAX for each CPU, which alone uses them. */
struct {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(max_entries, UNWIND_RECENT_MAX);
        __type(key, __u32);
        __type(value, struct unwind_recent);
} recent SEC(".maps");

#define UNWIND_WINDOW_BYTES 256
#define UNWIND_WINDOW_BELOW 56 /* registers that were pushed after what is read first, the return address */

/* Of one sample, in per-CPU memory. */
struct unwind_walk {
        struct unwind_regs regs;
        struct arch_regs saved;
        struct unwind_process process;  /* generation 0: not known */
        struct unwind_mapping mapping;  /* the last one used */
        __u64 window_start;
        __u32 window_bytes;             /* where 8 bytes may begin; 0 nothing is copied */
        __u32 reserved;
        __u8 window[UNWIND_WINDOW_BYTES]; /* a copy of the stack around the last place that was read */
        struct sample_record record;
};

#define UNWIND_NOT_FOUND (~0u)

/* The number of the process's mapping that covers pc. */
__noinline __u32 unwind_find_mapping(__u32 first, __u32 count, __u64 pc)
{
        __u32 low = first, high = first + count;

        for (int i = 0; i < 14; i++) { /* 2^13 is UNWIND_PROCESS_MAPPINGS_MAX */
                __u32 middle = low + (high - low) / 2;
                struct unwind_mapping *m;

                if (low >= high)
                        break;
                m = bpf_map_lookup_elem(&mappings, &middle);
                if (!m)
                        break;
                if (pc < m->start)
                        high = middle;
                else if (pc >= m->end)
                        low = middle + 1;
                else
                        return middle;
        }
        return UNWIND_NOT_FOUND;
}

/* The rule of the last of count rows that is not behind offset. */
__noinline __u32 unwind_find_rule(__u32 first, __u32 count, __u32 offset)
{
        __u32 segment = first >> UNWIND_SEGMENT_BITS;
        void *rows = bpf_map_lookup_elem(&row_segments, &segment);
        __u32 low = first, high = first + count, rule = UNWIND_RULE_GAP;

        if (!rows)
                return UNWIND_RULE_GAP;
        for (int i = 0; i < UNWIND_PAGE_BITS + 1; i++) {
                __u32 middle = low + (high - low) / 2;
                __u32 at = (middle & (UNWIND_SEGMENT_ROWS - 1)) >> UNWIND_CHUNK_BITS;
                struct unwind_chunk *chunk;
                struct unwind_row row;

                if (low >= high)
                        break;
                chunk = bpf_map_lookup_elem(rows, &at);
                if (!chunk)
                        break;
                row = chunk->rows[middle & (UNWIND_CHUNK_ROWS - 1)];
                if (row.offset <= offset) {
                        rule = row.rule;
                        low = middle + 1;
                } else {
                        high = middle;
                }
        }
        return rule;
}

/*
 * Places of a stack that are not in the caches are waited for one after the other when each is read by itself; lines that
 * follow each other are fetched together.
 */
static __always_inline int unwind_read_user(void *ctx, __u64 addr, __u64 *ret)
{
        struct unwind_walk *w = ctx;
        __u64 offset = addr - w->window_start;

        if (offset >= w->window_bytes) {
                w->window_start = (addr - UNWIND_WINDOW_BELOW) & ~63ull;
                w->window_bytes = sizeof w->window - sizeof *ret + 1;
                offset = addr - w->window_start;
                if (bpf_probe_read_user(w->window, sizeof w->window, (const void *)w->window_start)) {
                        w->window_bytes = 0;
                        return bpf_probe_read_user(ret, sizeof *ret, (const void *)addr) != 0;
                }
        }
        if (offset > sizeof w->window - sizeof *ret)
                return 1;
        *ret = *(__u64 *)(w->window + offset);
        return 0;
}

/*
 * Where a CPU keeps an address of a table. Addresses of one page of code lie together, in a page of memory: the frames
 * of a stack are in few pages of code, and each page of memory is a place that the processor must look up.
 */
static __always_inline __u32 unwind_recent_slot(__u32 table, __u64 address)
{
        __u64 page = (((__u64)table << 32) + (address >> UNWIND_PAGE_BITS)) * UNWIND_HASH_FACTOR, in_page = address * UNWIND_HASH_FACTOR;

        return (__u32)(page >> (64 - UNWIND_RECENT_BITS + UNWIND_RECENT_PAGE_BITS)) << UNWIND_RECENT_PAGE_BITS |
               (__u32)(in_page >> (64 - UNWIND_RECENT_PAGE_BITS));
}

/* The rule for an address of a table, kept for the next time. */
static __always_inline __u32 unwind_table_rule(__u32 table, __u64 address)
{
        __u32 slot = unwind_recent_slot(table, address);
        struct unwind_page_key key = { .table = table, .page = (__u32)(address >> UNWIND_PAGE_BITS) };
        struct unwind_page_rows *rows;
        struct unwind_recent *r;
        __u32 rule = UNWIND_RULE_GAP;

        slot |= bpf_get_smp_processor_id() << UNWIND_RECENT_BITS;
        r = bpf_map_lookup_elem(&recent, &slot);
        if (r && r->address == address && r->table == table)
                return r->rule;
        rows = bpf_map_lookup_elem(&pages, &key);
        if (rows)
                rule = unwind_find_rule(rows->first, rows->count, (__u32)(address & (UNWIND_PAGE_SIZE - 1)));
        if (r)
                *r = (struct unwind_recent){ .address = address, .table = table, .rule = rule };
        return rule;
}

/* The rule for a pc; *end_ret says what it means when there is none or it leads nowhere. */
static __always_inline __u32 unwind_rule_at(struct unwind_walk *w, __u64 pc, __u32 *end_ret)
{
        *end_ret = SAMPLE_END_NEW_PROCESS;
        if (!w->process.generation)
                return UNWIND_RULE_FRAME_POINTER;
        if (pc < w->mapping.start || pc >= w->mapping.end) {
                __u32 n = unwind_find_mapping(w->process.first_mapping, w->process.mapping_count, pc);
                struct unwind_mapping *m = bpf_map_lookup_elem(&mappings, &n);

                *end_ret = SAMPLE_END_NO_MAPPING;
                if (!m || m->generation != w->process.generation)
                        return UNWIND_RULE_GAP;
                w->mapping = *m;
        }
        *end_ret = SAMPLE_END_NO_TABLE;
        if (w->mapping.table == UNWIND_TABLE_NONE)
                return UNWIND_RULE_FRAME_POINTER;
        *end_ret = SAMPLE_END_NO_RULE;
        return unwind_table_rule(w->mapping.table, pc - w->mapping.bias);
}

/* Note the frame that the registers are of, and go on to its caller's. 0: there is one; 1: the walk is over, w->record.user_end. */
__noinline int unwind_frame(struct unwind_walk *w)
{
        struct unwind_rule *rule;
        enum unwind_status st;
        __u32 number, end, n;
        __u64 pc, at;

        if (!w)
                return 1;
        n = w->record.user_count;
        at = (__u64)w->record.kernel_count + n;
        pc = w->regs.pc;
        number = unwind_rule_at(w, unwind_lookup_pc(&w->regs), &end);
        if (number == UNWIND_RULE_GAP && end == SAMPLE_END_NO_MAPPING && n) {
                w->record.user_end = end;
                return 1;
        }
        if (n >= SAMPLE_STACK_MAX || at >= SAMPLE_FRAMES_MAX) {
                w->record.user_end = SAMPLE_END_TOO_DEEP;
                return 1;
        }
        w->record.frames[at] = pc | (n && !w->regs.pc_is_return ? SAMPLE_FRAME_EXACT : 0);
        w->record.user_count = n + 1;
        rule = bpf_map_lookup_elem(&rules, &number);
        if (number == UNWIND_RULE_GAP && end == SAMPLE_END_NO_RULE && w->regs.pc_is_return) {
                number = unwind_rule_at(w, pc, &end);
                rule = bpf_map_lookup_elem(&rules, &number);
                if (rule)
                        number = unwind_rule_at_start(rule, number);
        }
        if (end == SAMPLE_END_NO_RULE)
                number = unwind_rule_in_hole(number);
        rule = bpf_map_lookup_elem(&rules, &number);
        if (rule && unwind_rule_for(&w->regs, rule, number) != number) {
                number = UNWIND_RULE_GO;
                rule = bpf_map_lookup_elem(&rules, &number);
        }
        if (!rule || number == UNWIND_RULE_GAP) {
                w->record.user_end = end;
                return 1;
        }
        if (n && (rule->flags & UNWIND_FLAG_SIGNAL)) /* a trampoline: nobody called from before it */
                w->record.frames[at] = pc | SAMPLE_FRAME_EXACT;
        st = unwind_step(&w->regs, rule, unwind_read_user, w);
        if (st == UNWIND_STEPPED)
                return 0;
        w->record.user_end = st != UNWIND_DONE && unwind_is_by_frame_pointer(rule) ? end : sample_end_of(st);
        return 1;
}

#endif
