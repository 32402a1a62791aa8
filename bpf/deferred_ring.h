/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CAIRN_BPF_DEFERRED_RING_H
#define CAIRN_BPF_DEFERRED_RING_H

/*
 * Samples whose user half the agent walks, since the program does not have the mappings of the process yet
 * (sampling/deferred_samples.h).
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "bpf/sample.h"
#include "bpf/unwind_user.h"

#define DEFERRED_RING_BYTES (8 * 1024 * 1024)
#define DEFERRED_PAGE_BYTES 4096 /* minimum page size */
#define DEFERRED_WAKE_BYTES (DEFERRED_RING_BYTES / 8)

struct {
        __uint(type, BPF_MAP_TYPE_RINGBUF);
        __uint(max_entries, DEFERRED_RING_BYTES);
} deferred SEC(".maps");

/*
 * Defer the user half with a copy of its stack, from start on: up to `room` bytes, of which the first `useful` are
 * useful. False when the ring buffer is full. The agent is woken only if it can proceed at once; it empties this ring
 * buffer before each drain anyway.
 */
static __always_inline int reserve_deferred_sample(const struct unwind_walk *w, __u64 start, __u64 useful, __u32 room,
                                                   int wake)
{
        struct deferred_sample_record *record =
                bpf_ringbuf_reserve(&deferred, sizeof *record - STACK_COPY_MAX_BYTES + room, 0);
        __u32 kernel_count = w->record.kernel_count;
        struct stack_copy *copy;

        if (!record)
                return 0;
        record->key = w->record.key;
        record->weight = w->record.weight;
        record->kernel_count = 0;
        if (kernel_count <= SAMPLE_KERNEL_STACK_MAX &&
            !bpf_probe_read_kernel(record->kernel, kernel_count * sizeof *record->kernel, w->record.frames))
                record->kernel_count = kernel_count;
        record->context_count = 0;
        if (w->context.word_count && !bpf_probe_read_kernel(record->context, sizeof record->context, w->context.words))
                record->context_count = w->context.word_count;
        copy = &record->copy;
        copy->regs = w->saved;
        copy->stack_bytes = 0;
        copy->stack_start = start;
        for (__u32 at = 0; at < room && at <= useful; at += STACK_COPY_CHUNK_BYTES) {
                if (bpf_probe_read_user(copy->stack + at, STACK_COPY_CHUNK_BYTES, (const void *)(start + at))) {
                        __u32 left =
                                -(__u32)(start + at) & (STACK_COPY_CHUNK_BYTES - 1); /* up to the end of the page */

                        if (left && !bpf_probe_read_user(copy->stack + at, left, (const void *)(start + at)))
                                copy->stack_bytes = at + left;
                        break;
                }
                copy->stack_bytes = at + STACK_COPY_CHUNK_BYTES;
        }
        if (bpf_ringbuf_query(&deferred, BPF_RB_AVAIL_DATA) > DEFERRED_WAKE_BYTES)
                wake = 1;
        /* Forced: by default the kernel does not wake a reader that has not consumed earlier records. */
        bpf_ringbuf_submit(record, wake ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
        return 1;
}

static __always_inline int is_readable(__u64 addr)
{
        __u8 byte;

        return !bpf_probe_read_user(&byte, 1, (const void *)addr);
}

/* @param start_stack  the end of the first thread's stack: no frame is beyond it. */
static __always_inline int defer_user_stack(const struct unwind_walk *w, __u64 start_stack, int wake)
{
        __u64 start = w->regs.sp - STACK_COPY_RED_ZONE_BYTES, useful;

        if (!is_readable(start)) { /* the page below sp's was never touched, or sp's own is just being touched */
                start = w->regs.sp & ~(__u64)(DEFERRED_PAGE_BYTES - 1);
                if (!is_readable(start))
                        start += DEFERRED_PAGE_BYTES;
        }
        useful = start_stack - start;
        if (useful < STACK_COPY_SHORT_BYTES || !is_readable(start + STACK_COPY_SHORT_BYTES))
                return reserve_deferred_sample(w, start, useful, STACK_COPY_SHORT_BYTES, wake);
        if (useful < STACK_COPY_MIDDLE_BYTES || !is_readable(start + STACK_COPY_MIDDLE_BYTES))
                return reserve_deferred_sample(w, start, useful, STACK_COPY_MIDDLE_BYTES, wake);
        return reserve_deferred_sample(w, start, useful, STACK_COPY_MAX_BYTES, wake);
}

#endif
