/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_STACK_BUILDER_H
#define CAIRN_PROFILE_FORMATS_STACK_BUILDER_H

/**
 * @file
 * Adds samples to a profile whose stacks are text: frames from the root to the leaf joined by ';'. Equal frames share a
 * location. A frame that ends in "_[k]" is a kernel frame; the mark is removed.
 *
 * Threads: one per profile.
 */
#include "profile-formats/number_map.h"
#include "profile-formats/profile.h"

/** Start with { .p = PROFILE }. A location has the same number in the map and in the profile. */
struct stack_builder {
        struct profile *p; /* borrowed; nothing else adds locations to it meanwhile */
        struct number_map locations, mappings;
        bool addresses; /* frames may be addresses, as folded_decode_addresses() takes them */
};

void stack_builder_deinit(struct stack_builder *b);

/** Find or add the location of one frame. */
enum status stack_builder_add_frame(struct stack_builder *b, const char *text, size_t n, uint32_t *ret,
                                    struct error *err) MUST_CHECK;

/** Add a sample; its stack is set here. Empty frames are left out, as are those above LIMIT_STACK_FRAMES. */
enum status stack_builder_add_text(struct stack_builder *b, const char *text, size_t n, struct profile_sample *s,
                                   struct error *err) MUST_CHECK;

#endif
