/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampling/sample_counts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"

void sample_counts_deinit(struct sample_counts *c)
{
        sample_batch_deinit(&c->batch);
        id_table_deinit(&c->keys);
        id_table_deinit(&c->stacks);
        *c = (struct sample_counts){ 0 };
}

/* Reserve one more item, up to limit items. */
static void *reserve_count_item(void *items, size_t count, size_t *capacity, size_t limit, size_t size)
{
        size_t wanted = *capacity ? 2 * *capacity : 64;
        void *grown;

        if (count < *capacity)
                return items;
        if (count >= limit)
                return NULL;
        wanted = wanted < limit ? wanted : limit;
        grown = reallocarray(items, wanted, size);
        if (grown)
                *capacity = wanted;
        return grown;
}

static bool append_stack(struct sample_counts *c, const struct sample_frames *s, uint32_t at)
{
        struct sample_stack *stacks =
                reserve_count_item(c->batch.stacks, at, &c->stack_capacity, LIMIT_AGENT_STACKS, sizeof *stacks);
        size_t frames = c->batch.frame_count + s->frame_count;

        if (!stacks)
                return false;
        c->batch.stacks = stacks;
        if (frames > LIMIT_AGENT_FRAMES)
                return false;
        if (frames > c->frame_capacity) {
                size_t wanted = frames + frames / 2 + SAMPLE_STACK_MAX;
                uint64_t *grown = reallocarray(c->batch.frames, wanted, sizeof *grown);

                if (!grown)
                        return false;
                c->batch.frames = grown;
                c->frame_capacity = wanted;
        }
        stacks[at] = (struct sample_stack){
                .number = at + 1ull, .first_frame = c->batch.frame_count, .frame_count = s->frame_count, .end = s->end
        };
        memcpy(c->batch.frames + c->batch.frame_count, s->frames, s->frame_count * sizeof *s->frames);
        c->batch.frame_count = frames;
        c->batch.stack_count++;
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
                if (!append_stack(c, s, at) || !id_table_put(&c->stacks, s->frames, bytes, at))
                        return false;
        }
        *ret = at + 1ull;
        return true;
}

enum sample_stat sample_counts_add(struct sample_counts *c, struct sample_key *key, const struct sample_frames *kernel,
                                   const struct sample_frames *user)
{
        struct sample_count *grown;
        uint32_t at;

        if (!sample_counts_add_stack(c, kernel, &key->kernel_stack) ||
            !sample_counts_add_stack(c, user, &key->user_stack))
                return STAT_LOST_STACKS_FULL;
        if (!id_table_find(&c->keys, key, sizeof *key, &at)) {
                at = (uint32_t)c->batch.count_count;
                grown = reserve_count_item(c->batch.counts, at, &c->count_capacity, LIMIT_AGENT_KEYS, sizeof *grown);
                if (!grown)
                        return STAT_LOST_COUNTS_FULL;
                c->batch.counts = grown;
                if (!id_table_put(&c->keys, key, sizeof *key, at))
                        return STAT_LOST_COUNTS_FULL;
                grown[at] = (struct sample_count){ .key = *key };
                c->batch.count_count++;
        }
        c->batch.counts[at].count++;
        return STAT_SAMPLES;
}

void sample_counts_take(struct sample_counts *c, struct sample_batch *ret)
{
        *ret = c->batch;
        c->batch = (struct sample_batch){ 0 };
        sample_counts_deinit(c);
}
