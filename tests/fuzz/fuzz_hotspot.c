/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hostile process: the input is its memory, in which the tables for debuggers are read, frames are unwound by the
 * functions of the BPF program, and are named with the layouts of an old and a new version of HotSpot. The bytes that
 * are read are bounded whatever the objects refer to.
 */
#include <stdlib.h>

#include "sampling/runtimes/hotspot_name_cache.h"
#include "sampling/runtimes/hotspot_streams.h"
#include "tests/support/fake_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct fake_memory memory;

#define HOTSPOT_READ(to, size, addr) (!fake_memory_read(&memory, (addr), (to), (size)))
#define HOTSPOT_FUNCTION static
#include "bpf/hotspot_frame.h"

#define FRAMES 4
#define READS_MAX 20000 /* of one frame */

/* Small objects, of which an input may have many. */
static const struct hotspot_objects layouts[] = {
        { .version = 17,
          .code = FAKE_MEMORY_START,
          .code_bytes = 64,
          .blob_bytes = 128,
          .pc_desc_bytes = 16,
          .blob_name = { 0, 8 },
          .blob_code = { 8, 8 },
          .blob_frame_complete = { 16, 4 },
          .method = { 24, 8 },
          .compilation = { 20, 4 },
          .scopes_address = { 32, 8 },
          .pcs = { 40, 4 },
          .pcs_end = { 44, 4 },
          .metadata = { 48, 4 },
          .method_entry = { 0, 8 },
          .method_const = { 8, 8 },
          .const_constants = { 0, 8 },
          .const_flags = { 8, 2 },
          .const_code_bytes = { 10, 2 },
          .const_name = { 12, 2 },
          .const_words = { 16, 4 },
          .const_bytes = 32,
          .constants_holder = { 0, 8 },
          .constants_file = { 8, 2 },
          .constants_bytes = 16,
          .class_constants = { 0, 8 },
          .class_name = { 8, 8 },
          .symbol_length = { 0, 2 },
          .symbol_text = 2 },
        { .version = 25,
          .call_stub = FAKE_MEMORY_START + 64,
          .blob_bytes = 128,
          .pc_desc_bytes = 16,
          .blob_name = { 0, 8 },
          .blob_code = { 8, 4 },
          .blob_frame_complete = { 12, 2 },
          .blob_mutable = { 16, 8 },
          .blob_relocation = { 24, 4 },
          .method = { 32, 8 },
          .compilation = { 28, 4 },
          .immutable = { 40, 8 },
          .immutable_bytes = { 48, 4 },
          .scopes = { 52, 4 },
          .pcs = { 56, 4 },
          .method_entry = { 0, 8 },
          .method_const = { 8, 8 },
          .const_constants = { 0, 8 },
          .const_flags = { 8, 4 },
          .const_code_bytes = { 12, 2 },
          .const_name = { 14, 2 },
          .const_words = { 16, 4 },
          .const_bytes = 32,
          .constants_holder = { 0, 8 },
          .constants_bytes = 16,
          .class_constants = { 0, 8 },
          .class_name = { 8, 8 },
          .class_file = { 16, 2 },
          .symbol_length = { 0, 2 },
          .symbol_text = 2,
          .number_base = 1 },
};

static void name_frame(struct hotspot_name_cache *names, const struct hotspot_objects *o, uint64_t interval,
                       const uint64_t *words)
{
        static struct hotspot_location places[LIMIT_HOTSPOT_INLINED];
        const struct process_memory m = { fake_memory_read, &memory };
        uint32_t count;

        memory.reads = 0;
        names->work_left = LIMIT_HOTSPOT_PROCESS_WORK;
        if (hotspot_name_cache_locate(names, &m, o, interval, words[0] & SAMPLE_FRAME_ADDRESS_MAX, words[1], places,
                                      &count) == HOTSPOT_FRAME_FOUND) {
                if (!count || count > LIMIT_HOTSPOT_INLINED)
                        __builtin_trap();
                for (uint32_t i = 0; i < count; i++)
                        if (places[i].name && strlen(places[i].name) + strlen(places[i].file) > SIZE_MAX / 2)
                                __builtin_trap();
        }
        if (memory.reads > READS_MAX)
                __builtin_trap();
}

/* Offsets are small here: the decoders have no layout of their own. */
static void decode_streams(const uint8_t *data, size_t size)
{
        struct hotspot_scope scope;

        for (uint8_t base = 0; base <= 1; base++) {
                size_t n = hotspot_measure_lines(data, size, base);

                if (n > size)
                        __builtin_trap();
                (void)hotspot_find_line(data, n, base, size ? data[0] : 0);
                (void)hotspot_read_scope(data, size, base, &scope);
        }
}

static void find_layout(const uint64_t *head, struct hotspot_layout *ret)
{
        const struct process_memory m = { fake_memory_read, &memory };
        const struct hotspot_symbols symbols = { head[0], head[1], head[2], head[3] };
        struct runtime_refusal refusal;

        if (hotspot_layout_find(&m, &symbols, ret, &refusal) == HOTSPOT_REFUSED && !refusal.text)
                __builtin_trap();
}

/* Unwind a stack in a code cache that is all of the memory. */
static void walk_frames(struct hotspot_name_cache *names, const struct hotspot_objects *o, const uint64_t *head)
{
        struct hotspot_walk w = { .pc = head[0], .sp = head[1], .fp = head[2], .rbx = head[3], .is_leaf = 1 };

        w.r13 = head[3] >> 8;
        w.rax = head[2] >> 8;
        w.rdx = head[1] >> 8;
        w.process = (struct hotspot_process){
                .heaps = { { FAKE_MEMORY_START, FAKE_MEMORY_START + 32, 1 << 16, 6 } },
                .code = FAKE_MEMORY_START,
                .code_bytes = 1 << 16,
                .interpreter = FAKE_MEMORY_START + 256,
                .interpreter_bytes = 256,
                .block_header = 8,
                .blob_frame_size = 20,
                .blob_frame_complete = 16,
                .blob_code = 8,
                .code_is_pointer = o->blob_code.size == 8,
                .blob_deopt = 24,
                .deopt_is_pointer = o->blob_code.size == 8,
                .blob_original_pc = 60,
                .blob_compilation = o->compilation.offset,
                .method_const = 8,
                .frame_bytecode = o->version > 8 ? 8 : 7,
                .const_bytes = 32,
                .const_code_bytes = 12,
        };
        for (int i = 0; i < 64; i++) {
                uint64_t sp = w.sp;
                int step = hotspot_read_frame(&w);

                if (step == HOTSPOT_NO_FRAME)
                        return;
                if (w.words[0] >> SAMPLE_FRAME_KIND_SHIFT != SAMPLE_FRAME_HOTSPOT)
                        __builtin_trap();
                name_frame(names, o, FRAMES, (const uint64_t[]){ w.words[0], w.words[1] });
                if (step == HOTSPOT_LOST)
                        return;
                if (w.sp < sp || (w.sp == sp && !w.is_leaf)) /* of an interrupted frame nothing may be on the stack */
                        __builtin_trap();
                w.is_leaf = 0;
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct hotspot_name_cache names = { 0 };
        uint64_t head[2 * FRAMES + 8];
        struct hotspot_layout layout;
        const struct hotspot_objects *o;

        if (size < sizeof head)
                return 0;
        memory = (struct fake_memory){ data, size, 0 };
        memcpy(head, data, sizeof head);
        o = &layouts[head[0] >> 63];
        for (uint64_t i = 0; i < FRAMES; i++)
                name_frame(&names, o, i / 2, &head[2 * i]);
        walk_frames(&names, o, &head[2 * FRAMES]);
        find_layout(&head[2 * FRAMES + 4], &layout);
        decode_streams(data, size);
        hotspot_name_cache_deinit(&names);
        return 0;
}
