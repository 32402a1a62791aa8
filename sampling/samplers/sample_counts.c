/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/samplers/sample_counts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/memory/array.h"

void sample_counts_deinit(struct sample_counts *c)
{
        sample_batch_deinit(&c->batch);
        id_table_deinit(&c->keys);
        id_table_deinit(&c->stacks);
        *c = (struct sample_counts){ 0 };
}

static bool append_stack(struct sample_counts *c, const struct sample_frames *s)
{
        struct sample_batch *b = &c->batch;

        if (b->stack_count >= LIMIT_AGENT_STACKS || b->frame_count + s->frame_count > LIMIT_AGENT_FRAMES ||
            !array_reserve(&b->stacks, &c->stack_capacity, b->stack_count) ||
            !array_reserve_many(&b->frames, &c->frame_capacity, b->frame_count, s->frame_count))
                return false;
        b->stacks[b->stack_count] = (struct sample_stack){ .number = b->stack_count + 1,
                                                           .first_frame = b->frame_count,
                                                           .frame_count = s->frame_count,
                                                           .end = s->end };
        memcpy(b->frames + b->frame_count, s->frames, s->frame_count * sizeof *s->frames);
        b->frame_count += s->frame_count;
        b->stack_count++;
        return true;
}

bool sample_counts_add_stack(struct sample_counts *c, const struct sample_frames *s, __u64 *ret)
{
        size_t bytes = s->frame_count * sizeof *s->frames;
        uint32_t at;

        assert(s->frame_count <= SAMPLE_STACK_MAX && c->batch.stack_count == c->stacks.count);
        *ret = 0;
        if (!s->frame_count)
                return true;
        if (!id_table_find(&c->stacks, s->frames, bytes, &at)) {
                at = (uint32_t)c->batch.stack_count;
                if (!append_stack(c, s) || !id_table_put(&c->stacks, s->frames, bytes, at))
                        return false;
        }
        *ret = at + 1ull;
        return true;
}

enum sample_stat sample_counts_add(struct sample_counts *c, struct sample_count *add,
                                   const struct sample_frames *kernel, const struct sample_frames *user)
{
        struct sample_key *key = &add->key;
        uint32_t at;

        if (!sample_counts_add_stack(c, kernel, &key->kernel_stack) ||
            !sample_counts_add_stack(c, user, &key->user_stack))
                return STAT_LOST_STACKS_FULL;
        if (!id_table_find(&c->keys, key, sizeof *key, &at)) {
                at = (uint32_t)c->batch.count_count;
                if (at >= LIMIT_AGENT_KEYS || !array_reserve(&c->batch.counts, &c->count_capacity, at) ||
                    !id_table_put(&c->keys, key, sizeof *key, at))
                        return STAT_LOST_COUNTS_FULL;
                c->batch.counts[at] = (struct sample_count){ .key = *key };
                c->batch.count_count++;
        }
        c->batch.counts[at].count += add->count;
        c->batch.counts[at].latency += add->latency;
        return STAT_SAMPLES;
}

void sample_counts_take(struct sample_counts *c, struct sample_batch *ret)
{
        *ret = c->batch;
        c->batch = (struct sample_batch){ 0 };
        sample_counts_deinit(c);
}
