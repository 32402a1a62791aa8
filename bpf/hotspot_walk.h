/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CAIRN_BPF_HOTSPOT_WALK_H
#define CAIRN_BPF_HOTSPOT_WALK_H

/**
 * @file
 * Finds and unwinds frames of Java code in HotSpot, the virtual machine of OpenJDK 8 to 27, on x86-64.
 *
 * All code that HotSpot generates lies in its code cache, in one to four heaps. A heap is divided into segments, and a
 * byte for each, in a map of the heap, leads to the start of the block that contains it. A block begins with a
 * CodeBlob, which states the size of its frames. So compiled code needs no frame pointer and no table: the return
 * address is at the top of a frame of that size, below the caller's stack pointer, and the frame pointer was saved
 * below it.
 *
 * - Interpreted methods have frame pointers, and the Method and the current bytecode at fixed offsets below.
 * - Blobs without a frame size are stubs in assembly language. Those that call Java code have frame pointers; others
 * run on the frame of their caller, or push a few words.
 * - Compiled code that was interrupted before its frame was set up, or after it was released, is recognized by the
 *   instructions before and at the pc: `push rbp; sub rsp, n` and `add rsp, n; pop rbp`.
 * - The return address is in a register (rax), and the caller's stack pointer in another (r13), for some instructions
 * at the entry of an interpreted method and in adapters between compiled and interpreted code. When an interpreted
 *   method returns, they are in r13 and rbx.
 * - A method that was deoptimized while it was calling has the address of its deoptimization handler in place of the
 *   return address, which is then in a slot of the frame.
 *
 * A frame is recorded as a reference: the blob, with the offset of the pc and the number of the compilation, which
 * distinguishes methods compiled to one address one after the other; or the Method and the address of the bytecode. The
 * agent reads names and inlined methods.
 *
 * Plain C for BPF and user space; the caller reads memory. Offsets come from the process (hotspot_layout.h), so they
 * are masked. Source: OpenJDK share/memory/heap.cpp, share/code/codeBlob.hpp, nmethod.hpp, cpu/x86/frame_x86.hpp,
 * macroAssembler_x86.cpp (verified_entry).
 */
#include "bpf/sample.h"

/** A heap of the code cache. */
struct hotspot_heap {
        __u64 start;
        __u64 segments;     /* address of the map, with a byte for each segment */
        __u32 bytes;        /* reserved; 0: the heap does not exist */
        __u32 segment_bits; /* binary logarithm of the size of a segment */
};

#define HOTSPOT_HEAPS_MAX 4
#define HOTSPOT_BLOB_BYTES 192 /* of a CodeBlob, with all fields that are read but the following */

/** Code and structures of a process. Offsets are from the start of a CodeBlob, unless noted. */
struct hotspot_process {
        struct hotspot_heap heaps[HOTSPOT_HEAPS_MAX];
        __u64 code; /* of all heaps */
        __u64 interpreter;
        __u32 code_bytes, interpreter_bytes;
        __u16 block_header;           /* bytes before a CodeBlob */
        __u16 blob_frame_size;        /* 4 bytes, in words */
        __u16 blob_frame_complete;    /* offset in the code at which the frame is set up */
        __u16 blob_code;              /* where the code begins */
        __u16 blob_deopt;             /* the deoptimization handler */
        __u16 blob_original_pc;       /* 4 bytes, the offset of the slot in the frame; beyond HOTSPOT_BLOB_BYTES */
        __u16 blob_compilation;       /* 4 bytes, likewise */
        __u16 method_entry;           /* in a Method: the address of its code in the interpreter */
        __u16 method_const;           /* in a Method: its ConstMethod, which has the bytecode */
        __u8 code_is_pointer;         /* else 4 bytes, an offset */
        __u8 deopt_is_pointer;        /* likewise */
        __u8 frame_complete_is_short; /* 2 bytes, else 4 */
        __u8 frame_bytecode;          /* words between the address of the bytecode and the frame pointer: 7 or 8 */
        __u8 const_bytes;             /* of a ConstMethod; the bytecode follows */
        __u8 const_code_bytes;        /* in a ConstMethod, 2 bytes: the size of the bytecode */
};
_Static_assert(sizeof(struct hotspot_process) == 144, "no padding");

#define HOTSPOT_PROCESSES_MAX 2048u /* entry 0 is unused */
#define HOTSPOT_WORDS 2             /* of a frame */

/*
 * The second word of a frame. Interpreted: this bit, and the address of the bytecode, 0 if it is unknown. Else: the
 * number of the compilation in the upper half, HOTSPOT_CODE_EXACT for a pc that was interrupted, and the offset of the
 * pc in the blob.
 */
#define HOTSPOT_INTERPRETED (1ull << 63)
#define HOTSPOT_CODE_EXACT (1u << 31)

#define HOTSPOT_HOPS_MAX 64            /* in the map of a heap: blocks of at most 2 MiB */
#define HOTSPOT_CODE_MAX (65536 + 256) /* bytes of a ConstMethod with its bytecode */
#define HOTSPOT_FRAME_MAX (1u << 20)   /* bytes of a frame */
#define HOTSPOT_ENTRY_BYTES 1024       /* of the code that sets up the frame of an interpreted method */
#define HOTSPOT_SLOTS 10               /* words of an interpreted frame that are read: 8 below the frame pointer */
#define HOTSPOT_STUB_SLOTS 16          /* words of a stub's frame that are searched for a return address */
#define HOTSPOT_CODE_BEFORE 24         /* bytes of code that are read to recognize prologues and epilogues */
#define HOTSPOT_CODE_WINDOW (HOTSPOT_CODE_BEFORE + 16)

enum hotspot_step {
        HOTSPOT_NO_FRAME, /* the pc is not in the code cache: nothing changed */
        HOTSPOT_STEPPED,  /* words is the frame; pc, sp and fp are the caller's */
        HOTSPOT_LOST,     /* words is the frame, the caller is not found */
};

struct hotspot_walk {
        struct hotspot_process process;
        __u64 pc, sp, fp;
        __u64 rax, rbx, rdx, r13; /* of an interrupted frame */
        __u32 is_leaf;            /* interrupted at pc */
        __u32 reserved;
        __u64 words[HOTSPOT_WORDS];
        __u64 blob; /* that contains pc */
        __u64 slots[HOTSPOT_STUB_SLOTS];
        __u8 code[HOTSPOT_CODE_WINDOW + 8];
        __u8 bytes[256 + 8]; /* of the CodeBlob; reads at any 8-bit offset stay inside */
};

static inline __attribute__((always_inline)) __u64 hotspot_get_word(const struct hotspot_walk *w, __u16 offset)
{
        return *(const __u64 *)(w->bytes + (offset & 0xf8));
}

static inline __attribute__((always_inline)) __u32 hotspot_get_int(const struct hotspot_walk *w, __u16 offset)
{
        return *(const __u32 *)(w->bytes + (offset & 0xfc));
}

static inline __attribute__((always_inline)) __u16 hotspot_get_short(const struct hotspot_walk *w, __u16 offset)
{
        return *(const __u16 *)(w->bytes + (offset & 0xfe));
}

/** Whether the address is in the code cache. */
static inline __attribute__((always_inline)) int hotspot_is_code(const struct hotspot_walk *w, __u64 address)
{
        return address - w->process.code < w->process.code_bytes;
}

static inline __attribute__((always_inline)) int hotspot_is_interpreter(const struct hotspot_walk *w, __u64 address)
{
        return address - w->process.interpreter < w->process.interpreter_bytes;
}

#endif
