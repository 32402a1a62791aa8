/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/lookup_tiles.h"

#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define PREFETCH_AHEAD 24
#define TILES_FROM (1u << 15) /* answers; fewer stay in the cache wherever they are written */

bool lookup_answers_begin(struct lookup *l, const struct lookup_group *g)
{
        const struct lookup_object *object = &l->known.objects[g->object];

        l->common = (struct symbol_result){ .quality = object->object.quality,
                                            .generation = object->object.number,
                                            .address = (uint64_t)g->high << 32 };
        l->tiles = NULL;
        if (g->sorted || g->count < TILES_FROM)
                return true;
        if (!l->view->tiles)
                l->view->tiles = aligned_alloc(64, sizeof *l->view->tiles);
        if (!l->view->tiles)
                return false;
        l->tiles = l->view->tiles;
        l->tiles->shift = LOOKUP_TILE_SHIFT;
        while ((l->count - 1) >> l->tiles->shift >= LOOKUP_TILES_MAX)
                l->tiles->shift++;
        memset(l->tiles->counts, 0, sizeof l->tiles->counts);
        return true;
}

/* Copy past the cache, where the processor can: nobody reads the results of a large batch soon. */
static void write_out(struct symbol_result *to, const struct symbol_result *from, size_t count)
{
#ifdef __SSE2__
        for (size_t i = 0; i < count; i++) {
                _mm_stream_si128((__m128i *)&to[i], _mm_load_si128((const __m128i *)&from[i]));
                _mm_stream_si128((__m128i *)&to[i] + 1, _mm_load_si128((const __m128i *)&from[i] + 1));
        }
        _mm_sfence();
#else
        memcpy(to, from, count * sizeof *to);
#endif
}

/* Answers of keys from `first` on into their places. */
static void place_answers(const struct lookup *l, const struct lookup_answer *answers, uint32_t count, uint32_t first,
                          struct symbol_result *results)
{
        for (uint32_t i = 0; i < count; i++) {
                const struct lookup_answer *a = &answers[i];

                results[(uint32_t)a->element - first] =
                        lookup_result(l, a->element, a->state, a->first_frame, a->frame_count);
        }
}

static void put_in_tiles(const struct lookup *l, const uint64_t *elements, uint32_t count, const struct lookup_spans *spans)
{
        struct lookup_answer *answers = l->answers;
        uint32_t *counts = l->tiles->counts;
        unsigned shift = l->tiles->shift;

        for (uint32_t i = 0; i < count; i++) {
                uint64_t element = elements[i];
                uint32_t tile = (uint32_t)element >> shift, place = (tile << shift) + counts[tile]++;

                answers[place] = (struct lookup_answer){ element, spans->first[i], spans->count[i], spans->state[i] };
        }
}

void lookup_answer(struct lookup *l, const uint64_t *elements, uint32_t count, const struct lookup_spans *spans)
{
        struct symbol_result *results = l->results;
        const struct symbol_result common = l->common;

        if (l->tiles) {
                put_in_tiles(l, elements, count, spans);
                return;
        }
        for (uint32_t i = 0; i < count; i++) {
                uint64_t element = elements[i];
                struct symbol_result *r = &results[(uint32_t)element];

                if (i + PREFETCH_AHEAD < count)
                        __builtin_prefetch(&results[(uint32_t)elements[i + PREFETCH_AHEAD]], 1);
                *r = (struct symbol_result){ (enum symbol_state)spans->state[i], common.quality, common.generation,
                                             common.address | element >> 32, spans->first[i], spans->count[i] };
        }
}

void lookup_answers_end(struct lookup *l)
{
        const struct lookup_tiles *tiles = l->tiles;
        size_t tile_keys;

        if (!tiles)
                return;
        tile_keys = (size_t)1 << tiles->shift;
        for (size_t first = 0, tile = 0; first < l->count; first += tile_keys, tile++) {
                size_t keys = l->count - first < tile_keys ? l->count - first : tile_keys;

                /* Other keys' results in the tile have their places already. */
                if (tiles->counts[tile] < keys || tiles->shift > LOOKUP_TILE_SHIFT) {
                        place_answers(l, l->answers + first, tiles->counts[tile], 0, l->results);
                        continue;
                }
                place_answers(l, l->answers + first, tiles->counts[tile], (uint32_t)first, l->view->tiles->one);
                write_out(l->results + first, tiles->one, keys);
        }
        l->tiles = NULL;
}
