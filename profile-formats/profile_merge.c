/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/profile_merge.h"

#include <stdlib.h>
#include <string.h>

#include "common/limits.h"

/* By the source's numbers: the destination's. Mappings, lines and locations keep their order, so an offset is enough. */
struct merge {
        struct profile *to;
        const struct profile *from;
        uint32_t *strings, *stacks, *types;
        uint32_t first_mapping, first_line, first_location;
};

static enum status merge_strings(struct merge *m, struct error *err)
{
        enum status st = ST_OK;

        for (uint32_t i = 0; !st && i < m->from->strings.count; i++) {
                const struct profile_string *s = &m->from->strings.items[i];

                st = profile_add_string(m->to, s->text, s->size, &m->strings[i], err);
        }
        return st;
}

static enum status merge_locations(struct merge *m, struct error *err)
{
        uint32_t unused;
        enum status st = ST_OK;

        for (uint32_t i = 0; !st && i < m->from->mappings.count; i++) {
                struct profile_mapping mapping = m->from->mappings.items[i];

                mapping.file = m->strings[mapping.file];
                st = profile_add_mapping(m->to, &mapping, &unused, err);
        }
        for (uint32_t i = 0; !st && i < m->from->lines.count; i++) {
                struct profile_line line = m->from->lines.items[i];

                line.function = m->strings[line.function];
                line.linkage_name = m->strings[line.linkage_name];
                line.file = m->strings[line.file];
                st = profile_add_line(m->to, &line, &unused, err);
        }
        for (uint32_t i = 0; !st && i < m->from->locations.count; i++) {
                struct profile_location location = m->from->locations.items[i];

                if (location.mapping != PROFILE_NONE)
                        location.mapping += m->first_mapping;
                location.first_line += m->first_line;
                st = profile_add_location(m->to, &location, &unused, err);
        }
        return st;
}

static enum status merge_stacks(struct merge *m, struct error *err)
{
        uint32_t locations[LIMIT_STACK_FRAMES];
        enum status st = ST_OK;

        for (uint32_t i = 0; !st && i < m->from->stacks.count; i++) {
                const struct profile_stack *stack = &m->from->stacks.items[i];

                for (uint32_t k = 0; k < stack->location_count; k++)
                        locations[k] = m->from->stack_locations.items[stack->first_location + k] + m->first_location;
                st = profile_add_stack(m->to, locations, stack->location_count, &m->stacks[i], err);
                if (!st && stack->truncated)
                        m->to->stacks.items[m->stacks[i]].truncated = true;
        }
        return st;
}

static enum status merge_types(struct merge *m, struct error *err)
{
        enum status st = ST_OK;

        for (uint32_t i = 0; !st && i < m->from->types.count; i++) {
                struct profile_type type = m->from->types.items[i];

                type.id = m->strings[type.id];
                type.unit = m->strings[type.unit];
                st = profile_add_type(m->to, &type, &m->types[i], err);
        }
        return st;
}

static enum status merge_samples(struct merge *m, struct error *err)
{
        struct profile_label labels[LIMIT_LABELS_PER_SAMPLE];
        uint32_t unused;
        enum status st = ST_OK;

        for (uint32_t i = 0; !st && i < m->from->samples.count; i++) {
                struct profile_sample sample = m->from->samples.items[i];

                for (uint32_t k = 0; k < sample.label_count; k++) {
                        const struct profile_label *l = &m->from->labels.items[sample.first_label + k];

                        labels[k] = (struct profile_label){ m->strings[l->key], m->strings[l->value] };
                }
                sample.stack = m->stacks[sample.stack];
                sample.type = m->types[sample.type];
                st = profile_add_label_set(m->to, labels, sample.label_count, &sample.first_label, err);
                if (!st)
                        st = profile_add_sample(m->to, &sample, &unused, err);
        }
        return st;
}

enum status profile_merge(struct profile *to, const struct profile *from, struct error *err)
{
        struct merge m = { .to = to,
                           .from = from,
                           .strings = calloc((size_t)from->strings.count + 1, sizeof *m.strings),
                           .stacks = calloc((size_t)from->stacks.count + 1, sizeof *m.stacks),
                           .types = calloc((size_t)from->types.count + 1, sizeof *m.types),
                           .first_mapping = to->mappings.count,
                           .first_line = to->lines.count,
                           .first_location = to->locations.count };
        enum status st = m.strings && m.stacks && m.types ? ST_OK : error_no_memory(err);

        if (!st)
                st = merge_strings(&m, err);
        if (!st)
                st = merge_locations(&m, err);
        if (!st)
                st = merge_stacks(&m, err);
        if (!st)
                st = merge_types(&m, err);
        if (!st)
                st = merge_samples(&m, err);
        if (!st && from->rejected_samples) {
                if (!to->rejected_samples)
                        memcpy(to->rejected_reason, from->rejected_reason, sizeof to->rejected_reason);
                to->rejected_samples += from->rejected_samples;
        }
        free(m.strings);
        free(m.stacks);
        free(m.types);
        return st;
}
