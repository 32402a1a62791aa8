/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CAIRN_BPF_PYTHON_WALK_H
#define CAIRN_BPF_PYTHON_WALK_H

/**
 * @file
 * Walks the frames of a CPython thread, 3.8 to 3.15, and places them between its native frames.
 *
 * Problem: since 3.11 a call from Python to Python stays inside one activation of the interpreter's loop, so one
 * native frame stands for a run of Python frames, from the innermost to the one that C code called. Extensions and
 * builtins that call back into Python start another activation, hence another run.
 *
 * Model: each activation has a local variable through which the interpreter links the run: the _PyCFrame of 3.11, an
 * entry frame since 3.12, which ends the run and is not shown. Its address, the anchor, lies between the stack pointer
 * and the CFA of the activation's own native frame. A native frame whose bounds contain the anchor of the next run is
 * replaced by the run. Neither names nor address ranges of the loop are needed, so it may be split, inlined or made of
 * tail calls. An activation that was interrupted before it linked its run, or after it unlinked it, is not replaced.
 *
 * Before 3.11 each frame is a run of its own. 3.10 has a CFrame in each activation already. 3.8 and 3.9 have nothing of
 * that kind: there a native frame is replaced when its pc is in the loop's function.
 *
 * Rejected: counting runs and loops, which is off by one for the rest of the stack in that case; taking the thread
 * state from the interpreter's own thread-local variable, which is NULL while a thread does not hold the GIL.
 *
 * A hostile process can invent all of this memory. Each read is of constant size, a run has at most PYTHON_RUN_MAX
 * frames, each frame of a run is one step, and runs are bounded by the native frames.
 *
 * Plain C for BPF and user space; the caller reads memory. Source: CPython Include/internal/pycore_frame.h,
 * pycore_interpframe_structs.h, pycore_pystate.h.
 */
#include "bpf/sample.h"

#define PYTHON_RUN_MAX 1024               /* frames of a run: the default recursion limit is 1000 */
#define PYTHON_FRAME_BYTES 88             /* of the interpreter's frame, read at once */
#define PYTHON_OLD_FRAME_BYTES 112        /* of the frame object, before 3.11 */
#define PYTHON_WORDS_MAX SAMPLE_STACK_MAX /* even */

#define PYTHON_OWNER_GENERATOR 1 /* of frames; the same in all versions */
#define PYTHON_OWNER_ENTRY 3     /* this and larger ones: an entry frame, since 3.12 */

/* Detail of a frame: byte offset of its instruction from the code object; set in a generator's frame, which is never
 * incomplete. Before 3.11: f_lasti, as 32 bits. */
#define PYTHON_DETAIL_GENERATOR (1ull << 63)

/**
 * Where a process keeps the frames of a thread. Offsets in frames are below the size that is read.
 */
struct python_process {
        __u64 key_offset;   /* of the thread state, from the thread pointer; 0: the interpreters' lists are searched */
        __u64 interpreters; /* address of the pointer to the first interpreter */
        __u64 eval_start;   /* 3.8 and 3.9: the loop's function */
        __u32 eval_bytes;   /* 0: native frames are recognized by anchors */
        __u16 state_thread_id; /* in the thread state: equal to the thread pointer */
        __u16 state_frame;     /* the current frame, or the _PyCFrame that refers to it */
        __u16 state_cframe;    /* 3.10: the CFrame; 0: none */
        __u16 state_next;
        __u16 interpreter_next, interpreter_threads;
        __u8 cframe_frame, cframe_previous;
        __u8 has_cframe; /* state_frame is a _PyCFrame */
        __u8 frame_code, frame_previous, frame_position, frame_owner;
        __u8 frame_is_entry; /* 3.11: of the flag that ends a run; else 0 */
        __u8 is_old;         /* before 3.11: each frame is a run, and has a 32-bit position */
        __u8 reserved[15];
};
_Static_assert(sizeof(struct python_process) == 64, "a cache line");

#define PYTHON_PROCESSES_MAX 4096u /* entry 0 is unused */
#define PYTHON_THREADS_MAX 1024    /* thread states and interpreters searched for a thread */

/** State of one walk. */
struct python_walk {
        struct python_process process;
        __u64 thread_pointer;
        __u64 state;       /* of the thread; while it is searched, the next one to examine */
        __u64 interpreter; /* the next one to search */
        __u64 frame;       /* the next one; 0: none */
        __u64 cframe;      /* of the next run, 3.10 and 3.11 */
        __u64 anchor;      /* of the run in words; 0: none */
        __u32 eval_bytes;  /* of process while there is a run; else 0 */
        __u32 word_count;  /* of the run */
        __u32 is_unreadable;
        __u32 reserved;
        __u8 bytes[PYTHON_OLD_FRAME_BYTES + 24]; /* the frame that was read; reads at any 7-bit offset stay inside */
        __u64 words[PYTHON_WORDS_MAX];           /* the run, innermost frame first; frames past the end are left out */
};

static inline __attribute__((always_inline)) __u64 python_get_word(const struct python_walk *w, __u8 offset)
{
        return *(const __u64 *)(w->bytes + (offset & 0x78));
}

/** Whether a native frame is the activation of the run: sp and cfa bound it, pc is in its code. */
static inline __attribute__((always_inline)) int python_is_activation(const struct python_walk *w, __u64 sp, __u64 cfa,
                                                                      __u64 pc)
{
        return w->anchor - sp < cfa - sp || (w->eval_bytes && pc - w->process.eval_start < w->eval_bytes);
}

static inline __attribute__((always_inline)) void python_add_words(struct python_walk *w, __u64 code, __u64 detail)
{
        __u32 n = w->word_count;

        if (n <= PYTHON_WORDS_MAX - 2) {
                w->words[n] = sample_frame_pack(SAMPLE_FRAME_CPYTHON, code);
                w->words[n + 1] = detail;
                w->word_count = n + 2;
        }
}

/** Add the frame in w->bytes to the run. Returns 1 when the run ends with it. */
static inline __attribute__((always_inline)) int python_add_frame(struct python_walk *w)
{
        __u64 code = python_get_word(w, w->process.frame_code) & ~3ull; /* 3.14 has tags in the low bits */
        __u64 detail = python_get_word(w, w->process.frame_position) - code, address = w->frame;
        __u8 owner = w->bytes[w->process.frame_owner & 0x7f];

        w->frame = python_get_word(w, w->process.frame_previous);
        if (w->process.is_old) {
                python_add_words(w, code, (__u32)(detail + code));
                return 1;
        }
        if (!w->process.frame_is_entry && owner >= PYTHON_OWNER_ENTRY) {
                w->anchor = address;
                return 1;
        }
        python_add_words(w, code,
                         (detail & ~PYTHON_DETAIL_GENERATOR) |
                                 (owner == PYTHON_OWNER_GENERATOR ? PYTHON_DETAIL_GENERATOR : 0));
        return w->process.frame_is_entry && w->bytes[w->process.frame_is_entry & 0x7f];
}

#endif
