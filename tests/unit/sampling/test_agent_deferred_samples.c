/* SPDX-License-Identifier: Apache-2.0 */
/* Deferred samples of a simulated process: code with frame pointers and a stack of two frames. */
#include <string.h>

#include "common/clock.h"
#include "common/limits.h"
#include "sampling/deferred_samples.h"
#include "tests/support/suite.h"

#define CODE 0x10000u    /* code of the leaf */
#define LIBRARY 0x20000u /* code of its callers */
#define STACK 0x70000000u

static const struct sample_process id = { .tgid = 4711, .start_boot_ns = 1, .exec_id = 1 };
static struct process_table processes;
static struct unwinder unwinder;
static struct process *process;
static struct deferred_samples deferred_samples;
static struct stack_copy late; /* large */

static void set_up(void)
{
        struct error err;

        process_table_init(&processes);
        ck_assert_msg(unwinder_init(&unwinder, NULL, NULL, LIMIT_AGENT_UNWIND_BYTES, &err) == ST_OK, "%s", err.text);
        processes.unwinder = &unwinder;
        process = calloc(1, sizeof *process);
        processes.items = calloc(1, sizeof(struct process *));
        ck_assert(process && processes.items && id_table_put(&processes.by_id, &id, sizeof id, 0));
        processes.items[processes.count++] = process;
        perf_map_init(&process->jit.map, &processes.jit_budget);
        jitdump_init(&process->jit.dump, &processes.jit_budget);
        process->id = id;
        process->name[0] = 'p';
        process->read_at_ns = monotonic_ns();
        process->unwind.mappings = calloc(2, sizeof *process->unwind.mappings);
        process->unwind.numbers = calloc(2, sizeof *process->unwind.numbers);
        ck_assert(process->unwind.mappings && process->unwind.numbers);
        process->unwind.mappings[0] = (struct unwind_mapping){ .start = CODE, .end = CODE + 0x1000 };
        process->unwind.mappings[1] = (struct unwind_mapping){ .start = LIBRARY, .end = LIBRARY + 0x1000 };
        process->unwind.mapping_count = 1; /* the library has just been loaded */
}

static void tear_down(void)
{
        deferred_samples_deinit(&deferred_samples);
        process_table_deinit(&processes);
        unwinder_deinit(&unwinder);
}

/* A leaf in the code, called from the library, which the last frame pointer refers to. */
static void add(uint32_t stack_bytes)
{
        const uint64_t frames[] = { 0, 0, STACK + 32, LIBRARY + 0x10, 0, 0 };
        const struct sample_key key = { .process = id, .comm = "thread" };

        memset(&late, 0, sizeof late);
        late.stack_start = STACK;
        late.stack_bytes = stack_bytes;
        memcpy(late.stack, frames, sizeof frames);
#if defined(__x86_64__)
        late.regs.rip = CODE + 0x20;
        late.regs.rsp = STACK;
        late.regs.rbp = STACK + 16;
#elif defined(__aarch64__)
        late.regs.pc = CODE + 0x20;
        late.regs.sp = STACK;
        late.regs.x[29] = STACK + 16;
#endif
        deferred_samples_add(&deferred_samples, &processes, &key, &(struct sample_weight){ 0 }, &late);
}

static struct sample_stack take(void)
{
        _cleanup_sample_batch_ struct sample_batch batch = { 0 };
        struct sample_stack ret;
        struct error err;

        ck_assert_int_eq(deferred_samples_take(&deferred_samples, deferred_samples.count, &processes, &batch, &err),
                         ST_OK);
        ck_assert_uint_ge(batch.stack_count, 1);
        ret = batch.stacks[0];
        ck_assert_uint_eq(batch.frames[ret.first_frame], CODE + 0x20);
        return ret;
}

START_TEST(stack_with_known_mappings_is_walked_at_once)
{
        struct sample_stack s;

        process->unwind.mapping_count = 2;
        add(KiB(8));
        ck_assert_ptr_null(deferred_samples.items[0].copy);
        s = take();
        ck_assert_uint_eq(s.frame_count, 2);
        ck_assert_uint_eq(s.end, SAMPLE_END_COMPLETE);
}
END_TEST

START_TEST(stack_waits_for_mapping_of_its_caller)
{
        struct sample_stack s;

        add(KiB(8));
        process->unwind.mapping_count = 2;
        s = take();
        ck_assert_uint_eq(s.frame_count, 2);
        ck_assert_uint_eq(s.end, SAMPLE_END_COMPLETE);
}
END_TEST

START_TEST(stack_is_truncated_at_drain_without_mapping)
{
        struct sample_stack s;

        add(KiB(8));
        s = take();
        ck_assert_uint_eq(s.frame_count, 1);
        ck_assert_uint_eq(s.end, SAMPLE_END_NO_MAPPING);
        ck_assert_uint_eq(deferred_samples.copied_bytes, 0);
}
END_TEST

START_TEST(stacks_are_walked_with_known_mappings_when_queue_is_full)
{
        const size_t fit = LIMIT_AGENT_DEFERRED_BYTES / KiB(64);

        for (size_t i = 0; i <= fit; i++)
                add(KiB(64));
        ck_assert_uint_eq(deferred_samples.copied_bytes, LIMIT_AGENT_DEFERRED_BYTES);
        ck_assert_ptr_null(deferred_samples.items[fit].copy);
        ck_assert_uint_eq(deferred_samples.items[fit].end, SAMPLE_END_NO_MAPPING);
        ck_assert_uint_eq(deferred_samples.items[fit].frame_count, 1);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("agent-late", stack_with_known_mappings_is_walked_at_once,
                        stack_waits_for_mapping_of_its_caller, stack_is_truncated_at_drain_without_mapping,
                        stacks_are_walked_with_known_mappings_when_queue_is_full)
