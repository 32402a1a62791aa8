/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CAIRN_BPF_PYTHON_RUN_H
#define CAIRN_BPF_PYTHON_RUN_H

/*
 * Reads runs of Python frames (bpf/python_walk.h): in the kernel, and in user space for tests. The includer defines
 * PYTHON_READ(to, size, addr), nonzero on failure, and PYTHON_FUNCTION, the qualifiers of these functions: the
 * verifier checks a global function once, and not for each of the PYTHON_RUN_MAX frames.
 */
#include "bpf/python_walk.h"

/* Add the next frame to the run. 1 at the run's end. */
PYTHON_FUNCTION int python_read_frame(struct python_walk *w)
{
        long failed;

        if (!w || !w->frame)
                return 1;
        if (w->process.is_old)
                failed = PYTHON_READ(w->bytes, PYTHON_OLD_FRAME_BYTES, w->frame);
        else
                failed = PYTHON_READ(w->bytes, PYTHON_FRAME_BYTES, w->frame);
        if (failed) {
                w->frame = 0;
                w->is_unreadable = 1;
                return 1;
        }
        return python_add_frame(w);
}

/* Read the next run. Its anchor is 0 when there is none. */
PYTHON_FUNCTION int python_read_run(struct python_walk *w)
{
        int is_whole = 0, has_cframe;

        if (!w)
                return 0;
        w->word_count = 0;
        w->anchor = 0;
        w->eval_bytes = 0;
        if (!w->frame)
                return 0;
        has_cframe = w->process.frame_is_entry || w->process.state_cframe;
        if (has_cframe)
                w->anchor = w->cframe;
        for (int i = 0; i < PYTHON_RUN_MAX && !is_whole; i++)
                is_whole = python_read_frame(w);
        if (w->word_count)
                w->eval_bytes = w->process.eval_bytes;
        if (!is_whole ||
            (has_cframe && PYTHON_READ(&w->cframe, sizeof w->cframe, w->cframe + w->process.cframe_previous))) {
                w->frame = 0;
                w->is_unreadable = 1;
        }
        return 0;
}

/* Examine w->state or, after the last one of a list, the next interpreter. 1: w->state is the thread's, or 0. */
PYTHON_FUNCTION int python_examine_state(struct python_walk *w)
{
        __u64 id, next;

        if (!w || (!w->state && !w->interpreter))
                return 1;
        if (!w->state) {
                next = w->interpreter;
                w->interpreter = 0;
                if (PYTHON_READ(&w->state, sizeof w->state, next + w->process.interpreter_threads))
                        w->state = 0;
                if (PYTHON_READ(&w->interpreter, sizeof w->interpreter, next + w->process.interpreter_next))
                        w->interpreter = 0;
                return 0;
        }
        if (PYTHON_READ(&id, sizeof id, w->state + w->process.state_thread_id)) {
                w->state = 0;
                return 1;
        }
        if (id == w->thread_pointer)
                return 1;
        if (PYTHON_READ(&w->state, sizeof w->state, w->state + w->process.state_next))
                w->state = 0;
        return 0;
}

/* Search the lists of all interpreters for the state of the thread; 0 in w->state when there is none. */
PYTHON_FUNCTION int python_search_state(struct python_walk *w)
{
        int is_found = 0;

        if (!w)
                return 0;
        w->state = 0;
        if (PYTHON_READ(&w->interpreter, sizeof w->interpreter, w->process.interpreters))
                w->interpreter = 0;
        for (int i = 0; i < PYTHON_THREADS_MAX && !is_found; i++)
                is_found = python_examine_state(w);
        if (!is_found)
                w->state = 0;
        return 0;
}

/* Read the first run of the thread whose state is w->state. 1: the state is another thread's. */
PYTHON_FUNCTION int python_begin_state(struct python_walk *w)
{
        __u64 id, frame;

        if (!w)
                return 1;
        w->frame = 0;
        w->anchor = 0;
        w->eval_bytes = 0;
        w->word_count = 0;
        if (PYTHON_READ(&id, sizeof id, w->state + w->process.state_thread_id) || id != w->thread_pointer)
                return 1;
        w->is_unreadable = 1;
        if (PYTHON_READ(&frame, sizeof frame, w->state + w->process.state_frame))
                return 0;
        w->cframe = frame;
        if (w->process.has_cframe && PYTHON_READ(&frame, sizeof frame, frame + w->process.cframe_frame))
                return 0;
        if (w->process.state_cframe && PYTHON_READ(&w->cframe, sizeof w->cframe, w->state + w->process.state_cframe))
                return 0;
        w->is_unreadable = 0;
        w->frame = frame;
        return python_read_run(w);
}

/* Find the frames of the thread with this thread pointer in w->process, by its key, and read the first run. */
PYTHON_FUNCTION int python_begin(struct python_walk *w, __u64 thread_pointer)
{
        if (!w)
                return 0;
        w->frame = 0;
        w->anchor = 0;
        w->eval_bytes = 0;
        w->word_count = 0;
        w->thread_pointer = thread_pointer;
        /* A thread that never ran Python has no state. */
        if (PYTHON_READ(&w->state, sizeof w->state, thread_pointer + w->process.key_offset) || !w->state)
                return 0;
        python_begin_state(w);
        return 0;
}

#endif
