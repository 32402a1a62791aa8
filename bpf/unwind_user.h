/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CAIRN_BPF_UNWIND_USER_H
#define CAIRN_BPF_UNWIND_USER_H

/*
 * Walks the user half of a stack in the kernel, by unwind tables or frame pointers, whichever the code of a frame
 * has.
 *
 * Functions that are not inlined are global, so the verifier checks each once and the loop over 512 frames is
 * cheap to verify; no tail call is needed. Indexes read from one map are checked against the size of the next map
 * on access.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "bpf/arch.h"
#include "bpf/hotspot_walk.h"
#include "bpf/python_walk.h"
#include "bpf/sample.h"
#include "bpf/unwind.h"
#include "bpf/v8_walk.h"

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
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(max_entries, UNWIND_BUCKETS);
        __uint(map_flags, BPF_F_MMAPABLE);
        __type(key, __u32);
        __type(value, struct unwind_bucket);
} process_runs SEC(".maps");

/* Sized by the agent: UNWIND_RECENT_MAX lines for each CPU, private to it. */
struct {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(max_entries, UNWIND_RECENT_MAX);
        __uint(map_flags, BPF_F_MMAPABLE); /* page-aligned, so no entry straddles cache lines */
        __type(key, __u32);
        __type(value, struct unwind_recent_line);
} recent SEC(".maps");

/* Written by the agent; entry 0 is unused. */
struct {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(max_entries, PYTHON_PROCESSES_MAX);
        __uint(map_flags, BPF_F_MMAPABLE);
        __type(key, __u32);
        __type(value, struct python_process);
} python_processes SEC(".maps");

/* Written by the agent; entry 0 is unused. */
struct {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(max_entries, V8_LAYOUTS_MAX);
        __uint(map_flags, BPF_F_MMAPABLE);
        __type(key, __u32);
        __type(value, struct v8_layout);
} v8_layouts SEC(".maps");

/* Written by the agent; entry 0 is unused. */
struct {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(max_entries, HOTSPOT_PROCESSES_MAX);
        __uint(map_flags, BPF_F_MMAPABLE);
        __type(key, __u32);
        __type(value, struct hotspot_process);
} hotspot_processes SEC(".maps");

/* Written by the agent; entry 0 is unused. */
struct {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(max_entries, CONTEXT_PROCESSES_MAX);
        __uint(map_flags, BPF_F_MMAPABLE);
        __type(key, __u32);
        __type(value, struct context_process);
} context_processes SEC(".maps");

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define UNWIND_WINDOW_BYTES 256
#define UNWIND_WINDOW_BELOW 56 /* bytes pushed after the return address, which is read first */

/* State of one walk, in per-CPU memory. */
struct unwind_walk {
        struct unwind_regs regs;
        struct arch_regs saved;
        struct unwind_process process; /* generation 0: unknown process */
        struct unwind_mapping mapping; /* the mapping used last */
        __u64 window_start;
        __u32 window_bytes; /* valid start offsets of 8-byte reads; 0: empty */
        __u32 first_mapping;
        __u32 end;      /* enum sample_end if no rule applies */
        __u32 recent;   /* first line of this CPU */
        __u32 is_known; /* the agent's view of the process is current */
        __u32 reserved;
        __u8 window[UNWIND_WINDOW_BYTES]; /* cached stack memory around the last read */
        struct v8_walk v8;
        struct hotspot_walk hotspot;
        struct context_walk context;
        struct sample_record record;
        struct python_walk python; /* after the record, where copies of constant size from its end stay inside */
};

#define PYTHON_READ(to, size, addr) bpf_probe_read_user(to, size, (const void *)(addr))
#define PYTHON_FUNCTION __noinline
#include "bpf/python_run.h"

#define V8_READ(to, size, addr) bpf_probe_read_user(to, size, (const void *)(addr))
#define V8_FUNCTION __noinline
#include "bpf/v8_frame.h"

#define HOTSPOT_READ(to, size, addr) bpf_probe_read_user(to, size, (const void *)(addr))
#define HOTSPOT_FUNCTION __noinline
#include "bpf/hotspot_frame.h"

#define CONTEXT_READ(to, size, addr) bpf_probe_read_user(to, size, (const void *)(addr))
#define CONTEXT_FUNCTION __noinline
#include "bpf/context_read.h"

/* Copy what is known of the process's HotSpot. */
static __always_inline void hotspot_begin_process(struct unwind_walk *w)
{
        __u32 number = w->process.hotspot;
        struct hotspot_process *p = bpf_map_lookup_elem(&hotspot_processes, &number);

        if (p)
                w->hotspot.process = *p;
        else
                w->process.hotspot = 0;
}

/* The code cache grows without notice, so all of its address range is taken for mapped. */
static __always_inline int hotspot_find_mapping(struct unwind_walk *w, __u64 pc)
{
        const struct hotspot_process *p = &w->hotspot.process;

        if (likely(!w->process.hotspot) || !hotspot_is_code(&w->hotspot, pc))
                return 0;
        w->mapping = (struct unwind_mapping){ .start = p->code, .end = p->code + p->code_bytes };
        return 1;
}

/* Set w->mapping to the mapping that covers pc. 0: there is none. */
__noinline int unwind_find_mapping(struct unwind_walk *w, __u64 pc)
{
        __u32 low, high;

        if (!w)
                return 0;
        low = w->first_mapping;
        high = low + w->process.mapping_count;
        for (int i = 0; i < 14; i++) { /* 2^13 is UNWIND_PROCESS_MAPPINGS_MAX */
                __u32 middle = low + (high - low) / 2;
                struct unwind_mapping *m;

                if (low >= high)
                        break;
                m = bpf_map_lookup_elem(&mappings, &middle);
                if (!m)
                        break;
                if (pc < m->start) {
                        high = middle;
                } else if (pc >= m->end) {
                        low = middle + 1;
                } else {
                        if (m->generation != w->process.generation)
                                return 0;
                        w->mapping = *m;
                        return 1;
                }
        }
        return hotspot_find_mapping(w, pc);
}

/*
 * Binary search for the last of count rows that is not past offset. Returns its rule in 16 bits, the start of its
 * range in the next 16 bits, and the end in the upper 32. A struct on the stack would keep the verifier from
 * recognizing equal loop states.
 */
__noinline __u64 unwind_find_row(__u32 first, __u32 count, __u32 offset)
{
        __u32 segment = first >> UNWIND_SEGMENT_BITS;
        void *rows = bpf_map_lookup_elem(&row_segments, &segment);
        __u32 low = first, high = first + count;
        __u64 rule = UNWIND_RULE_GAP, start = 0, end = UNWIND_PAGE_SIZE;

        if (!rows)
                return rule | end << 32;
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
                        start = row.offset;
                        low = middle + 1;
                } else {
                        end = row.offset;
                        high = middle;
                }
        }
        return rule | start << 16 | end << 32;
}

/*
 * Copy the stack around addr. Separate reads of uncached lines wait for one another; adjacent lines are fetched
 * together.
 */
__noinline int unwind_move_window(struct unwind_walk *w, __u64 addr)
{
        if (!w)
                return 1;
        w->window_start = (addr - UNWIND_WINDOW_BELOW) & ~63ull;
        w->window_bytes = sizeof w->window - sizeof(__u64) + 1;
        if (!bpf_probe_read_user(w->window, sizeof w->window, (const void *)w->window_start))
                return 0;
        w->window_start = addr; /* the surrounding lines are not all readable */
        w->window_bytes = 1;
        if (!bpf_probe_read_user(w->window, sizeof(__u64), (const void *)addr))
                return 0;
        w->window_bytes = 0;
        return 1;
}

static __always_inline int unwind_read_user(void *ctx, __u64 addr, __u64 *ret)
{
        struct unwind_walk *w = ctx;
        __u64 offset = addr - w->window_start;

        if (offset >= w->window_bytes) {
                if (unwind_move_window(w, addr))
                        return 1;
                offset = addr - w->window_start;
        }
        if (offset > sizeof w->window - sizeof *ret)
                return 1;
        *ret = *(__u64 *)(w->window + offset);
        return 0;
}

/*
 * Cache line for an address of a table. Addresses of one page of code share a page of memory, because the frames
 * of a stack are in few pages of code and each page of memory costs a TLB entry.
 */
static __always_inline __u32 unwind_recent_slot(__u32 table, __u64 address)
{
        __u64 page = (((__u64)table << 32) + (address >> UNWIND_PAGE_BITS)) * UNWIND_HASH_FACTOR,
              in_page = (address >> UNWIND_RECENT_NEAR_BITS) * UNWIND_HASH_FACTOR;

        return (__u32)(page >> (64 - UNWIND_RECENT_BITS + UNWIND_RECENT_PAGE_BITS)) << UNWIND_RECENT_PAGE_BITS |
               (__u32)(in_page >> (64 - UNWIND_RECENT_PAGE_BITS));
}

/* Look up the rule number for an address of a table, and cache it for this CPU. */
__noinline __u32 unwind_search_table(__u32 slot, __u32 table, __u64 address)
{
        struct unwind_page_key key = { .table = table, .page = (__u32)(address >> UNWIND_PAGE_BITS) };
        struct unwind_page_rows *rows = bpf_map_lookup_elem(&pages, &key);
        __u64 found = rows ? unwind_find_row(rows->first, rows->count, (__u32)address & (UNWIND_PAGE_SIZE - 1))
                           : (__u64)UNWIND_PAGE_SIZE << 32;
        __u32 number = found & 0xffff, start = found >> 16 & 0xffff, end = found >> 32;
        __u32 block = (__u32)address & (UNWIND_PAGE_SIZE - 1) & ~(UNWIND_RECENT_BLOCK_SIZE - 1), first, last;
        struct unwind_recent_line *line;
        struct unwind_recent *r;
        struct unwind_rule *rule;

        line = bpf_map_lookup_elem(&recent, &slot);
        rule = bpf_map_lookup_elem(&rules, &number);
        if (!line || !rule)
                return number;
        line->entries[1] = line->entries[0];
        r = &line->entries[0];
        first = start > block ? start - block : 0;
        last = end < block + UNWIND_RECENT_BLOCK_SIZE ? end - block - 1 : UNWIND_RECENT_BLOCK_SIZE - 1;
        r->table = table;
        r->block_low = (__u32)(address >> UNWIND_RECENT_BLOCK_BITS);
        r->rule = *rule;
        r->rule.reason = (__u8)(address >> UNWIND_RECENT_BLOCK_BITS >> 32);
        r->rule.reserved = (__u16)(first | last << 8);
        return number;
}

static __always_inline int unwind_is_recent(const struct unwind_recent *r, __u32 table, __u64 address)
{
        __u64 block = address >> UNWIND_RECENT_BLOCK_BITS;
        __u32 offset = (__u32)address & (UNWIND_RECENT_BLOCK_SIZE - 1);

        return r->block_low == (__u32)block && r->table == table && r->rule.reason == block >> 32 &&
               offset >= (r->rule.reserved & 0xff) && offset <= r->rule.reserved >> 8;
}

static __always_inline const struct unwind_rule *unwind_find_table_rule(const struct unwind_walk *w, __u32 table,
                                                                        __u64 address)
{
        __u32 slot = w->recent | unwind_recent_slot(table, address), number;
        const struct unwind_recent_line *line = bpf_map_lookup_elem(&recent, &slot);

        if (likely(line && unwind_is_recent(&line->entries[0], table, address)))
                return &line->entries[0].rule;
        if (line && unwind_is_recent(&line->entries[1], table, address))
                return &line->entries[1].rule;
        number = unwind_search_table(slot, table, address);
        return bpf_map_lookup_elem(&rules, &number);
}

/* The rule for a pc; w->end is the end to report when there is none or it fails. */
static __always_inline const struct unwind_rule *unwind_find_rule(struct unwind_walk *w, __u64 pc)
{
        __u32 number = UNWIND_RULE_FRAME_POINTER;

        w->end = SAMPLE_END_NO_RULE;
        if (!w->process.generation) {
                w->end = SAMPLE_END_NEW_PROCESS;
        } else if ((pc < w->mapping.start || pc >= w->mapping.end) && !unwind_find_mapping(w, pc)) {
                w->end = SAMPLE_END_NO_MAPPING;
                number = UNWIND_RULE_GAP;
        } else if (w->mapping.table == UNWIND_TABLE_NONE) {
                w->end = SAMPLE_END_NO_TABLE;
        } else {
                return unwind_find_table_rule(w, w->mapping.table, pc - w->mapping.bias);
        }
        return bpf_map_lookup_elem(&rules, &number);
}

/* The rule number for a frame that the table does not cover; UNWIND_RULE_GAP when the walk ends with w->end. */
__noinline __u32 unwind_find_gap_rule(struct unwind_walk *w)
{
        __u32 number = UNWIND_RULE_GAP;

        if (!w || w->end != SAMPLE_END_NO_RULE)
                return number;
        if (w->regs.pc_is_return) {
                const struct unwind_rule *rule = unwind_find_rule(w, w->regs.pc);
                __u64 address = w->regs.pc - w->mapping.bias;

                if (rule && rule->cfa != UNWIND_CFA_NONE)
                        number = unwind_rule_at_function_start(rule, UNWIND_RULES_MAX);
                if (number == UNWIND_RULES_MAX) /* its own rule; the cached one was replaced */
                        number = unwind_search_table(w->recent | unwind_recent_slot(w->mapping.table, address),
                                                     w->mapping.table, address);
        }
        return w->end == SAMPLE_END_NO_RULE ? unwind_rule_in_gap(number) : number;
}

/*
 * The state of a thread whose process has no key for it, found in the interpreters' lists. A search of many threads
 * takes microseconds, so it is made once, and seldom for threads that have none. The state is checked at each use.
 */
struct python_thread {
        __u64 state;
        __u64 misses;
};

struct {
        __uint(type, BPF_MAP_TYPE_LRU_HASH);
        __uint(max_entries, 16384);
        __type(key, __u32); /* thread id */
        __type(value, struct python_thread);
} python_threads SEC(".maps");

#define PYTHON_SEARCH_EVERY 16 /* samples of a thread without a state */

__noinline int python_begin_listed(struct unwind_walk *w)
{
        __u32 thread = (__u32)bpf_get_current_pid_tgid();
        struct python_thread *known = bpf_map_lookup_elem(&python_threads, &thread), now = { 0 };

        if (!w)
                return 0;
        if (known) {
                now = *known;
                w->python.state = now.state;
                if (now.state && !python_begin_state(&w->python))
                        return 0;
                if (!now.state && now.misses++ % PYTHON_SEARCH_EVERY) {
                        known->misses = now.misses;
                        return 0;
                }
        }
        python_search_state(&w->python);
        now.state = w->python.state;
        bpf_map_update_elem(&python_threads, &thread, &now, BPF_ANY);
        if (now.state)
                python_begin_state(&w->python);
        return 0;
}

/* Find the Python frames of the thread, and read the first run. */
static __always_inline void python_begin_process(struct unwind_walk *w, __u64 thread_pointer)
{
        __u32 number = w->process.python;
        struct python_process *p = bpf_map_lookup_elem(&python_processes, &number);

        if (!p)
                return;
        w->python.process = *p;
        w->python.thread_pointer = thread_pointer;
        w->python.word_count = 0;
        if (w->python.process.key_offset)
                python_begin(&w->python, thread_pointer);
        else
                python_begin_listed(w);
}

/* Replace the native frame recorded last by the run. 1 when there is no space for all of it. */
__noinline int python_place_run(struct unwind_walk *w)
{
        __u64 n, room, words, at;

        if (!w)
                return 1;
        n = w->record.user_count - 1;
        words = w->python.word_count;
        at = w->record.kernel_count + n;
        if (n >= SAMPLE_STACK_MAX || at >= SAMPLE_FRAMES_MAX)
                return 1;
        room = (SAMPLE_STACK_MAX - n) & ~1ull;
        if (words > room)
                words = room;
        barrier_var(words); /* so that the verifier sees the next comparison */
        if (words > PYTHON_WORDS_MAX)
                return 1;
        if (words) { /* else the run had just begun or ended */
                bpf_probe_read_kernel(w->record.frames + at, words * sizeof *w->python.words, w->python.words);
                w->record.user_count = (__u32)(n + words);
        }
        if (w->python.word_count == PYTHON_WORDS_MAX || words < w->python.word_count) {
                w->record.user_end = SAMPLE_END_TOO_DEEP;
                return 1;
        }
        python_read_run(&w->python);
        return 0;
}

/* Record the JavaScript function of a frame that has a frame pointer, in place of the native frame recorded last. */
__noinline int v8_place_frame(struct unwind_walk *w)
{
        __u32 number;
        struct v8_layout *layout;
        __u64 n, at;

        if (!w || (w->end != SAMPLE_END_NO_TABLE && w->end != SAMPLE_END_NO_RULE))
                return 0;
        n = w->record.user_count - 1;
        at = w->record.kernel_count + n;
        if (n > SAMPLE_STACK_MAX - V8_WORDS_MAX || at > SAMPLE_FRAMES_MAX - V8_WORDS_MAX)
                return 0; /* the native frame stays */
        number = w->process.v8;
        layout = bpf_map_lookup_elem(&v8_layouts, &number);
        if (!layout)
                return 0;
        w->v8.layout = *layout;
        w->v8.fp = w->regs.fp;
        w->v8.pc = w->regs.pc;
        w->v8.is_generated = w->end == SAMPLE_END_NO_TABLE;
        w->v8.is_leaf = !w->regs.pc_is_return;
        if (!v8_read_frame(&w->v8, w->regs.scratch[9], w->regs.scratch[12], w->regs.scratch[15]))
                return 0;
        if (w->v8.keeps_native) {
                n++;
                at++;
        }
        w->record.frames[at] = w->v8.words[0];
        w->record.frames[at + 1] = w->v8.words[1];
        w->record.user_count = (__u32)(n + 2);
        return 0;
}

/* Record a frame of HotSpot's code cache and step to its caller. */
__noinline int hotspot_place_frame(struct unwind_walk *w)
{
        __u64 n, at;
        int step;

        if (!w)
                return HOTSPOT_NO_FRAME;
        n = w->record.user_count;
        at = w->record.kernel_count + n;
        if (n > SAMPLE_STACK_MAX - HOTSPOT_WORDS || at > SAMPLE_FRAMES_MAX - HOTSPOT_WORDS) {
                w->record.user_end = SAMPLE_END_TOO_DEEP;
                return HOTSPOT_LOST;
        }
        w->hotspot.pc = w->regs.pc;
        w->hotspot.sp = w->regs.sp;
        w->hotspot.fp = w->regs.fp;
        w->hotspot.is_leaf = !w->regs.pc_is_return;
        w->hotspot.rax = w->regs.scratch[0];
        w->hotspot.rdx = w->regs.scratch[1];
        w->hotspot.rbx = w->regs.scratch[3];
        w->hotspot.r13 = w->regs.scratch[13];
        step = hotspot_read_frame(&w->hotspot);
        if (step == HOTSPOT_NO_FRAME)
                return step;
        w->record.frames[at] = w->hotspot.words[0];
        w->record.frames[at + 1] = w->hotspot.words[1];
        w->record.user_count = (__u32)(n + HOTSPOT_WORDS);
        w->regs.pc = w->hotspot.pc;
        w->regs.sp = w->hotspot.sp;
        w->regs.fp = w->hotspot.fp;
        w->regs.scratch_known = 0;
        w->regs.pc_is_return = 1;
        return step;
}

/* Record the current frame and step to its caller. Returns 0 with a caller, 1 at the end, which is in
   w->record.user_end. */
__noinline int unwind_walk_frame(struct unwind_walk *w)
{
        const struct unwind_rule *rule;
        enum unwind_status st;
        __u32 number, n;
        __u64 pc, sp, at;

        if (!w)
                return 1;
        n = w->record.user_count;
        sp = w->regs.sp;
        at = (__u64)w->record.kernel_count + n;
        pc = w->regs.pc;
        rule = unwind_find_rule(w, unwind_lookup_pc(&w->regs));
        w->record.user_end = w->end;
        if (unlikely(w->end == SAMPLE_END_NO_MAPPING && n))
                return 1;
        if (unlikely(n >= SAMPLE_STACK_MAX || at >= SAMPLE_FRAMES_MAX)) {
                w->record.user_end = SAMPLE_END_TOO_DEEP;
                return 1;
        }
        if (unlikely(w->process.hotspot && w->end == SAMPLE_END_NO_TABLE)) {
                switch (hotspot_place_frame(w)) {
                case HOTSPOT_STEPPED:
                        return 0;
                case HOTSPOT_LOST:
                        return 1;
                }
        }
        w->record.frames[at] = sample_frame_pack_native(pc, n && !w->regs.pc_is_return);
        w->record.user_count = n + 1;
        if (unlikely(rule && rule->cfa == UNWIND_CFA_NONE)) {
                number = unwind_find_gap_rule(w);
                w->record.user_end = w->end;
                if (number == UNWIND_RULE_GAP)
                        return 1;
                rule = bpf_map_lookup_elem(&rules, &number);
        }
        if (unlikely(rule && unwind_select_rule(&w->regs, rule, UNWIND_RULE_GAP) != UNWIND_RULE_GAP)) {
                number = UNWIND_RULE_GO;
                rule = bpf_map_lookup_elem(&rules, &number);
        }
        if (!rule)
                return 1;
        if (unlikely(n && (rule->flags & UNWIND_FLAG_SIGNAL))) /* a trampoline: not a call site */
                w->record.frames[at] = sample_frame_pack_native(pc, 1);
        if (unlikely(w->process.v8 && unwind_rule_uses_frame_chain(rule)))
                v8_place_frame(w);
        st = unwind_step(&w->regs, rule, unwind_read_user, w);
        if (st == UNWIND_STEPPED) { /* sp is now the CFA */
                if (unlikely(python_is_activation(&w->python, sp, w->regs.sp, pc)))
                        return python_place_run(w);
                return 0;
        }
        if (!unwind_rule_uses_frame_chain(rule) || (st == UNWIND_DONE && !sample_end_is_guess(w->end, n)))
                w->record.user_end = sample_end_of(st);
        return 1;
}

#endif
