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
        if (!w || !w->frame)
                return 1;
        if (PYTHON_READ(w->bytes, PYTHON_FRAME_BYTES, w->frame)) {
                w->frame = 0;
                w->is_unreadable = 1;
                return 1;
        }
        return python_add_frame(w);
}

/* Read the next run. Its anchor is 0 when there is none. */
PYTHON_FUNCTION int python_read_run(struct python_walk *w)
{
        int is_whole = 0;

        if (!w)
                return 0;
        w->word_count = 0;
        w->anchor = 0;
        if (!w->frame)
                return 0;
        if (w->process.frame_is_entry)
                w->anchor = w->cframe;
        for (int i = 0; i < PYTHON_RUN_MAX && !is_whole; i++)
                is_whole = python_read_frame(w);
        if (!is_whole || (w->process.frame_is_entry &&
                          PYTHON_READ(&w->cframe, sizeof w->cframe, w->cframe + w->process.cframe_previous))) {
                w->frame = 0;
                w->is_unreadable = 1;
        }
        return 0;
}

/* Find the frames of the thread with this thread pointer in w->process, and read the first run. */
PYTHON_FUNCTION int python_begin(struct python_walk *w, __u64 thread_pointer)
{
        __u64 state, id, frame;

        if (!w)
                return 0;
        w->frame = 0;
        w->anchor = 0;
        w->word_count = 0;
        /* A thread that never ran Python has no state. */
        if (PYTHON_READ(&state, sizeof state, thread_pointer + w->process.key_offset) || !state)
                return 0;
        if (PYTHON_READ(&id, sizeof id, state + w->process.state_thread_id) || id != thread_pointer)
                return 0;
        w->is_unreadable = 1;
        if (PYTHON_READ(&frame, sizeof frame, state + w->process.state_frame))
                return 0;
        w->cframe = frame;
        if (w->process.has_cframe && PYTHON_READ(&frame, sizeof frame, frame + w->process.cframe_frame))
                return 0;
        w->is_unreadable = 0;
        w->frame = frame;
        return python_read_run(w);
}

#endif
