/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_SAMPLERS_SAMPLE_FRAME_H
#define CAIRN_SAMPLING_SAMPLERS_SAMPLE_FRAME_H

/**
 * @file
 * Reads the words of a stack as frames.
 */
#include <stdbool.h>
#include <stdint.h>

#include "bpf/sample.h"

struct sample_frame {
        uint32_t kind; /* enum sample_frame_kind, or a number that this version does not know */
        bool is_exact;
        uint64_t address;
        uint64_t detail; /* the second word; 0 if there is none */
};

/** Unpack the frame that starts at a word. Returns its number of words, 0 if it does not end within count. */
static inline uint32_t sample_frame_unpack(const uint64_t *words, uint32_t count, struct sample_frame *ret)
{
        uint32_t kind;

        if (!count)
                return 0;
        kind = (uint32_t)(words[0] >> SAMPLE_FRAME_KIND_SHIFT) & SAMPLE_FRAME_KERNEL;
        if (kind == SAMPLE_FRAME_NATIVE || kind == SAMPLE_FRAME_KERNEL) {
                uint64_t mask = kind == SAMPLE_FRAME_KERNEL ? ~0ull : SAMPLE_FRAME_ADDRESS_MAX;

                *ret = (struct sample_frame){ kind, kind == SAMPLE_FRAME_NATIVE && (words[0] & SAMPLE_FRAME_EXACT),
                                              words[0] & mask, 0 };
                return 1;
        }
        if (count < 2)
                return 0;
        *ret = (struct sample_frame){ kind, 1, words[0] & SAMPLE_FRAME_ADDRESS_MAX, words[1] };
        return 2;
}

#endif
