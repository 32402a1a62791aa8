/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hostile process: the input is its memory, with the context of the process at the start, and a thread whose context
 * is read by the function of the BPF program. Reads are bounded whatever the memory refers to.
 */
#include <stdlib.h>

#include "common/limits.h"
#include "sampling/runtimes/thread_context.h"
#include "sampling/runtimes/thread_variable.h"
#include "tests/support/fake_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct fake_memory memory;

#define CONTEXT_READ(to, size, addr) (!fake_memory_read(&memory, (addr), (to), (size)))
#define CONTEXT_FUNCTION static
#include "bpf/context_read.h"

#define PROCESS_HEAD_BYTES 32
#define READS_MAX 192 /* of a map of Go: four reads for each of 32 slots, and some for buckets */

/* Where the thread has its pointer: behind the head, whatever the place is that was found. */
static void read_thread(const struct process_context *names, const uint64_t *head)
{
        const struct process_memory m = { fake_memory_read, &memory };
        const struct context_symbols symbols = { .is_defined = 1,
                                                 .offset = head[0] & 0xff,
                                                 .is_program = head[0] >> 8 & 1,
                                                 .program_offset = -(head[0] >> 16 & 0xff),
                                                 .descriptor_slot = head[0] >> 9 & 1 ? head[1] : 0,
                                                 .module_slot = head[0] >> 10 & 1 ? head[1] : 0,
                                                 .offset_slot = head[0] >> 11 & 1 ? head[1] : 0 };
        static struct context_walk walk;
        static struct thread_context context;
        struct runtime_refusal refusal;

        if (thread_variable_find(&m, &symbols, head[0] >> 12 & 1, &walk.process, &refusal) != THREAD_VARIABLE_FOUND)
                return;
        walk.process.form = head[0] >> 13 & 3;
        walk.process.m = head[0] >> 24 & 0x3f;
        walk.process.curg = head[0] >> 30 & 0x3f;
        walk.process.labels = head[0] >> 36 & 0x3f;
        context_read_thread(&walk, head[2]);
        if (walk.word_count > CONTEXT_WORDS_MAX)
                __builtin_trap();
        thread_context_decode((const uint64_t *)walk.words, walk.word_count, names, &context);
        for (size_t i = 0; i < context.label_count; i++)
                if (!*context.labels[i].key || strlen(context.labels[i].value) > UINT8_MAX)
                        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        const struct process_memory m = { fake_memory_read, &memory };
        struct process_context context = { 0 };
        uint64_t head[3];

        if (size < PROCESS_HEAD_BYTES + sizeof head)
                return 0;
        memory = (struct fake_memory){ data, size, 0 };
        memcpy(head, data + PROCESS_HEAD_BYTES, sizeof head);
        if (process_context_read(&m, FAKE_MEMORY_START, &context) == PROCESS_CONTEXT_READ) {
                for (size_t i = 0; i < context.label_count; i++)
                        if (!*context.labels[i].key || strlen(context.labels[i].value) > LIMIT_CONTEXT_VALUE)
                                __builtin_trap();
                if (process_context_read(&m, FAKE_MEMORY_START, &context) != PROCESS_CONTEXT_UNCHANGED)
                        __builtin_trap();
        }
        read_thread(&context, head);
        if (memory.reads > READS_MAX)
                __builtin_trap();
        process_context_deinit(&context);
        return 0;
}
