/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_PROFILE_WALK_H
#define CAIRN_TESTS_SUPPORT_PROFILE_WALK_H

/*
 * Follows every reference of a profile and aborts if one violates the guarantees of profile-formats/profile.h.
 * Header-only, since fuzz targets do not link test support.
 */
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/text/utf8.h"
#include "profile-formats/profile.h"

#define WALK_CHECK(x)                                                                                                  \
        do {                                                                                                           \
                if (!(x))                                                                                              \
                        abort();                                                                                       \
        } while (0)

static inline void profile_walk(const struct profile *p)
{
        WALK_CHECK(p->strings.count > 0 && p->strings.items[0].size == 0);
        for (uint32_t i = 0; i < p->strings.count; i++) {
                const struct profile_string *s = &p->strings.items[i];

                WALK_CHECK(strlen(s->text) == s->size && utf8_valid(s->text, s->size));
        }
        for (uint32_t i = 0; i < p->mappings.count; i++)
                WALK_CHECK(p->mappings.items[i].file < p->strings.count &&
                           p->mappings.items[i].build_id.size <= BUILD_ID_MAX);
        for (uint32_t i = 0; i < p->lines.count; i++) {
                const struct profile_line *l = &p->lines.items[i];

                WALK_CHECK(l->function < p->strings.count && l->linkage_name < p->strings.count &&
                           l->file < p->strings.count && l->line >= 0);
        }
        for (uint32_t i = 0; i < p->locations.count; i++) {
                const struct profile_location *l = &p->locations.items[i];

                WALK_CHECK(l->mapping == PROFILE_NONE || l->mapping < p->mappings.count);
                WALK_CHECK(l->line_count <= LIMIT_LINES_PER_LOCATION && l->first_line <= p->lines.count &&
                           l->line_count <= p->lines.count - l->first_line);
        }
        for (uint32_t i = 0; i < p->stack_locations.count; i++)
                WALK_CHECK(p->stack_locations.items[i] < p->locations.count);
        for (uint32_t i = 0; i < p->stacks.count; i++) {
                const struct profile_stack *s = &p->stacks.items[i];

                WALK_CHECK(s->location_count <= LIMIT_STACK_FRAMES && s->first_location <= p->stack_locations.count &&
                           s->location_count <= p->stack_locations.count - s->first_location);
        }
        for (uint32_t i = 0; i < p->labels.count; i++)
                WALK_CHECK(p->labels.items[i].key < p->strings.count && p->labels.items[i].value < p->strings.count);
        for (uint32_t i = 0; i < p->types.count; i++)
                WALK_CHECK(p->types.items[i].id < p->strings.count && p->types.items[i].unit < p->strings.count);
        for (uint32_t i = 0; i < p->samples.count; i++) {
                const struct profile_sample *s = &p->samples.items[i];

                WALK_CHECK(s->stack < p->stacks.count && s->type < p->types.count);
                WALK_CHECK(s->first_label <= p->labels.count && s->label_count <= LIMIT_LABELS_PER_SAMPLE &&
                           s->label_count <= p->labels.count - s->first_label);
                for (uint32_t j = 1; j < s->label_count; j++) /* sorted and unique */
                        WALK_CHECK(p->labels.items[s->first_label + j - 1].key <
                                   p->labels.items[s->first_label + j].key);
        }
}

/* Follow every reference, and check that the decoder's work was proportional to its input. */
static inline void profile_walk_decoded(const struct profile *p, size_t input_bytes)
{
        WALK_CHECK(p->work <= LIMIT_DECODE_WORK_FREE + LIMIT_DECODE_WORK_PER_BYTE * (uint64_t)input_bytes);
        profile_walk(p);
}

#endif
