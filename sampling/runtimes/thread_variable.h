/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_RUNTIMES_THREAD_VARIABLE_H
#define CAIRN_SAMPLING_RUNTIMES_THREAD_VARIABLE_H

/**
 * @file
 * Finds the thread-local variable of context_symbols.h in a running process: at a fixed distance from the thread
 * pointer, or in a numbered module, as the dynamic linker decided.
 *
 * Threads: no shared state.
 */
#include "bpf/context_walk.h"
#include "sampling/runtimes/context_symbols.h"
#include "sampling/runtimes/python_layout.h"

enum thread_variable_state {
        THREAD_VARIABLE_FOUND,
        THREAD_VARIABLE_UNRESOLVED, /* the dynamic linker has not written its place yet */
        THREAD_VARIABLE_REFUSED,
};

/**
 * @param s  addresses in the process.
 * @param is_musl  the C library of the process: else glibc.
 * @param ret, refusal_ret  set for the first and the last state.
 */
enum thread_variable_state thread_variable_find(const struct process_memory *m, const struct context_symbols *s,
                                                bool is_musl, struct context_process *ret,
                                                struct runtime_refusal *refusal_ret);

#endif
