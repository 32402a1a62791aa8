/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_RUNTIMES_THREAD_CONTEXT_H
#define CAIRN_SAMPLING_RUNTIMES_THREAD_CONTEXT_H

/**
 * @file
 * Decodes the context of a thread that came with a sample (bpf/context_walk.h): trace, span and attributes, or the
 * labels of a goroutine.
 *
 * Threads: no shared state.
 * Source: OTEP 4947, "Thread-Local Context Record".
 */
#include "bpf/context_walk.h"
#include "sampling/runtimes/process_context.h"

#define THREAD_LABELS_MAX 32

struct thread_context {
        uint8_t trace_id[16]; /* all zero: none */
        uint8_t span_id[8];
        struct context_label labels[THREAD_LABELS_MAX]; /* values are in texts, keys too or borrowed; keys are unique */
        size_t label_count;
        char texts[CONTEXT_ATTRIBUTES_MAX];
};

/**
 * @param words  of the context; count 0: none.
 * @param names  of numbered attributes; those without a name are left out. Borrowed by ret.
 */
void thread_context_decode(const uint64_t *words, uint32_t count, const struct process_context *names,
                           struct thread_context *ret);

#endif
