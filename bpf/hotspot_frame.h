/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CAIRN_BPF_HOTSPOT_FRAME_H
#define CAIRN_BPF_HOTSPOT_FRAME_H

/*
 * Unwinds a frame of HotSpot (bpf/hotspot_walk.h): in the kernel, and in user space for tests. The includer defines
 * HOTSPOT_READ(to, size, addr), nonzero on failure, and HOTSPOT_FUNCTION, the qualifiers of these functions: the
 * verifier checks a global function once, and not for each frame of a stack.
 */
#include "bpf/hotspot_walk.h"

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

/* Make the frame's caller current: cfa is its stack pointer, and the return address is below. */
HOTSPOT_FUNCTION int hotspot_step_to(struct hotspot_walk *w, __u64 cfa, __u64 fp)
{
        __u64 pc;

        if (!w || cfa <= w->sp || cfa - w->sp > HOTSPOT_FRAME_MAX || HOTSPOT_READ(&pc, sizeof pc, cfa - 8))
                return HOTSPOT_LOST;
        w->pc = pc;
        w->sp = cfa;
        w->fp = fp;
        return HOTSPOT_STEPPED;
}

/* The same, when the frame pointer was saved below the return address. */
HOTSPOT_FUNCTION int hotspot_step_over(struct hotspot_walk *w, __u64 cfa)
{
        if (!w || cfa <= w->sp || cfa - w->sp > HOTSPOT_FRAME_MAX ||
            HOTSPOT_READ(w->slots, 2 * sizeof *w->slots, cfa - 16))
                return HOTSPOT_LOST;
        w->fp = w->slots[0];
        w->pc = w->slots[1];
        w->sp = cfa;
        return HOTSPOT_STEPPED;
}

/*
 * Whether the pc is in the entry of this Method. The register has other methods as well: in the code that calls through
 * an interface it is the abstract one, until the one to call is found.
 */
HOTSPOT_FUNCTION int hotspot_is_entering(const struct hotspot_walk *w, __u64 method)
{
        __u64 entry;

        return w && method && !(method & 7) && !HOTSPOT_READ(&entry, sizeof entry, method + w->process.method_entry) &&
               hotspot_is_interpreter(w, entry) && w->pc - entry < HOTSPOT_ENTRY_BYTES;
}

/*
 * A method that is called or has just released its frame in the interpreter: the return address is at the top. Until
 * the pc is in the entry of the method the frame is the interpreter's own.
 */
HOTSPOT_FUNCTION int hotspot_read_entered(struct hotspot_walk *w)
{
        if (!w || HOTSPOT_READ(w->slots, sizeof *w->slots, w->sp) || !hotspot_is_code(w, w->slots[0]))
                return HOTSPOT_NO_FRAME;
        if (hotspot_is_entering(w, w->method)) {
                w->words[0] = sample_frame_pack(SAMPLE_FRAME_HOTSPOT, w->method);
                w->words[1] = HOTSPOT_INTERPRETED;
        }
        return hotspot_step_to(w, w->sp + 8, w->fp);
}

/*
 * A frame of the interpreter. Its words are 8 below the frame pointer, that, and the return address. The caller's stack
 * pointer is above it, or, after a call through a method handle, at the return address, since that dropped an argument.
 */
HOTSPOT_FUNCTION int hotspot_read_interpreted(struct hotspot_walk *w)
{
        __u64 method, sender_sp, bytecode, code;
        int entered;

        if (!w)
                return HOTSPOT_LOST;
        if (w->is_leaf) {
                entered = hotspot_read_entered(w);
                if (entered != HOTSPOT_NO_FRAME)
                        return entered;
        }
        if (w->fp < w->sp || w->fp - w->sp > HOTSPOT_FRAME_MAX ||
            HOTSPOT_READ(w->slots, HOTSPOT_SLOTS * sizeof *w->slots, w->fp - 64))
                return HOTSPOT_LOST;
        method = w->slots[5];
        sender_sp = w->slots[7];
        bytecode = w->process.frame_bytecode == 8 ? w->slots[0] : w->slots[1];
        if (sender_sp < w->fp + 8 || sender_sp - w->fp > HOTSPOT_FRAME_MAX || !method || (method & 7) ||
            HOTSPOT_READ(&code, sizeof code, method + w->process.method_const) || !code)
                return HOTSPOT_LOST;
        if (w->is_leaf && bytecode && w->bytecode - code < HOTSPOT_CODE_MAX) /* the slot is of the last call */
                bytecode = w->bytecode;
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

        if (!w)
                return HOTSPOT_LOST;
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

/* Whether `sub rsp, n` ends within the code before the pc: the frame is set up. */
HOTSPOT_FUNCTION int hotspot_has_subtracted(const struct hotspot_walk *w)
{
        if (!w)
                return 0;
        for (int i = 0; i <= HOTSPOT_CODE_BEFORE - 4; i++) {
                if (w->code[i] != 0x48 || w->code[i + 2] != 0xec)
                        continue;
                if (w->code[i + 1] == 0x83 || (w->code[i + 1] == 0x81 && i <= HOTSPOT_CODE_BEFORE - 7))
                        return 1;
        }
        return 0;
}

/* Whether the code has `add rsp, n; pop rbp`, the latter at this index, a constant. */
static inline __attribute__((always_inline)) int hotspot_is_release(const struct hotspot_walk *w, __u32 pop)
{
        if (w->code[pop] != 0x5d)
                return 0;
        return (w->code[pop - 4] == 0x48 && w->code[pop - 3] == 0x83 && w->code[pop - 2] == 0xc4) ||
               (w->code[pop - 7] == 0x48 && w->code[pop - 6] == 0x81 && w->code[pop - 5] == 0xc4);
}

/*
 * Bytes of the frame that are left at the pc in an epilogue: `add rsp, n; pop rbp`, perhaps a check for a safepoint of
 * two instructions, the first one of 4 or 7 bytes, and `ret`. 0: the pc is not in one.
 */
HOTSPOT_FUNCTION int hotspot_find_epilogue(const struct hotspot_walk *w)
{
        if (!w)
                return 0;
        if (w->code[HOTSPOT_CODE_BEFORE] == 0xc3 || hotspot_is_release(w, HOTSPOT_CODE_BEFORE - 1))
                return 8;
        if (hotspot_is_release(w, HOTSPOT_CODE_BEFORE))
                return 16;
        if (w->code[HOTSPOT_CODE_BEFORE] != 0x0f && w->code[HOTSPOT_CODE_BEFORE] != 0x41) /* ja, test [r10], eax */
                return 0;
        return hotspot_is_release(w, HOTSPOT_CODE_BEFORE - 5) || hotspot_is_release(w, HOTSPOT_CODE_BEFORE - 8) ? 8 : 0;
}

/* Whether a frame was set up, but `mov [rsp + n], rbp` has not saved the frame pointer yet. */
HOTSPOT_FUNCTION int hotspot_saves_pointer(const struct hotspot_walk *w)
{
        return w && w->code[HOTSPOT_CODE_BEFORE] == 0x48 && w->code[HOTSPOT_CODE_BEFORE + 1] == 0x89 &&
               w->code[HOTSPOT_CODE_BEFORE + 2] == 0x6c && w->code[HOTSPOT_CODE_BEFORE + 3] == 0x24;
}

/* Bytes of the frame that are on the stack at an interrupted pc, of a whole frame of that many. */
HOTSPOT_FUNCTION __u64 hotspot_measure_leaf(struct hotspot_walk *w, __u64 bytes, __u64 code)
{
        __u32 complete;
        __u64 released;

        if (!w)
                return bytes;
        complete = w->process.frame_complete_is_short
                           ? (__u32)(__s16)hotspot_get_short(w, w->process.blob_frame_complete)
                           : hotspot_get_int(w, w->process.blob_frame_complete);
        if (HOTSPOT_READ(w->code, HOTSPOT_CODE_WINDOW, w->pc - HOTSPOT_CODE_BEFORE))
                return bytes;
        if (w->pc - code < complete && (__s32)complete > 0) {
                if (w->pc - code >= 4 && hotspot_has_subtracted(w))
                        return bytes;
                return w->pc > code && (w->code[HOTSPOT_CODE_BEFORE - 1] == 0x55 ||
                                        (w->code[HOTSPOT_CODE_BEFORE - 4] == 0x55 &&
                                         w->code[HOTSPOT_CODE_BEFORE - 3] == 0x48))
                               ? 16
                               : 8;
        }
        released = hotspot_find_epilogue(w);
        return released ? released : bytes;
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
        if (hotspot_is_interpreter(w, w->pc))
                return hotspot_read_interpreted(w);
        if (!words || words > HOTSPOT_FRAME_MAX / 8)
                return hotspot_read_stub(w);
        bytes = words * 8ull;
        code = w->process.code_is_pointer ? hotspot_get_word(w, w->process.blob_code)
                                          : w->blob + hotspot_get_int(w, w->process.blob_code);
        if (w->is_leaf) {
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
