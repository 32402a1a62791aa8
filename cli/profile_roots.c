/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "cli/profile_output.h"
#include "common/cleanup.h"
#include "common/limits.h"

/* The text of a sample's label; 0 none. */
static uint32_t value_of(const struct profile *p, const struct profile_sample *s, uint32_t key)
{
        for (uint32_t i = 0; i < s->label_count; i++)
                if (p->labels.items[s->first_label + i].key == key)
                        return p->labels.items[s->first_label + i].value;
        return 0;
}

/* *ret: the location that is called so; made when it is not known yet. */
static enum status root(struct profile *p, uint32_t value, uint32_t *known, uint32_t *ret, struct error *err)
{
        struct profile_location l = { .mapping = PROFILE_NONE, .kind = ADDRESS_NONE, .line_count = 1 };
        struct profile_line line = { .function = value };
        enum status st;

        if (known[value] != PROFILE_NONE) {
                *ret = known[value];
                return ST_OK;
        }
        st = profile_add_line(p, &line, &l.first_line, err);
        if (!st)
                st = profile_add_location(p, &l, ret, err);
        if (!st)
                known[value] = *ret;
        return st;
}

/* A stack that is as long as it may be loses its outermost frame to the root. */
static enum status add_root(struct profile *p, struct profile_sample *s, uint32_t frame, struct error *err)
{
        const struct profile_stack from = p->stacks.items[s->stack];
        uint32_t frames[LIMIT_STACK_FRAMES], count = from.location_count;
        enum status st;

        if (count == LIMIT_STACK_FRAMES)
                count--;
        memcpy(frames, p->stack_locations.items + from.first_location, count * sizeof *frames);
        frames[count++] = frame;
        st = profile_add_stack(p, frames, count, &s->stack, err);
        if (!st)
                p->stacks.items[s->stack].truncated |= from.truncated;
        return st;
}

enum status profile_add_roots(struct profile *p, const char *label, struct error *err)
{
        _cleanup_free_ uint32_t *known = malloc(p->strings.count * sizeof *known);
        enum status st = ST_OK;
        uint32_t key;

        if (!known)
                return error_no_memory(err);
        memset(known, 0xff, p->strings.count * sizeof *known); /* PROFILE_NONE */
        if (!profile_find_string(p, label, strlen(label), &key))
                return ST_OK;
        for (uint32_t i = 0; i < p->samples.count && !st; i++) {
                struct profile_sample *s = &p->samples.items[i];
                uint32_t value = value_of(p, s, key), frame = 0;

                if (!value)
                        continue;
                st = root(p, value, known, &frame, err);
                if (!st)
                        st = add_root(p, s, frame, err);
        }
        return st;
}
