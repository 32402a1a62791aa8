/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hostile process: the input is its memory, in which frames are read by the function of the BPF program and are
 * named, with the layouts of an old and a new version of V8. The bytes that are read are bounded whatever the objects
 * refer to.
 */
#include <stdlib.h>

#include "sampling/runtimes/v8_name_cache.h"
#include "tests/support/fake_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct fake_memory memory;

#define V8_READ(to, size, addr) (!fake_memory_read(&memory, (addr), (to), (size)))
#define V8_FUNCTION static
#include "bpf/v8_frame.h"

#define FRAMES 4
#define READS_MAX 20000 /* of one frame */

/* Small instance types, which inputs reach. */
static const struct v8_objects layouts[] = {
        { .version = 10 << 8 | 2,
          .string_types = 32,
          .shared_type = 33,
          .script_type = 34,
          .scope_info_type = 35,
          .bytecode_type = 36,
          .code_type = 37,
          .stream_type = 37,
          .interpreter_data_type = 38,
          .debug_info_type = 39,
          .shared_data = 8,
          .shared_name = 16,
          .shared_script = 32,
          .scope_slots = 8,
          .scope_locals_count = 2,
          .scope_first_local = 3,
          .script_source = 8,
          .script_name = 16,
          .positions = { 1, -1 },
          .bytecode_lines = 32,
          .bytecode_start = 56,
          .code_deoptimization = 16,
          .code_lines = 24,
          .code_start = 128,
          .code_size = 40,
          .literals_index = 2,
          .function_index = 6,
          .inlining_index = 7,
          .bytecode_sizes = { { 1, 2, 3, 4, 5, 2, 2, 2 }, { 1, 2, 3, 4, 5, 3 }, { 1, 2, 3, 4, 5, 5 } } },
        { .version = 13 << 8 | 6,
          .string_types = 32,
          .shared_type = 33,
          .script_type = 34,
          .scope_info_type = 35,
          .bytecode_type = 36,
          .code_type = 37,
          .stream_type = 40,
          .interpreter_data_type = 38,
          .debug_info_type = 39,
          .shared_data = 8,
          .shared_name = 24,
          .shared_script = 40,
          .scope_slots = 8,
          .scope_locals_count = 2,
          .scope_first_local = 5,
          .script_source = 8,
          .script_name = 16,
          .positions = { 2, -1 },
          .bytecode_lines = 24,
          .bytecode_start = 64,
          .code_deoptimization = 8,
          .code_lines = 16,
          .code_start = 40,
          .code_size = 56,
          .code_stream_start = 32,
          .code_flags = 52,
          .maglev_kind = 11,
          .literals_index = 3,
          .function_index = 7,
          .inlining_index = 8,
          .bytecode_sizes = { { 1, 2, 3, 4, 5, 2, 2, 2 }, { 1, 2, 3, 4, 5, 3 }, { 1, 2, 3, 4, 5, 5 } } },
};

static void name_frame(struct v8_name_cache *names, const struct v8_objects *o, uint64_t interval,
                       const uint64_t *words)
{
        static struct v8_location places[LIMIT_V8_INLINED];
        uint64_t left = LIMIT_AGENT_V8_PROCESS_READ;
        const struct v8_heap heap = { { fake_memory_read, &memory }, o, &left };
        uint32_t count;

        memory.reads = 0;
        if (v8_name_cache_locate(names, &heap, interval, words[0] & SAMPLE_FRAME_ADDRESS_MAX, words[1], places,
                                 &count) == V8_FRAME_FOUND) {
                if (!count || count > LIMIT_V8_INLINED)
                        __builtin_trap();
                for (uint32_t i = 0; i < count; i++)
                        if (strlen(places[i].name) + strlen(places[i].file) > SIZE_MAX / 2)
                                __builtin_trap();
        }
        if (memory.reads > READS_MAX)
                __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct v8_walk walk = { .layout = { .map_type = 12 } };
        struct v8_name_cache names = { 0 };
        uint64_t head[2 * FRAMES + 4];
        const struct v8_objects *o;

        if (size < sizeof head)
                return 0;
        memory = (struct fake_memory){ data, size, 0 };
        memcpy(head, data, sizeof head);
        o = &layouts[head[0] >> 63];
        for (uint64_t i = 0; i < FRAMES; i++)
                name_frame(&names, o, i / 2, &head[2 * i]);
        walk.layout.shared_type = o->shared_type;
        walk.layout.function_shared = 24;
        walk.layout.fp_bytecode = head[0] >> 62 & 1 ? 24 : 32;
        walk.fp = head[2 * FRAMES];
        walk.pc = head[2 * FRAMES + 1];
        walk.is_generated = head[2 * FRAMES + 2] & 1;
        walk.is_leaf = head[2 * FRAMES + 2] >> 1 & 1;
        if (v8_read_frame(&walk, head[2 * FRAMES + 2] >> 2, head[2 * FRAMES + 3], head[0])) {
                if (walk.words[0] >> SAMPLE_FRAME_KIND_SHIFT != SAMPLE_FRAME_V8)
                        __builtin_trap();
                name_frame(&names, o, FRAMES, (const uint64_t[]){ walk.words[0], walk.words[1] });
        }
        v8_name_cache_deinit(&names);
        return 0;
}
