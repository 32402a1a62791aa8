/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/profile_part.h"

#include <stdlib.h>

#include "common/cleanup.h"
#include "common/limits.h"

/* Numbers in the part of what was copied already, plus one; 0: not yet. */
struct copy {
        const struct profile *from;
        struct profile *to;
        uint32_t *mappings, *locations, *stacks, *types; /* owned */
        struct error *err;
};

static enum status copy_string(struct copy *c, uint32_t string, uint32_t *ret)
{
        const struct profile_string *s = &c->from->strings.items[string];

        return profile_add_string(c->to, s->text, s->size, ret, c->err);
}

static enum status copy_mapping(struct copy *c, uint32_t mapping, uint32_t *ret)
{
        struct profile_mapping m = c->from->mappings.items[mapping];
        enum status st = ST_OK;

        if (!c->mappings[mapping]) {
                st = copy_string(c, m.file, &m.file);
                if (!st)
                        st = profile_add_mapping(c->to, &m, ret, c->err);
                if (!st)
                        c->mappings[mapping] = *ret + 1;
        }
        *ret = c->mappings[mapping] - 1;
        return st;
}

static enum status copy_lines(struct copy *c, const struct profile_location *l, uint32_t *first_ret)
{
        enum status st = ST_OK;

        *first_ret = c->to->lines.count;
        for (uint32_t i = 0; i < l->line_count && !st; i++) {
                struct profile_line line = c->from->lines.items[l->first_line + i];
                uint32_t ignored;

                st = copy_string(c, line.function, &line.function);
                if (!st)
                        st = copy_string(c, line.linkage_name, &line.linkage_name);
                if (!st)
                        st = copy_string(c, line.file, &line.file);
                if (!st)
                        st = profile_add_line(c->to, &line, &ignored, c->err);
        }
        return st;
}

static enum status copy_location(struct copy *c, uint32_t location, uint32_t *ret)
{
        struct profile_location l = c->from->locations.items[location];
        enum status st = ST_OK;

        if (!c->locations[location]) {
                if (l.mapping != PROFILE_NONE)
                        st = copy_mapping(c, l.mapping, &l.mapping);
                if (!st)
                        st = copy_lines(c, &l, &l.first_line);
                if (!st)
                        st = profile_add_location(c->to, &l, ret, c->err);
                if (!st)
                        c->locations[location] = *ret + 1;
        }
        *ret = c->locations[location] - 1;
        return st;
}

static enum status copy_stack(struct copy *c, uint32_t stack, uint32_t *ret)
{
        const struct profile_stack *s = &c->from->stacks.items[stack];
        uint32_t locations[LIMIT_STACK_FRAMES];
        enum status st = ST_OK;

        if (!c->stacks[stack]) {
                for (uint32_t i = 0; i < s->location_count && !st; i++)
                        st = copy_location(c, c->from->stack_locations.items[s->first_location + i], &locations[i]);
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

static enum status copy_type(struct copy *c, uint32_t type, uint32_t *ret)
{
        struct profile_type t = c->from->types.items[type];
        enum status st = ST_OK;

        if (!c->types[type]) {
                st = copy_string(c, t.id, &t.id);
                if (!st)
                        st = copy_string(c, t.unit, &t.unit);
                if (!st)
                        st = profile_add_type(c->to, &t, ret, c->err);
                if (!st)
                        c->types[type] = *ret + 1;
        }
        *ret = c->types[type] - 1;
        return st;
}

static enum status copy_labels(struct copy *c, const struct profile_sample *s, uint32_t *first_ret)
{
        struct profile_label labels[LIMIT_LABELS_PER_SAMPLE];
        enum status st = ST_OK;

        for (uint32_t i = 0; i < s->label_count && !st; i++) {
                const struct profile_label *l = &c->from->labels.items[s->first_label + i];

                st = copy_string(c, l->key, &labels[i].key);
                if (!st)
                        st = copy_string(c, l->value, &labels[i].value);
        }
        return st ? st : profile_add_label_set(c->to, labels, s->label_count, first_ret, c->err);
}

static enum status copy_samples(struct copy *c, uint32_t first, uint32_t count)
{
        enum status st = ST_OK;

        for (uint32_t i = first; i < first + count && !st; i++) {
                struct profile_sample s = c->from->samples.items[i];
                uint32_t ignored;

                st = copy_stack(c, s.stack, &s.stack);
                if (!st)
                        st = copy_type(c, s.type, &s.type);
                if (!st)
                        st = copy_labels(c, &s, &s.first_label);
                if (!st)
                        st = profile_add_sample(c->to, &s, &ignored, c->err);
        }
        return st;
}

static uint32_t *numbers(uint32_t count)
{
        return calloc(count ? count : 1, sizeof(uint32_t));
}

enum status profile_part(const struct profile *p, uint32_t first, uint32_t count, struct profile *ret, struct error *err)
{
        _cleanup_free_ uint32_t *mappings = numbers(p->mappings.count), *locations = numbers(p->locations.count);
        _cleanup_free_ uint32_t *stacks = numbers(p->stacks.count), *types = numbers(p->types.count);
        struct profile part;
        struct copy c = { p, &part, mappings, locations, stacks, types, err };
        enum status st;

        if (!mappings || !locations || !stacks || !types)
                return error_no_memory(err);
        st = profile_init(&part, LIMIT_PROFILE_MEMORY_BYTES, err);
        if (st)
                return st;
        st = copy_samples(&c, first, count);
        if (st) {
                profile_deinit(&part);
                return st;
        }
        *ret = part;
        return ST_OK;
}
