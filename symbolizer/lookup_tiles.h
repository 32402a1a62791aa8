/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_LOOKUP_TILES_H
#define CAIRN_SYMBOLIZER_LOOKUP_TILES_H

/*
 * Where answers of a walk go. A walk answers keys in the order of their
 * addresses; written to their places at once, the answers of a large batch in
 * no order wait for a line of memory each. So they are first put down by
 * tiles, runs of neighbouring keys whose results fit into the cache, one after
 * the other as they come; when the group is done, tile by tile is set in order
 * in the cache and written out from front to back.
 */
#include "symbolizer/lookup_internal.h"

#define LOOKUP_TILE_SHIFT 13 /* keys of a tile: 256 KiB of results */
#define LOOKUP_TILES_MAX 512 /* larger batches have larger tiles */

/* One answer; what a whole group has in common is not in it. */
struct lookup_answer {
        uint64_t element;
        uint32_t first_frame;
        uint16_t frame_count;
        uint16_t state;
};

struct lookup_tiles {
        unsigned shift;
        uint32_t counts[LOOKUP_TILES_MAX]; /* answers in each tile */
        struct symbol_result one[1u << LOOKUP_TILE_SHIFT] __attribute__((aligned(64)));
};

/* Begin a group: choose its way and keep what its answers have in common. False without memory. */
bool lookup_answers_begin(struct lookup *l, const struct lookup_group *g) MUST_CHECK;

/* End it: all of its answers are in their places. */
void lookup_answers_end(struct lookup *l);

static inline struct symbol_result lookup_result(const struct lookup *l, uint64_t element, uint32_t state,
                                                 uint32_t first_frame, uint32_t frame_count)
{
        return (struct symbol_result){ (enum symbol_state)state, l->common.quality, l->common.generation,
                                       l->common.address | element >> 32, first_frame, frame_count };
}

#define LOOKUP_STEP 256 /* keys whose frames are found before their answers are put down */

/* Where the frames of some keys are, whose elements are neighbours. */
struct lookup_spans {
        uint32_t first[LOOKUP_STEP];
        uint16_t count[LOOKUP_STEP];
        uint16_t state[LOOKUP_STEP];
};

/* Answer the keys of elements. */
void lookup_answer(struct lookup *l, const uint64_t *elements, uint32_t count, const struct lookup_spans *spans);

#endif
