/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CAIRN_BPF_LATE_H
#define CAIRN_BPF_LATE_H

/*
 * Samples whose user half is left to the agent, since the program does not know
 * the process yet (agent/late.h).
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "bpf/sample.h"
#include "bpf/unwind_user.h"

#define LATES_BYTES (8 * 1024 * 1024)
#define LATES_PAGE_BYTES 4096 /* the smallest there are */
#define LATES_WAIT_BYTES (LATES_BYTES / 8)

struct {
        __uint(type, BPF_MAP_TYPE_RINGBUF);
        __uint(max_entries, LATES_BYTES);
} lates SEC(".maps");

/*
 * Leave the user half to the agent, with so much room for its stack, of which
 * wanted bytes from start on may be of use. False without room. The agent is
 * woken only if it has something to do at once; it looks here before each drain anyway.
 */
static __always_inline int postpone_in(const struct unwind_walk *w, __u64 start, __u64 wanted, __u32 room, int wake)
{
        struct sample_late_record *record = bpf_ringbuf_reserve(&lates, sizeof *record - SAMPLE_LATE_STACK_BYTES + room, 0);
        __u32 kernel_count = w->record.kernel_count;
        struct sample_late *late;

        if (!record)
                return 0;
        record->key = w->record.key;
        record->kernel_count = 0;
        if (kernel_count <= SAMPLE_KERNEL_STACK_MAX &&
            !bpf_probe_read_kernel(record->kernel, kernel_count * sizeof *record->kernel, w->record.frames))
                record->kernel_count = kernel_count;
        late = &record->late;
        late->regs = w->saved;
        late->stack_bytes = 0;
        late->stack_start = start;
        for (__u32 at = 0; at < room && at <= wanted; at += SAMPLE_LATE_PIECE_BYTES) {
                if (bpf_probe_read_user(late->stack + at, SAMPLE_LATE_PIECE_BYTES, (const void *)(start + at))) {
                        __u32 left = -(__u32)(start + at) & (SAMPLE_LATE_PIECE_BYTES - 1); /* of the last page */

                        if (left && !bpf_probe_read_user(late->stack + at, left, (const void *)(start + at)))
                                late->stack_bytes = at + left;
                        break;
                }
                late->stack_bytes = at + SAMPLE_LATE_PIECE_BYTES;
        }
        if (bpf_ringbuf_query(&lates, BPF_RB_AVAIL_DATA) > LATES_WAIT_BYTES)
                wake = 1;
        /* Forced: by itself the kernel wakes nobody who has not yet taken what came before. */
        bpf_ringbuf_submit(record, wake ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
        return 1;
}

static __always_inline int is_readable(__u64 addr)
{
        __u8 byte;

        return !bpf_probe_read_user(&byte, 1, (const void *)addr);
}

/* start_stack: nothing that was called from anywhere lies behind it, on the stack of the first thread. */
static __always_inline int postpone(const struct unwind_walk *w, __u64 start_stack, int wake)
{
        __u64 start = w->regs.sp - SAMPLE_LATE_BELOW_BYTES, wanted;

        if (!is_readable(start)) { /* the page below was never touched, or this one neither: it is being touched now */
                start = w->regs.sp & ~(__u64)(LATES_PAGE_BYTES - 1);
                if (!is_readable(start))
                        start += LATES_PAGE_BYTES;
        }
        wanted = start_stack - start;
        if (wanted < SAMPLE_LATE_SHORT_BYTES || !is_readable(start + SAMPLE_LATE_SHORT_BYTES))
                return postpone_in(w, start, wanted, SAMPLE_LATE_SHORT_BYTES, wake);
        if (wanted < SAMPLE_LATE_MIDDLE_BYTES || !is_readable(start + SAMPLE_LATE_MIDDLE_BYTES))
                return postpone_in(w, start, wanted, SAMPLE_LATE_MIDDLE_BYTES, wake);
        return postpone_in(w, start, wanted, SAMPLE_LATE_STACK_BYTES, wake);
}

#endif
