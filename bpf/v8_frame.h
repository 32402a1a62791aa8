/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CAIRN_BPF_V8_FRAME_H
#define CAIRN_BPF_V8_FRAME_H

/*
 * Reads a frame of V8 (bpf/v8_walk.h): in the kernel, and in user space for tests. The includer defines
 * V8_READ(to, size, addr), nonzero on failure, and V8_FUNCTION, the qualifiers of these functions.
 */
#include "bpf/v8_walk.h"

/* Whether the pointer is to a SharedFunctionInfo. */
V8_FUNCTION int v8_is_shared_function(struct v8_walk *w, __u64 shared)
{
        __u64 map;
        __u16 type;

        if (!w || !v8_is_object(shared) || V8_READ(&map, sizeof map, shared - 1) || !v8_is_object(map))
                return 0;
        if (map == w->shared_map)
                return 1;
        if (V8_READ(&type, sizeof type, map - 1 + w->layout.map_type) || type != w->layout.shared_type)
                return 0;
        w->shared_map = map;
        return 1;
}

/* Whether the interrupted code is the handler of the bytecode at this offset of the array. */
V8_FUNCTION int v8_is_at_bytecode(const struct v8_walk *w, __u64 array, __u64 offset, __u64 handlers)
{
        __u64 handler;
        __u8 bytecode;

        if (!w || offset > 0x7fffffff || V8_READ(&bytecode, sizeof bytecode, array + offset) ||
            V8_READ(&handler, sizeof handler, handlers + bytecode * sizeof handler))
                return 0;
        return w->pc - handler < V8_HANDLER_BYTES;
}

/*
 * Read the frame at w->fp into w->words. 0: it is not one of a JavaScript function.
 * @param offset, array, handlers  registers of the interpreter, of an interrupted frame.
 */
V8_FUNCTION int v8_read_frame(struct v8_walk *w, __u64 offset, __u64 array, __u64 handlers)
{
        __u64 function, shared, frame_array, frame_offset, position = 0;

        if (!w || V8_READ(w->slots, sizeof w->slots, w->fp - sizeof w->slots))
                return 0;
        function = w->slots[3];
        if (!v8_is_object(w->slots[4]) || !v8_is_object(function) ||
            V8_READ(&shared, sizeof shared, function - 1 + w->layout.function_shared) ||
            !v8_is_shared_function(w, shared))
                return 0;
        frame_array = w->layout.fp_bytecode == 24 ? w->slots[2] : w->slots[1];
        frame_offset = w->layout.fp_bytecode == 24 ? w->slots[1] : w->slots[0];
        w->keeps_native = 0;
        if (w->is_generated) {
                position = w->pc | (w->is_leaf ? V8_POSITION_EXACT : 0);
        } else if (v8_is_object(frame_array) && v8_is_smi(frame_offset)) {
                position = V8_POSITION_BYTECODE | frame_offset >> 32;
                if (w->is_leaf) {
                        w->keeps_native = array != frame_array || !v8_is_at_bytecode(w, array, offset, handlers);
                        position = w->keeps_native ? 0 : V8_POSITION_BYTECODE | offset;
                }
        } else {
                w->keeps_native = w->is_leaf;
        }
        w->words[0] = sample_frame_pack(SAMPLE_FRAME_V8, shared);
        w->words[1] = position;
        return 1;
}

#endif
