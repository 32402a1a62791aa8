/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/late.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/limits.h"

static int read_copy(void *ctx, __u64 addr, __u64 *ret)
{
        const struct sample_late *late = ctx;
        uint64_t at = addr - late->stack_start;

        if (addr < late->stack_start || at >= late->stack_bytes || late->stack_bytes - at < sizeof *ret)
                return 1;
        memcpy(ret, late->stack + at, sizeof *ret);
        return 0;
}

bool late_walk(const struct unwinder *u, const struct process *p, const struct sample_late *late, struct sample_walk *ret)
{
        struct unwind_regs regs;
        bool has_tables = true;

        arch_unwind_regs(&late->regs, &regs);
        ret->frame_count = 0;
        ret->end = SAMPLE_END_TOO_DEEP;
        for (;;) {
                struct unwind_rule rule;
                enum sample_end end = unwinder_rule(u, &p->unwind, &regs, &rule);
                bool is_exact = !regs.pc_is_return || (rule.flags & UNWIND_FLAG_SIGNAL);
                enum unwind_status st;

                has_tables = has_tables && end != SAMPLE_END_NO_TABLE;
                if (end == SAMPLE_END_NO_MAPPING && ret->frame_count) {
                        ret->end = end;
                        return has_tables;
                }
                if (ret->frame_count == SAMPLE_STACK_MAX)
                        return has_tables;
                ret->frames[ret->frame_count] = regs.pc | (ret->frame_count && is_exact ? SAMPLE_FRAME_EXACT : 0);
                ret->frame_count++;
                if (rule.cfa == UNWIND_CFA_NONE) {
                        ret->end = end;
                        return has_tables;
                }
                st = unwind_step(&regs, &rule, read_copy, (void *)late);
                if (st == UNWIND_STEPPED)
                        continue;
                ret->end = st != UNWIND_DONE && unwind_is_by_frame_pointer(&rule) ? end :
                           st == UNWIND_NO_MEMORY_AT                              ? SAMPLE_END_NOT_COPIED :
                                                                                    sample_end_of(st);
                return has_tables;
        }
}

/* ---- until they are drained --------------------------------------------------------- */

static void sample_deinit(struct late_sample *s)
{
        free(s->frames);
        free(s->copy);
}

void late_samples_deinit(struct late_samples *l)
{
        for (size_t i = 0; i < l->count; i++)
                sample_deinit(&l->items[i]);
        free(l->items);
        *l = (struct late_samples){ 0 };
}

static void drop_copy(struct late_samples *l, struct late_sample *s)
{
        if (s->copy)
                l->copied_bytes -= s->copy->stack_bytes;
        free(s->copy);
        s->copy = NULL;
}

static uint64_t leaf_of(const struct sample_late *late)
{
        struct unwind_regs regs;

        arch_unwind_regs(&late->regs, &regs);
        return regs.pc;
}

/*
 * Walk it, as far as that goes when told so, else only if all mappings and tables of its frames are there: tables that
 * its process waits for besides do not matter. False when they are not, or without memory. Notices and late samples
 * come in ring buffers of their own, so what tells of a caller's mapping may still be on its way.
 */
static bool walk(struct late_samples *l, struct process_table *processes, struct process *p, const struct sample_late *late,
                 bool anyway, struct late_sample *s)
{
        bool covers = p && process_table_covers(processes, p, leaf_of(late));

        if (!p || (!anyway && !covers))
                return false;
        if (!late_walk(processes->unwinder, p, late, &l->walk) && p->unwind.waits && !anyway)
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

/* With its whole stack, or without any of it. */
static struct sample_late *copy_of(const struct sample_late *late, bool with_stack)
{
        size_t stack = with_stack ? late->stack_bytes : 0;
        struct sample_late *copy = malloc(offsetof(struct sample_late, stack) + stack);

        if (copy) {
                memcpy(copy, late, offsetof(struct sample_late, stack) + stack);
                copy->stack_bytes = (uint32_t)stack;
        }
        return copy;
}

void late_samples_add(struct late_samples *l, struct process_table *processes, const struct sample_key *key,
                      const struct sample_late *late)
{
        struct process *p = process_table_get(processes, &key->process, key->comm);
        bool is_excluded = p && p->is_excluded,
             has_room = !is_excluded && l->copied_bytes + late->stack_bytes <= LIMIT_AGENT_LATE_BYTES;
        struct late_sample s = { .key = *key };

        if (l->count == l->capacity) {
                size_t wanted = l->capacity ? 2 * l->capacity : 64;
                struct late_sample *grown = wanted <= LIMIT_AGENT_LATE ? reallocarray(l->items, wanted, sizeof *grown) : NULL;

                if (!grown) {
                        l->lost++;
                        return;
                }
                l->items = grown;
                l->capacity = wanted;
        }
        if (!walk(l, processes, p, late, false, &s) && (has_room || is_excluded || !walk(l, processes, p, late, true, &s)))
                s.copy = copy_of(late, has_room);
        if (!s.copy && !s.frames) {
                l->lost++;
                return;
        }
        l->copied_bytes += s.copy ? s.copy->stack_bytes : 0;
        l->items[l->count++] = s;
}

static void retry(struct late_samples *l, struct process_table *processes, struct late_sample *s, bool anyway)
{
        struct process *p = s->copy ? process_table_get(processes, &s->key.process, s->key.comm) : NULL;

        if (p && walk(l, processes, p, s->copy, anyway, s))
                drop_copy(l, s);
}

void late_samples_retry(struct late_samples *l, struct process_table *processes)
{
        for (size_t i = 0; i < l->count; i++)
                retry(l, processes, &l->items[i], false);
}

/* ---- into a batch ---------------------------------------------------------------------- */

static bool grow(struct sample_batch *b, size_t samples, size_t frames)
{
        struct sample_count *counts = reallocarray(b->counts, b->count_count + samples, sizeof *counts);
        struct sample_stack *stacks = reallocarray(b->stacks, b->stack_count + samples, sizeof *stacks);
        uint64_t *all = reallocarray(b->frames, b->frame_count + frames, sizeof *all);

        b->counts = counts ? counts : b->counts;
        b->stacks = stacks ? stacks : b->stacks;
        b->frames = all ? all : b->frames;
        return counts && stacks && all;
}

static void put(struct sample_batch *b, const struct late_sample *s)
{
        struct sample_count *c = &b->counts[b->count_count++];

        *c = (struct sample_count){ .key = s->key, .count = 1 };
        c->key.user_stack = hash64(s->frames, s->frame_count * sizeof *s->frames) | 1;
        b->stacks[b->stack_count++] = (struct sample_stack){ .hash = c->key.user_stack, .first_frame = b->frame_count,
                                                             .frame_count = s->frame_count, .end = s->end };
        memcpy(b->frames + b->frame_count, s->frames, s->frame_count * sizeof *s->frames);
        b->frame_count += s->frame_count;
}

enum status late_samples_take(struct late_samples *l, size_t samples, struct process_table *processes, struct sample_batch *b,
                              struct error *err)
{
        size_t frames = 0;
        bool room;

        for (size_t i = 0; i < samples; i++) {
                retry(l, processes, &l->items[i], true);
                frames += l->items[i].frame_count;
        }
        if (!samples)
                return ST_OK;
        room = grow(b, samples, frames ? frames : 1);
        for (size_t i = 0; i < samples; i++) {
                struct late_sample *s = &l->items[i];

                if (room && s->frames) {
                        put(b, s);
                        l->ends[s->end]++;
                } else {
                        l->lost++;
                }
                drop_copy(l, s);
                sample_deinit(s);
        }
        l->count -= samples;
        memmove(l->items, l->items + samples, l->count * sizeof *l->items);
        sample_batch_sort(b);
        return room ? ST_OK : error_no_memory(err);
}
