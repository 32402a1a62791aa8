/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CAIRN_BPF_HOTSPOT_STEP_H
#define CAIRN_BPF_HOTSPOT_STEP_H

/*
 * Steps of hotspot_frame.h to a caller, above all from an interrupted pc, at which the frame may not be set up yet or
 * be released already: what of it is on the stack is told by instructions and registers. w->code is the code around the
 * pc. The includer defines what hotspot_frame.h asks for. Source: OpenJDK cpu/x86/templateInterpreterGenerator_x86.cpp
 * (generate_normal_entry, generate_fixed_frame), interp_masm_x86.cpp (remove_activation), sharedRuntime_x86_64.cpp
 * (gen_c2i_adapter, gen_i2c_adapter, generate_native_wrapper).
 */
#include "bpf/hotspot_walk.h"

/* Make the frame's caller current. Its return address may be in a register, with nothing of the frame on the stack. */
HOTSPOT_FUNCTION int hotspot_step_with(struct hotspot_walk *w, __u64 pc, __u64 sp, __u64 fp)
{
        if (!w || sp - w->sp > HOTSPOT_FRAME_MAX)
                return HOTSPOT_LOST;
        w->pc = pc;
        w->sp = sp;
        w->fp = fp;
        return HOTSPOT_STEPPED;
}

/* The same, when the return address is below cfa, the caller's stack pointer. */
HOTSPOT_FUNCTION int hotspot_step_to(struct hotspot_walk *w, __u64 cfa, __u64 fp)
{
        __u64 pc;

        if (!w || cfa <= w->sp || HOTSPOT_READ(&pc, sizeof pc, cfa - 8))
                return HOTSPOT_LOST;
        return hotspot_step_with(w, pc, cfa, fp);
}

/* The same, when the frame pointer was saved below the return address. */
HOTSPOT_FUNCTION int hotspot_step_over(struct hotspot_walk *w, __u64 cfa)
{
        if (!w || cfa <= w->sp || HOTSPOT_READ(w->slots, 2 * sizeof *w->slots, cfa - 16))
                return HOTSPOT_LOST;
        return hotspot_step_with(w, w->slots[1], cfa, w->slots[0]);
}

/* Whether a register has the stack pointer of a caller whose frame ends at least this high. */
static inline __attribute__((always_inline)) int hotspot_is_sender_sp(__u64 value, __u64 least)
{
        return !(value & 7) && value - least <= HOTSPOT_FRAME_MAX;
}

/*
 * Whether the pc is in the entry of the Method in rbx. In code that calls through an interface that is the abstract
 * one, until the one to call is found.
 */
HOTSPOT_FUNCTION int hotspot_is_entering(const struct hotspot_walk *w)
{
        __u64 entry;

        return w && w->rbx && !(w->rbx & 7) && !HOTSPOT_READ(&entry, sizeof entry, w->rbx + w->process.method_entry) &&
               hotspot_is_interpreter(w, entry) && w->pc - entry < HOTSPOT_ENTRY_BYTES;
}

/*
 * A method that is called in the interpreter. The entry pops the return address into rax, makes room for locals, pushes
 * it again, then the frame pointer, and makes that its own; after this the frame's words are pushed. r13 is the
 * caller's stack pointer until it has been pushed as well. HOTSPOT_NO_FRAME: the frame is whole.
 */
HOTSPOT_FUNCTION int hotspot_step_from_entry(struct hotspot_walk *w)
{
        __u64 sender_sp;

        if (!w)
                return HOTSPOT_NO_FRAME;
        if (w->fp - w->sp < w->process.frame_bytecode * 8ull &&
            !HOTSPOT_READ(w->slots, 3 * sizeof *w->slots, w->fp - 8) && hotspot_is_code(w, w->slots[2])) {
                sender_sp = w->sp == w->fp ? w->r13 : w->slots[0];
                return sender_sp > w->fp ? hotspot_step_with(w, w->slots[2], sender_sp, w->slots[1]) : HOTSPOT_LOST;
        }
        if (!hotspot_is_sender_sp(w->r13, w->sp) || HOTSPOT_READ(w->slots, sizeof *w->slots, w->sp))
                return HOTSPOT_NO_FRAME;
        if (hotspot_is_code(w, w->slots[0]))
                return hotspot_step_with(w, w->slots[0], w->r13, w->fp);
        return hotspot_is_code(w, w->rax) ? hotspot_step_with(w, w->rax, w->r13, w->fp) : HOTSPOT_NO_FRAME;
}

/* Whether `leave` is before the pc, and `pop r13; mov rsp, rbx` after that. */
HOTSPOT_FUNCTION int hotspot_find_exit(const struct hotspot_walk *w, int *popped_ret)
{
        int left = 0;

        if (!w || !popped_ret)
                return 0;
        *popped_ret = w->code[HOTSPOT_CODE_BEFORE] == 0x41 && w->code[HOTSPOT_CODE_BEFORE + 1] == 0xff &&
                      w->code[HOTSPOT_CODE_BEFORE + 2] == 0xe5; /* jmp r13 */
        for (int i = 0; i < HOTSPOT_CODE_BEFORE; i++) {
                if (w->code[i] == 0xc9)
                        left = 1;
                if (i < HOTSPOT_CODE_BEFORE - 1 && w->code[i] == 0x41 && w->code[i + 1] == 0x5d &&
                    w->code[i + 2] == 0x48 && (w->code[i + 3] == 0x8b || w->code[i + 3] == 0x89))
                        *popped_ret = 1;
        }
        return left;
}

/*
 * A method of the interpreter that returns: it has released its frame with `leave`, and the return address is at the
 * top of the stack or popped into r13. rbx is the caller's stack pointer. HOTSPOT_NO_FRAME: the frame is whole.
 */
HOTSPOT_FUNCTION int hotspot_step_from_exit(struct hotspot_walk *w)
{
        int left, has_popped = 0;

        if (!w || !hotspot_is_sender_sp(w->rbx, w->sp))
                return HOTSPOT_NO_FRAME;
        left = hotspot_find_exit(w, &has_popped);
        if (has_popped && hotspot_is_code(w, w->r13))
                return hotspot_step_with(w, w->r13, w->rbx, w->fp);
        if (!left || HOTSPOT_READ(w->slots, sizeof *w->slots, w->sp) || !hotspot_is_code(w, w->slots[0]))
                return HOTSPOT_NO_FRAME;
        return hotspot_step_with(w, w->slots[0], w->rbx, w->fp);
}

/* Whether a stub for exceptions has executed `pop rdx`, after it released its frame or right before it jumps. */
HOTSPOT_FUNCTION int hotspot_has_popped_handler(const struct hotspot_walk *w)
{
        if (!w)
                return 0;
        if (w->code[HOTSPOT_CODE_BEFORE] == 0xff && w->code[HOTSPOT_CODE_BEFORE - 1] == 0x5a)
                return 1;
        if (w->code[HOTSPOT_CODE_BEFORE] == 0x41 && w->code[HOTSPOT_CODE_BEFORE + 1] == 0xff &&
            w->code[HOTSPOT_CODE_BEFORE + 2] == 0xe0) /* jmp r8 */
                return 1;
        for (int i = 4; i < HOTSPOT_CODE_BEFORE; i++)
                if (w->code[i] == 0x5a &&
                    (w->code[i - 1] == 0x5d || (w->code[i - 3] == 0x83 && w->code[i - 2] == 0xc4)))
                        return 1;
        return 0;
}

/*
 * A stub that looks for the handler of an exception and jumps to it: rdx is where the frame above continues, which some
 * push first. Others return into the handler, with its address in rax and rcx. HOTSPOT_NO_FRAME: it is on the stack.
 */
HOTSPOT_FUNCTION int hotspot_step_from_handler(struct hotspot_walk *w)
{
        const __u32 at = HOTSPOT_CODE_BEFORE;

        if (!w)
                return HOTSPOT_NO_FRAME;
        if (hotspot_is_code(w, w->rdx) && (w->code[at] == 0x52 || hotspot_has_popped_handler(w))) /* push rdx */
                return hotspot_step_with(w, w->rdx, w->sp, w->fp);
        if (w->code[at - 2] != 0xc9 || w->code[at - 1] != 0x59 || w->code[at] != 0xff || !hotspot_is_code(w, w->rax))
                return HOTSPOT_NO_FRAME;
        return hotspot_step_with(w, w->rax, w->sp, w->fp); /* leave; pop rcx; jmp rcx */
}

/*
 * An adapter between compiled and interpreted code: it pops the return address into rax, makes room for arguments, and
 * pushes it again. r13 is the caller's stack pointer meanwhile. HOTSPOT_NO_FRAME: the return address is on the stack.
 */
HOTSPOT_FUNCTION int hotspot_step_from_adapter(struct hotspot_walk *w)
{
        if (!w || !hotspot_is_code(w, w->rax) || w->code[HOTSPOT_CODE_BEFORE] == 0x58) /* pop rax */
                return HOTSPOT_NO_FRAME;
        if (w->code[HOTSPOT_CODE_BEFORE - 1] == 0x58)
                return hotspot_step_with(w, w->rax, w->sp, w->fp);
        return hotspot_is_sender_sp(w->r13, w->sp) ? hotspot_step_with(w, w->rax, w->r13, w->fp) : HOTSPOT_NO_FRAME;
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

/* Whether `jne` and `ret` are here: nothing of the frame is left. */
static inline __attribute__((always_inline)) int hotspot_is_return(const struct hotspot_walk *w, __u32 at)
{
        return w->code[at] == 0x0f && w->code[at + 1] == 0x85 && w->code[at + 6] == 0xc3;
}

/*
 * Whether only the return address is left: of a native method, which releases its frame with `leave` and compares
 * fields of the thread before `ret`, to check for a safepoint and an exception; of a stub for exceptions, which pops
 * it.
 */
HOTSPOT_FUNCTION int hotspot_has_left(const struct hotspot_walk *w)
{
        const __u32 at = HOTSPOT_CODE_BEFORE;

        if (!w)
                return 0;
        if (w->code[at] == 0x49 && (w->code[at + 1] == 0x81 || w->code[at + 1] == 0x83) && w->code[at + 2] == 0x7f)
                return hotspot_is_return(w, w->code[at + 1] == 0x81 ? at + 8 : at + 5); /* cmp qword [r15 + n], 0 */
        if (w->code[at] == 0x41 && w->code[at + 1] == 0xf6 && w->code[at + 2] == 0x47)  /* test byte [r15 + n], 1 */
                return w->code[at - 1] == 0xc9;
        if (w->code[at] == 0x59) /* pop rcx */
                return w->code[at - 1] == 0xc9;
        if (w->code[at] == 0x5a) /* pop rdx, after `add rsp, n` */
                return w->code[at - 3] == 0x83 && w->code[at - 2] == 0xc4;
        return hotspot_is_return(w, at) ||
               (w->code[at] == 0x74 && w->code[at - 6] == 0xc9 && w->code[at - 5] == 0x41 && w->code[at - 4] == 0xf6);
}

/*
 * Bytes of the frame that are left at the pc in an epilogue: `add rsp, n; pop rbp`, perhaps a check for a safepoint of
 * two instructions, the first one of 4 or 7 bytes, and `ret`. 0: the pc is not in one.
 */
HOTSPOT_FUNCTION int hotspot_find_epilogue(const struct hotspot_walk *w)
{
        if (!w)
                return 0;
        if (w->code[HOTSPOT_CODE_BEFORE] == 0xc3 || hotspot_is_release(w, HOTSPOT_CODE_BEFORE - 1) ||
            hotspot_has_left(w))
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
        if (w->pc == code)
                return 8;
        if (w->pc == code + 1 && w->code[HOTSPOT_CODE_BEFORE - 1] == 0x55) /* push rbp */
                return 16;
        if (w->pc == code + 1 && w->code[HOTSPOT_CODE_BEFORE - 1] == 0x52) /* push rdx */
                return 8;
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

#endif
