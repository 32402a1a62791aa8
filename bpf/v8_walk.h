/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CAIRN_BPF_V8_WALK_H
#define CAIRN_BPF_V8_WALK_H

/**
 * @file
 * Recognizes the frames of JavaScript functions of V8 7.8 to 14 (Node.js 12 to 26).
 *
 * V8 keeps frame pointers in built-in and generated code, and each frame of a JavaScript function has its context
 * and its JSFunction at fixed offsets below the frame pointer; a frame of another kind has a small integer (Smi) in the
 * place of the context. A frame of the interpreter also has its BytecodeArray and the offset of a bytecode. The native
 * unwinder walks these frames; this part replaces the native frame by a reference.
 *
 * The garbage collector moves objects. The stack refers to a JSFunction, which may be young and moves soon, so its
 * SharedFunctionInfo is read here: that one is allocated among old objects, which move only when the heap is
 * compacted. Its type is checked here as well, so that other code without unwind tables is never taken for JavaScript.
 *
 * An interrupted bytecode handler has its position in registers, and the frame may hold that of an earlier call. The
 * registers may be in use for something else; they count if the interpreter's table of handlers has the interrupted
 * code for the bytecode that they name. Else the position is unknown.
 *
 * Pointers to objects have the low bits 01. Smis have 32 zero bits; pointer compression is refused by the agent.
 *
 * Plain C for BPF and user space; the caller reads memory. Source: V8 src/execution/frame-constants.h,
 * x64/register-x64.h.
 */
#include "bpf/sample.h"

/** Constants of a V8 build. Offsets are from the start of an object; a pointer to it is one more. */
struct v8_layout {
        __u16 shared_type;    /* instance type of SharedFunctionInfo */
        __u16 map_type;       /* offset of the instance type in a Map */
        __u8 function_shared; /* offset of the SharedFunctionInfo in a JSFunction */
        __u8 fp_bytecode;     /* the frame pointer minus the address of the BytecodeArray; the offset is below */
        __u8 reserved[2];
};

#define V8_LAYOUTS_MAX 64u    /* entry 0 is unused */
#define V8_WORDS_MAX 3        /* of a frame with its native one */
#define V8_SLOTS 5            /* words below the frame pointer */
#define V8_HANDLER_BYTES 2048 /* a handler of a bytecode is shorter */

/*
 * The second word of a frame: an address in the code of the function or, marked, an offset in its bytecode; 0:
 * unknown.
 */
#define V8_POSITION_BYTECODE (1ull << 63)
#define V8_POSITION_EXACT (1ull << 62) /* an address that was interrupted, not a return address */

struct v8_walk {
        struct v8_layout layout;
        __u64 fp, pc;
        __u32 is_generated; /* the code is in no file */
        __u32 is_leaf;      /* interrupted there */
        __u32 keeps_native; /* the code is not the function's own, such as a built-in function that it called */
        __u32 reserved;
        __u64 shared_map; /* the Map of SharedFunctionInfo that was seen last */
        __u64 slots[V8_SLOTS];
        __u64 words[2];
};

static inline __attribute__((always_inline)) int v8_is_object(__u64 word)
{
        return (word & 3) == 1;
}

static inline __attribute__((always_inline)) int v8_is_smi(__u64 word)
{
        return !(word & 0xffffffffull);
}

#endif
