/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hostile process: the input is its memory. Its interpreter is looked for, its frames are walked by the functions of
 * the BPF program, and each frame is named. The number of reads is bounded whatever the frames refer to.
 */
#include <stdlib.h>

#include "common/limits.h"
#include "sampling/runtimes/python_name_cache.h"
#include "tests/support/fake_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct fake_memory memory;
static const struct process_memory process = { fake_memory_read, &memory };

#define PYTHON_READ(to, size, addr) (!fake_memory_read(&memory, (addr), (to), (size)))
#define PYTHON_FUNCTION static
#include "bpf/python_run.h"

#define RUNS_MAX 64

static void name_frames(const struct python_walk *w, const struct python_objects *o, struct python_name_cache *names)
{
        for (uint32_t i = 0; i + 1 < w->word_count; i += 2) {
                struct python_location place = { 0 };

                if (w->words[i] >> SAMPLE_FRAME_KIND_SHIFT != SAMPLE_FRAME_CPYTHON)
                        __builtin_trap();
                if (python_name_cache_locate(names, &process, o, i / 64, w->words[i] & SAMPLE_FRAME_ADDRESS_MAX,
                                             w->words[i + 1], &place) == PYTHON_FRAME_FOUND &&
                    strlen(place.name) + strlen(place.file) > SIZE_MAX / 2)
                        __builtin_trap();
        }
}

static void walk_frames(const struct python_layout *l, uint64_t thread_pointer)
{
        struct python_walk *w = calloc(1, sizeof *w);
        struct python_name_cache names = { .work_left = LIMIT_AGENT_PYTHON_PROCESS_WORK };

        if (!w)
                __builtin_trap();
        w->process = l->process;
        w->thread_pointer = thread_pointer;
        memory.reads = 0;
        python_search_state(w);
        if (memory.reads > 2 * PYTHON_THREADS_MAX + 2)
                __builtin_trap();
        memory.reads = 0;
        python_begin(w, thread_pointer);
        for (int i = 0; i < RUNS_MAX && w->word_count; i++) {
                if (w->word_count > PYTHON_WORDS_MAX || w->word_count % 2 || memory.reads > PYTHON_RUN_MAX + 8)
                        __builtin_trap();
                if (!i)
                        name_frames(w, &l->objects, &names);
                memory.reads = 0;
                python_read_run(w);
        }
        python_name_cache_deinit(&names);
        free(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct python_symbols s = { 0 };
        const size_t addresses = offsetof(struct python_symbols, eval);
        struct python_layout layout;
        struct runtime_refusal refusal;
        uint64_t thread_pointer;

        if (size < sizeof s + sizeof thread_pointer)
                return 0;
        memory = (struct fake_memory){ data, size, 0 };
        memcpy(&s, data, addresses);
        memcpy(&thread_pointer, data + addresses, sizeof thread_pointer);
        memcpy(&s.eval, data + addresses + 8, sizeof s.eval);
        memcpy(&s.eval_bytes, data + addresses + 16, sizeof s.eval_bytes);
        for (int format = PYTHON_LINES_LOCATIONS; format <= PYTHON_LINES_LNOTAB; format++)
                (void)python_line_find((enum python_lines)format, data, size, 1, size);
        if (python_layout_find(&process, &s, &layout, &refusal) == PYTHON_ATTACHED)
                walk_frames(&layout, thread_pointer);
        return 0;
}
