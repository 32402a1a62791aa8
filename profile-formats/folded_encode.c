/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/hash.h"
#include "common/limits.h"
#include "profile-formats/folded.h"
#include "profile-formats/number_map.h"

struct folded_line {
        size_t start, size; /* in the text */
        int64_t value;
};

struct encoder {
        const struct profile *p;
        const char *root_label;
        struct buf text; /* of all distinct stacks */
        struct number_map seen;
        struct folded_line *lines; /* by number in seen */
        size_t capacity;
};

/* ';' and line ends would be read as structure. */
static void put_frame(struct encoder *e, const char *name, bool is_kernel)
{
        for (const char *c = name; *c; c++)
                buf_append_u8(&e->text, *c == ';' ? ':' : *c == '\n' || *c == '\r' ? ' ' : (uint8_t)*c);
        if (is_kernel)
                buf_append_str(&e->text, "_[k]");
}

static void put_unresolved(struct encoder *e, const struct profile_location *l)
{
        const char *file = l->mapping == PROFILE_NONE ?
                                   "" :
                                   profile_text(e->p, e->p->mappings.items[l->mapping].file);
        const char *slash = strrchr(file, '/');

        buf_printf(&e->text, "0x%" PRIx64, l->address);
        if (*file)
                buf_printf(&e->text, file[0] == '[' ? " %s" : " [%s]", slash ? slash + 1 : file);
        if (l->is_kernel)
                buf_append_str(&e->text, "_[k]");
}

static void put_location(struct encoder *e, const struct profile_location *l)
{
        if (l->line_count == 0)
                put_unresolved(e, l);
        for (uint32_t i = l->line_count; i-- > 0;) {
                const struct profile_line *line = &e->p->lines.items[l->first_line + i];

                put_frame(e, line->function ? profile_text(e->p, line->function) : "[unknown]", l->is_kernel);
                if (i)
                        buf_append_u8(&e->text, ';');
        }
}

static void put_root(struct encoder *e, const struct profile_sample *s)
{
        for (uint32_t i = 0; e->root_label && i < s->label_count; i++) {
                const struct profile_label *l = &e->p->labels.items[s->first_label + i];

                if (strcmp(profile_text(e->p, l->key), e->root_label) == 0)
                        put_frame(e, profile_text(e->p, l->value), false);
        }
}

static void put_stack(struct encoder *e, const struct profile_sample *s)
{
        const struct profile_stack *stack = &e->p->stacks.items[s->stack];
        size_t start = e->text.size;

        put_root(e, s);
        for (uint32_t i = stack->location_count; i-- > 0;) {
                if (e->text.size > start)
                        buf_append_u8(&e->text, ';');
                put_location(e, &e->p->locations.items[e->p->stack_locations.items[stack->first_location + i]]);
        }
        if (e->text.size == start)
                buf_append_str(&e->text, "[no stack]");
}

/* Equal lines are one: the text of a later one is taken off again. */
static enum status add_sample(struct encoder *e, const struct profile_sample *s, struct error *err)
{
        size_t start = e->text.size;
        struct number_key key = { 0 };
        struct hash128 hash;
        uint32_t number;
        bool fresh;
        enum status st;

        put_stack(e, s);
        st = buf_status(&e->text, err, "folded stacks");
        if (st)
                return st;
        hash = hash128(e->text.data + start, e->text.size - start);
        memcpy(key.parts, hash.bytes, sizeof hash.bytes);
        st = number_map_get(&e->seen, &key, &number, &fresh, err);
        if (st)
                return st;
        if (!array_reserve(&e->lines, &e->capacity, number))
                return error_no_memory(err);
        if (fresh)
                e->lines[number] = (struct folded_line){ start, e->text.size - start, 0 };
        else
                e->text.size = start;
        e->lines[number].value = (int64_t)((uint64_t)e->lines[number].value + (uint64_t)s->value);
        return ST_OK;
}

enum status folded_encode(const struct profile *p, const char *root_label, struct buf *ret, struct error *err)
{
        struct encoder e = { .p = p, .root_label = root_label };
        enum status st = ST_OK;

        buf_init(&e.text, LIMIT_PROFILE_MEMORY_BYTES);
        for (uint32_t i = 0; !st && i < p->samples.count; i++)
                if (p->samples.items[i].type == p->samples.items[0].type)
                        st = add_sample(&e, &p->samples.items[i], err);
        for (uint32_t i = 0; !st && i < e.seen.count; i++) {
                buf_append(ret, e.text.data + e.lines[i].start, e.lines[i].size);
                buf_printf(ret, " %" PRId64 "\n", e.lines[i].value);
        }
        buf_deinit(&e.text);
        number_map_deinit(&e.seen);
        free(e.lines);
        return st ? st : buf_status(ret, err, "folded stacks");
}
