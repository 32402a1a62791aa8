/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/late.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash.h"

struct copy {
        const struct sample_late *late;
        uint64_t sp;
};

static int read_copy(void *ctx, __u64 addr, __u64 *ret)
{
        const struct copy *c = ctx;

        if (addr < c->sp || addr - c->sp >= c->late->stack_bytes || c->late->stack_bytes - (addr - c->sp) < sizeof *ret)
                return 1;
        memcpy(ret, c->late->stack + (addr - c->sp), sizeof *ret);
        return 0;
}

void late_walk(const struct unwinder *u, const struct process *p, const struct sample_late *late, struct sample_walk *ret)
{
        struct copy copy = { .late = late };
        struct unwind_regs regs;

        arch_unwind_regs(&late->regs, &regs);
        copy.sp = regs.sp;
        ret->frame_count = 0;
        ret->end = SAMPLE_END_TOO_DEEP;
        for (;;) {
                struct unwind_rule rule;
                enum sample_end end = unwinder_rule(u, &p->unwind, &regs, &rule);
                enum unwind_status st;

                if (end == SAMPLE_END_NO_MAPPING && ret->frame_count) {
                        ret->end = end;
                        return;
                }
                if (ret->frame_count == SAMPLE_STACK_MAX)
                        return;
                ret->frames[ret->frame_count] = regs.pc | (ret->frame_count && !regs.pc_is_return ? SAMPLE_FRAME_EXACT : 0);
                ret->frame_count++;
                if (rule.cfa == UNWIND_CFA_NONE) {
                        ret->end = end;
                        return;
                }
                st = unwind_step(&regs, &rule, read_copy, &copy);
                if (st == UNWIND_STEPPED)
                        continue;
                ret->end = st != UNWIND_DONE && unwind_is_by_frame_pointer(&rule) ? end : sample_end_of(st);
                return;
        }
}

static enum status add_one(struct sample_batch *b, size_t frame_capacity, const struct sample_late *late,
                           const struct sample_walk *w)
{
        struct sample_count *c = &b->counts[b->count_count];

        if (b->frame_count + w->frame_count > frame_capacity)
                return ST_NO_MEMORY;
        *c = (struct sample_count){ .key = late->key, .count = 1 };
        c->key.user_stack = hash64(w->frames, w->frame_count * sizeof *w->frames) | 1;
        memcpy(b->frames + b->frame_count, w->frames, w->frame_count * sizeof *w->frames);
        b->stacks[b->stack_count++] = (struct sample_stack){ .hash = c->key.user_stack, .first_frame = b->frame_count,
                                                             .frame_count = w->frame_count, .end = w->end };
        b->frame_count += w->frame_count;
        b->count_count++;
        return ST_OK;
}

static bool grow(struct sample_batch *b, size_t *frame_capacity)
{
        struct sample_count *counts = reallocarray(b->counts, b->count_count + b->late_count, sizeof *counts);
        struct sample_stack *stacks;
        uint64_t *frames;

        if (!counts)
                return false;
        b->counts = counts;
        stacks = reallocarray(b->stacks, b->stack_count + b->late_count, sizeof *stacks);
        if (!stacks)
                return false;
        b->stacks = stacks;
        *frame_capacity = b->frame_count + b->late_count * SAMPLE_STACK_MAX;
        frames = reallocarray(b->frames, *frame_capacity, sizeof *frames);
        if (!frames)
                return false;
        b->frames = frames;
        return true;
}

enum status late_add(struct process_table *processes, struct sample_batch *b, uint64_t ends_ret[static SAMPLE_END_COUNT],
                     struct error *err)
{
        _cleanup_free_ struct sample_walk *walk = NULL;
        size_t frame_capacity = 0;

        if (!b->late_count || !processes->unwinder)
                return ST_OK;
        walk = malloc(sizeof *walk);
        if (!walk || !grow(b, &frame_capacity))
                return error_no_memory(err);
        for (size_t i = 0; i < b->late_count; i++) {
                const struct sample_late *late = b->late[i];
                struct process *p = process_table_get(processes, &late->key.process, late->key.comm);

                if (!p)
                        return error_no_memory(err);
                late_walk(processes->unwinder, p, late, walk);
                ends_ret[walk->end]++;
                if (add_one(b, frame_capacity, late, walk))
                        return error_no_memory(err);
        }
        sample_batch_sort(b);
        return ST_OK;
}
