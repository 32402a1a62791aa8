/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CAIRN_BPF_HOTSPOT_FRAME_H
#define CAIRN_BPF_HOTSPOT_FRAME_H

/*
 * Unwinds a frame of HotSpot (bpf/hotspot_walk.h): in the kernel, and in user space for tests. The includer defines
 * HOTSPOT_READ(to, size, addr), nonzero on failure, and HOTSPOT_FUNCTION, the qualifiers of these functions: the
 * verifier checks a global function once, and not for each frame of a stack.
 */
#include "bpf/hotspot_step.h"

/* The block that contains the pc, from the map of its heap. 0: none. */
HOTSPOT_FUNCTION __u64 hotspot_find_block(const struct hotspot_heap *h, __u64 pc)
{
        __u64 segment;
        __u32 bits;
        __u8 back;

        if (!h || pc - h->start >= h->bytes)
                return 0;
        bits = h->segment_bits & 31;
        segment = (pc - h->start) >> bits;
        for (int i = 0; i < HOTSPOT_HOPS_MAX; i++) {
                if (HOTSPOT_READ(&back, sizeof back, h->segments + segment) || back == 255)
                        return 0; /* 255: free */
                if (!back)
                        return h->start + (segment << bits);
                if (back > segment)
                        return 0;
                segment -= back;
        }
        return 0;
}

/* Set w->blob and w->bytes to the blob that contains w->pc. 0: there is none. */
HOTSPOT_FUNCTION int hotspot_find_blob(struct hotspot_walk *w)
{
        __u64 block = 0;

        if (!w)
                return 0;
        for (int i = 0; i < HOTSPOT_HEAPS_MAX && !block; i++)
                block = hotspot_find_block(&w->process.heaps[i], w->pc);
        if (!block)
                return 0;
        w->blob = block + w->process.block_header;
        return !HOTSPOT_READ(w->bytes, HOTSPOT_BLOB_BYTES, w->blob);
}

/*
 * A frame of the interpreter. Its words are 8 below the frame pointer, that, and the return address. The caller's stack
 * pointer is above it, or, after a call through a method handle, at the return address, since that dropped an argument.
 */
HOTSPOT_FUNCTION int hotspot_read_interpreted(struct hotspot_walk *w)
{
        __u64 method, sender_sp, bytecode, code;
        int step = HOTSPOT_NO_FRAME;
        __u16 code_bytes = 0;

        if (!w)
                return HOTSPOT_LOST;
        if (w->is_leaf && hotspot_is_entering(w)) {
                w->words[0] = sample_frame_pack(SAMPLE_FRAME_HOTSPOT, w->rbx);
                w->words[1] = HOTSPOT_INTERPRETED;
                step = hotspot_step_from_entry(w);
        } else if (w->is_leaf) {
                step = hotspot_step_from_exit(w);
        }
        if (step != HOTSPOT_NO_FRAME)
                return step;
        if (w->fp - w->sp > HOTSPOT_FRAME_MAX || (w->is_leaf && w->fp - w->sp < w->process.frame_bytecode * 8ull) ||
            HOTSPOT_READ(w->slots, HOTSPOT_SLOTS * sizeof *w->slots, w->fp - 64))
                return HOTSPOT_LOST;
        method = w->slots[5];
        sender_sp = w->slots[7];
        bytecode = w->process.frame_bytecode == 8 ? w->slots[0] : w->slots[1];
        if (sender_sp < w->fp + 8 || sender_sp - w->fp > HOTSPOT_FRAME_MAX || !method || (method & 7) ||
            HOTSPOT_READ(&code, sizeof code, method + w->process.method_const) || !code)
                return HOTSPOT_LOST;
        if (w->is_leaf && bytecode &&
            !HOTSPOT_READ(&code_bytes, sizeof code_bytes, code + w->process.const_code_bytes) &&
            w->r13 - code - w->process.const_bytes < code_bytes) /* the slot is of the last call */
                bytecode = w->r13;
        if (bytecode && bytecode - code >= HOTSPOT_CODE_MAX) /* 0: a native method */
                return HOTSPOT_LOST;
        w->words[0] = sample_frame_pack(SAMPLE_FRAME_HOTSPOT, method);
        w->words[1] = HOTSPOT_INTERPRETED | (bytecode & SAMPLE_FRAME_ADDRESS_MAX);
        w->pc = w->slots[9];
        w->sp = sender_sp;
        w->fp = w->slots[8];
        return HOTSPOT_STEPPED;
}

/*
 * A stub: the nearest word that is an address in the code cache is the return address. Stubs without one, such as the
 * one that C++ calls to call Java code, have frame pointers. The barrier at the entry of methods has a word -1 between
 * that and the return address.
 */
HOTSPOT_FUNCTION int hotspot_read_stub(struct hotspot_walk *w)
{
        __u64 at;
        int step;

        if (!w)
                return HOTSPOT_LOST;
        if (w->is_leaf) {
                step = hotspot_step_from_adapter(w);
                if (step == HOTSPOT_NO_FRAME)
                        step = hotspot_step_from_handler(w);
                if (step != HOTSPOT_NO_FRAME)
                        return step;
        }
        if (w->is_leaf && !HOTSPOT_READ(w->slots, sizeof w->slots, w->sp)) {
                for (int i = 0; i < HOTSPOT_STUB_SLOTS; i++) {
                        at = w->sp + i * sizeof at;
                        if (at == w->fp + 8)
                                break;
                        if (hotspot_is_code(w, w->slots[i]))
                                return hotspot_step_to(w, at + 8, w->fp);
                }
        }
        if (w->fp < w->sp || hotspot_step_over(w, w->fp + 16) == HOTSPOT_LOST)
                return HOTSPOT_LOST;
        return w->pc == ~0ull ? hotspot_step_to(w, w->sp + 8, w->fp) : HOTSPOT_STEPPED;
}

/* The address at which a deoptimized frame would have continued, if it has that of the handler. */
HOTSPOT_FUNCTION __u64 hotspot_find_original_pc(struct hotspot_walk *w)
{
        __u64 handler, pc;
        __s32 offset;

        if (!w)
                return 0;
        handler = w->process.deopt_is_pointer ? hotspot_get_word(w, w->process.blob_deopt)
                                              : w->blob + hotspot_get_int(w, w->process.blob_deopt);
        if (w->pc != handler || HOTSPOT_READ(&offset, sizeof offset, w->blob + w->process.blob_original_pc) ||
            offset < 0 || HOTSPOT_READ(&pc, sizeof pc, w->sp + offset) || pc - w->blob > HOTSPOT_CODE_EXACT - 1)
                return w->pc;
        return pc;
}

/*
 * Step over the frame of compiled code that was interrupted. It is called from the code cache only; code that computes
 * remainders (fprem) has one or two words more on the stack meanwhile.
 */
HOTSPOT_FUNCTION int hotspot_step_over_leaf(struct hotspot_walk *w, __u64 bytes)
{
        __u64 sp;
        int step;

        if (!w)
                return HOTSPOT_LOST;
        sp = w->sp;
        step = hotspot_step_over(w, sp + bytes);
        for (int i = 1; i <= 2 && step == HOTSPOT_STEPPED && !hotspot_is_code(w, w->pc); i++) {
                w->sp = sp;
                step = hotspot_step_over(w, sp + bytes + i * 8);
        }
        return step;
}

HOTSPOT_FUNCTION int hotspot_read_compiled(struct hotspot_walk *w)
{
        __u32 words, compilation = 0;
        __u64 bytes, code;

        if (!w || !hotspot_find_blob(w))
                return HOTSPOT_NO_FRAME;
        words = hotspot_get_int(w, w->process.blob_frame_size);
        if (HOTSPOT_READ(&compilation, sizeof compilation, w->blob + w->process.blob_compilation))
                compilation = 0;
        code = w->is_leaf ? w->pc : hotspot_find_original_pc(w);
        w->words[0] = sample_frame_pack(SAMPLE_FRAME_HOTSPOT, w->blob);
        w->words[1] = (__u64)(compilation & 0x7fffffff) << 32 | ((code - w->blob) & (HOTSPOT_CODE_EXACT - 1)) |
                      (w->is_leaf ? HOTSPOT_CODE_EXACT : 0);
        if (w->is_leaf && HOTSPOT_READ(w->code, HOTSPOT_CODE_WINDOW, w->pc - HOTSPOT_CODE_BEFORE))
                __builtin_memset(w->code, 0, sizeof w->code);
        if (hotspot_is_interpreter(w, w->pc))
                return hotspot_read_interpreted(w);
        if (!words || words > HOTSPOT_FRAME_MAX / 8)
                return hotspot_read_stub(w);
        bytes = words * 8ull;
        code = w->process.code_is_pointer ? hotspot_get_word(w, w->process.blob_code)
                                          : w->blob + hotspot_get_int(w, w->process.blob_code);
        if (w->is_leaf) {
                if (hotspot_step_from_handler(w) == HOTSPOT_STEPPED)
                        return HOTSPOT_STEPPED;
                bytes = hotspot_measure_leaf(w, bytes, code);
                if (bytes == 8 || hotspot_saves_pointer(w))
                        return hotspot_step_to(w, w->sp + bytes, w->fp);
                return hotspot_step_over_leaf(w, bytes);
        }
        return hotspot_step_over(w, w->sp + bytes);
}

/* Record the frame at w->pc, and step to its caller. */
HOTSPOT_FUNCTION int hotspot_read_frame(struct hotspot_walk *w)
{
        if (!w)
                return HOTSPOT_NO_FRAME;
        if (!w->is_leaf && hotspot_is_interpreter(w, w->pc)) { /* its blob is not needed */
                w->words[0] = sample_frame_pack(SAMPLE_FRAME_HOTSPOT, w->pc);
                w->words[1] = HOTSPOT_INTERPRETED;
                return hotspot_read_interpreted(w);
        }
        return hotspot_read_compiled(w);
}

#endif
