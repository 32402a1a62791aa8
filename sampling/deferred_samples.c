/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/deferred_samples.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/limits.h"
#include "common/memory/array.h"

static int read_copied_stack(void *ctx, __u64 addr, __u64 *ret)
{
        const struct stack_copy *from = ctx;
        uint64_t at = addr - from->stack_start;

        if (addr < from->stack_start || at >= from->stack_bytes || from->stack_bytes - at < sizeof *ret)
                return 1;
        memcpy(ret, from->stack + at, sizeof *ret);
        return 0;
}

/* Returns false when a frame lies in a mapping whose table is still being built. */
static bool deferred_sample_walk(const struct unwinder *u, const struct process *p, const struct stack_copy *from,
                                 struct sample_frames *ret)
{
        struct unwind_regs regs;
        bool has_tables = true;

        arch_unwind_regs(&from->regs, &regs);
        ret->frame_count = 0;
        ret->end = SAMPLE_END_TOO_DEEP;
        for (;;) {
                struct unwind_rule rule;
                enum sample_end end = unwinder_find_rule(u, &p->unwind, &regs, &rule);
                bool is_exact = !regs.pc_is_return || (rule.flags & UNWIND_FLAG_SIGNAL);
                enum unwind_status st;

                has_tables = has_tables && end != SAMPLE_END_NO_TABLE;
                if (end == SAMPLE_END_NO_MAPPING && ret->frame_count) {
                        ret->end = end;
                        return has_tables;
                }
                if (ret->frame_count == SAMPLE_STACK_MAX)
                        return has_tables;
                ret->frames[ret->frame_count] = sample_frame_pack_native(regs.pc, ret->frame_count && is_exact);
                ret->frame_count++;
                if (rule.cfa == UNWIND_CFA_NONE) {
                        ret->end = end;
                        return has_tables;
                }
                st = unwind_step(&regs, &rule, read_copied_stack, (void *)from);
                if (st == UNWIND_STEPPED)
                        continue;
                if (unwind_rule_uses_frame_chain(&rule) &&
                    (st != UNWIND_DONE || sample_end_is_guess(end, ret->frame_count - 1)))
                        ret->end = end;
                else
                        ret->end = st == UNWIND_NO_MEMORY_AT ? SAMPLE_END_NOT_COPIED : sample_end_of(st);
                return has_tables;
        }
}

/* ---- before the drain ---- */

static void deferred_sample_deinit(struct deferred_sample *s)
{
        free(s->frames);
        free(s->copy);
}

void deferred_samples_deinit(struct deferred_samples *l)
{
        for (size_t i = 0; i < l->count; i++)
                deferred_sample_deinit(&l->items[i]);
        free(l->items);
        *l = (struct deferred_samples){ 0 };
}

static void drop_stack_copy(struct deferred_samples *l, struct deferred_sample *s)
{
        if (s->copy)
                l->copied_bytes -= s->copy->stack_bytes;
        free(s->copy);
        s->copy = NULL;
}

static uint64_t get_leaf_pc(const struct stack_copy *from)
{
        struct unwind_regs regs;

        arch_unwind_regs(&from->regs, &regs);
        return regs.pc;
}

/*
 * Walk the sample: with the available tables if `anyway` is set, else only if the mappings and tables of all its
 * frames are available; other tables that its process waits for do not matter. False when it was not walked, or
 * without memory. Notices and deferred samples arrive in separate ring buffers, so the notice of a mapping may arrive
 * later.
 */
static bool walk_deferred_sample(struct deferred_samples *l, struct process_table *processes, struct process *p,
                                 const struct stack_copy *from, bool anyway, struct deferred_sample *s)
{
        bool covers = p && process_table_has_mapping(processes, p, get_leaf_pc(from));

        if (!p || (!anyway && !covers))
                return false;
        if (!deferred_sample_walk(processes->unwinder, p, from, &l->walk) && p->unwind.waits && !anyway)
                return false;
        if (l->walk.end == SAMPLE_END_NO_MAPPING && !anyway)
                return false;
        s->frames = malloc(l->walk.frame_count * sizeof *s->frames);
        if (!s->frames)
                return false;
        memcpy(s->frames, l->walk.frames, l->walk.frame_count * sizeof *s->frames);
        s->frame_count = l->walk.frame_count;
        s->end = l->walk.end;
        return true;
}

/* Clone the copy, with its whole stack or without it. */
static struct stack_copy *clone_stack_copy(const struct stack_copy *from, bool with_stack)
{
        size_t stack = with_stack ? from->stack_bytes : 0;
        struct stack_copy *copy = malloc(offsetof(struct stack_copy, stack) + stack);

        if (copy) {
                memcpy(copy, from, offsetof(struct stack_copy, stack) + stack);
                copy->stack_bytes = (uint32_t)stack;
        }
        return copy;
}

void deferred_samples_add(struct deferred_samples *l, struct process_table *processes, const struct sample_key *key,
                          const struct sample_weight *weight, const struct stack_copy *from)
{
        struct process *p = process_table_get(processes, &key->process, key->comm);
        bool is_excluded = p && p->is_excluded,
             has_room = !is_excluded && l->copied_bytes + from->stack_bytes <= LIMIT_AGENT_DEFERRED_BYTES;
        struct deferred_sample s = { .key = *key, .weight = *weight };

        if (l->count == LIMIT_AGENT_DEFERRED || !array_reserve(&l->items, &l->capacity, l->count)) {
                l->lost++;
                return;
        }
        if (!walk_deferred_sample(l, processes, p, from, false, &s) &&
            (has_room || is_excluded || !walk_deferred_sample(l, processes, p, from, true, &s)))
                s.copy = clone_stack_copy(from, has_room);
        if (!s.copy && !s.frames) {
                l->lost++;
                return;
        }
        l->copied_bytes += s.copy ? s.copy->stack_bytes : 0;
        l->items[l->count++] = s;
}

static void retry_deferred_sample(struct deferred_samples *l, struct process_table *processes,
                                  struct deferred_sample *s, bool anyway)
{
        struct process *p = s->copy ? process_table_get(processes, &s->key.process, s->key.comm) : NULL;

        if (p && walk_deferred_sample(l, processes, p, s->copy, anyway, s))
                drop_stack_copy(l, s);
}

void deferred_samples_retry(struct deferred_samples *l, struct process_table *processes)
{
        for (size_t i = 0; i < l->count; i++)
                retry_deferred_sample(l, processes, &l->items[i], false);
}

/* ---- into a batch ---------------------------------------------------------------------- */

static bool grow_sample_batch(struct sample_batch *b, size_t samples, size_t frames)
{
        struct sample_count *counts =
                reallocarray(b->counts, b->count_count + SAMPLE_COUNTS_MAX * samples, sizeof *counts);
        struct sample_stack *stacks = reallocarray(b->stacks, b->stack_count + samples, sizeof *stacks);
        uint64_t *all = reallocarray(b->frames, b->frame_count + frames, sizeof *all);

        b->counts = counts ? counts : b->counts;
        b->stacks = stacks ? stacks : b->stacks;
        b->frames = all ? all : b->frames;
        return counts && stacks && all;
}

static void append_to_batch(struct sample_batch *b, const struct deferred_sample *s)
{
        uint64_t number = hash_bytes64(s->frames, s->frame_count * sizeof *s->frames) | 1;
        unsigned counts = sample_split(&s->key, &s->weight, b->counts + b->count_count);

        for (; counts; counts--)
                b->counts[b->count_count++].key.user_stack = number;
        b->stacks[b->stack_count++] = (struct sample_stack){
                .number = number, .first_frame = b->frame_count, .frame_count = s->frame_count, .end = s->end
        };
        memcpy(b->frames + b->frame_count, s->frames, s->frame_count * sizeof *s->frames);
        b->frame_count += s->frame_count;
}

enum status deferred_samples_take(struct deferred_samples *l, size_t samples, struct process_table *processes,
                                  struct sample_batch *b, struct error *err)
{
        size_t frames = 0;
        bool room;

        for (size_t i = 0; i < samples; i++) {
                retry_deferred_sample(l, processes, &l->items[i], true);
                frames += l->items[i].frame_count;
        }
        if (!samples)
                return ST_OK;
        room = grow_sample_batch(b, samples, frames ? frames : 1);
        for (size_t i = 0; i < samples; i++) {
                struct deferred_sample *s = &l->items[i];

                if (room && s->frames) {
                        append_to_batch(b, s);
                        l->ends[s->end]++;
                } else {
                        l->lost++;
                }
                drop_stack_copy(l, s);
                deferred_sample_deinit(s);
        }
        l->count -= samples;
        memmove(l->items, l->items + samples, l->count * sizeof *l->items);
        sample_batch_sort(b);
        return room ? ST_OK : error_no_memory(err);
}
