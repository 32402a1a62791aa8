/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/profile_copy.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/limits.h"

/* Copying a range. Tables map numbers of the source to numbers of the copy plus one; 0: not copied yet. */
struct profile_copy {
        const struct profile *from;
        struct profile *to;
        uint32_t *mappings, *locations, *stacks, *types; /* owned */
        struct error *err;
};

static enum status copy_string_of_sample(struct profile_copy *c, uint32_t string, uint32_t *ret)
{
        const struct profile_string *s = &c->from->strings.items[string];

        return profile_add_string(c->to, s->text, s->size, ret, c->err);
}

static enum status copy_profile_mapping(struct profile_copy *c, uint32_t mapping, uint32_t *ret)
{
        struct profile_mapping m = c->from->mappings.items[mapping];
        enum status st = ST_OK;

        if (!c->mappings[mapping]) {
                st = copy_string_of_sample(c, m.file, &m.file);
                if (!st)
                        st = profile_add_mapping(c->to, &m, ret, c->err);
                if (!st)
                        c->mappings[mapping] = *ret + 1;
        }
        *ret = c->mappings[mapping] - 1;
        return st;
}

static enum status copy_profile_lines(struct profile_copy *c, const struct profile_location *l, uint32_t *first_ret)
{
        enum status st = ST_OK;

        *first_ret = c->to->lines.count;
        for (uint32_t i = 0; i < l->line_count && !st; i++) {
                struct profile_line line = c->from->lines.items[l->first_line + i];
                uint32_t ignored;

                st = copy_string_of_sample(c, line.function, &line.function);
                if (!st)
                        st = copy_string_of_sample(c, line.linkage_name, &line.linkage_name);
                if (!st)
                        st = copy_string_of_sample(c, line.file, &line.file);
                if (!st)
                        st = profile_add_line(c->to, &line, &ignored, c->err);
        }
        return st;
}

static enum status copy_profile_location(struct profile_copy *c, uint32_t location, uint32_t *ret)
{
        struct profile_location l = c->from->locations.items[location];
        enum status st = ST_OK;

        if (!c->locations[location]) {
                if (l.mapping != PROFILE_NONE)
                        st = copy_profile_mapping(c, l.mapping, &l.mapping);
                if (!st)
                        st = copy_profile_lines(c, &l, &l.first_line);
                if (!st)
                        st = profile_add_location(c->to, &l, ret, c->err);
                if (!st)
                        c->locations[location] = *ret + 1;
        }
        *ret = c->locations[location] - 1;
        return st;
}

static enum status copy_profile_stack(struct profile_copy *c, uint32_t stack, uint32_t *ret)
{
        const struct profile_stack *s = &c->from->stacks.items[stack];
        uint32_t locations[LIMIT_STACK_FRAMES];
        enum status st = ST_OK;

        if (!c->stacks[stack]) {
                for (uint32_t i = 0; i < s->location_count && !st; i++)
                        st = copy_profile_location(c, c->from->stack_locations.items[s->first_location + i],
                                                   &locations[i]);
                if (!st)
                        st = profile_add_stack(c->to, locations, s->location_count, ret, c->err);
                if (!st) {
                        c->to->stacks.items[*ret].truncated |= s->truncated;
                        c->stacks[stack] = *ret + 1;
                }
        }
        *ret = c->stacks[stack] - 1;
        return st;
}

static enum status copy_profile_type(struct profile_copy *c, uint32_t type, uint32_t *ret)
{
        struct profile_type t = c->from->types.items[type];
        enum status st = ST_OK;

        if (!c->types[type]) {
                st = copy_string_of_sample(c, t.id, &t.id);
                if (!st)
                        st = copy_string_of_sample(c, t.unit, &t.unit);
                if (!st)
                        st = profile_add_type(c->to, &t, ret, c->err);
                if (!st)
                        c->types[type] = *ret + 1;
        }
        *ret = c->types[type] - 1;
        return st;
}

static enum status copy_profile_labels(struct profile_copy *c, const struct profile_sample *s, uint32_t *first_ret)
{
        struct profile_label labels[LIMIT_LABELS_PER_SAMPLE];
        enum status st = ST_OK;

        for (uint32_t i = 0; i < s->label_count && !st; i++) {
                const struct profile_label *l = &c->from->labels.items[s->first_label + i];

                st = copy_string_of_sample(c, l->key, &labels[i].key);
                if (!st)
                        st = copy_string_of_sample(c, l->value, &labels[i].value);
        }
        return st ? st : profile_add_label_set(c->to, labels, s->label_count, first_ret, c->err);
}

static enum status copy_sample_range(struct profile_copy *c, uint32_t first, uint32_t count)
{
        enum status st = ST_OK;

        for (uint32_t i = first; i < first + count && !st; i++) {
                struct profile_sample s = c->from->samples.items[i];
                uint32_t ignored;

                st = copy_profile_stack(c, s.stack, &s.stack);
                if (!st)
                        st = copy_profile_type(c, s.type, &s.type);
                if (!st)
                        st = copy_profile_labels(c, &s, &s.first_label);
                if (!st)
                        st = profile_add_sample(c->to, &s, &ignored, c->err);
        }
        return st;
}

static uint32_t *alloc_entry_numbers(uint32_t count)
{
        return calloc(count ? count : 1, sizeof(uint32_t));
}

enum status profile_copy_samples(const struct profile *p, uint32_t first, uint32_t count, struct profile *ret,
                                 struct error *err)
{
        _cleanup_free_ uint32_t *mappings = alloc_entry_numbers(p->mappings.count),
                                *locations = alloc_entry_numbers(p->locations.count);
        _cleanup_free_ uint32_t *stacks = alloc_entry_numbers(p->stacks.count),
                                *types = alloc_entry_numbers(p->types.count);
        struct profile part;
        struct profile_copy c = { p, &part, mappings, locations, stacks, types, err };
        enum status st;

        assert(first <= p->samples.count && count <= p->samples.count - first);
        if (!mappings || !locations || !stacks || !types)
                return error_no_memory(err);
        st = profile_init(&part, LIMIT_PROFILE_MEMORY_BYTES, err);
        if (st)
                return st;
        st = copy_sample_range(&c, first, count);
        if (st) {
                profile_deinit(&part);
                return st;
        }
        *ret = part;
        return ST_OK;
}

/* Appending a whole profile. Tables map numbers of the source to those of the destination; for mappings, lines and
 * locations, which keep their order, an offset is enough. */
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
