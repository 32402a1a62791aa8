/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/profile_sum.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/limits.h"

/* Adding a profile. Tables map its numbers to those of the sum; PROFILE_NONE: not added yet. */
struct sum_addition {
        struct profile_sum *s;
        const struct profile *from;
        struct error *err;
        uint32_t *mappings, *locations, *stacks;
        uint32_t frames[LIMIT_STACK_FRAMES];
};

enum status profile_sum_init(struct profile_sum *s, size_t max_bytes, struct error *err)
{
        *s = (struct profile_sum){ 0 };
        return profile_init(&s->profile, max_bytes, err);
}

void profile_sum_deinit(struct profile_sum *s)
{
        number_map_deinit(&s->mappings);
        number_map_deinit(&s->locations);
        number_map_deinit(&s->samples);
        profile_deinit(&s->profile);
        *s = (struct profile_sum){ 0 };
}

static struct number_key hash_number_key(const void *bytes, size_t n)
{
        struct hash128 hash = hash_bytes128(bytes, n);
        struct number_key key = { 0 };

        memcpy(key.parts, hash.bytes, sizeof hash.bytes);
        return key;
}

static enum status add_string_to_sum(struct sum_addition *a, uint32_t number, uint32_t *ret)
{
        const struct profile_string *s = &a->from->strings.items[number];

        return profile_add_string(&a->s->profile, s->text, s->size, ret, a->err);
}

static enum status add_mapping_to_sum(struct sum_addition *a, uint32_t number, uint32_t *ret)
{
        const struct profile_mapping *from = &a->from->mappings.items[number];
        struct profile_mapping m;
        struct number_key key;
        uint32_t again;
        bool fresh;
        enum status st;

        if (a->mappings[number] != PROFILE_NONE) {
                *ret = a->mappings[number];
                return ST_OK;
        }
        memset(&m, 0, sizeof m); /* padding too: the bytes are hashed */
        m.build_id.size = from->build_id.size;
        memcpy(m.build_id.bytes, from->build_id.bytes, from->build_id.size);
        m.file_offset = from->file_offset;
        m.size = from->size;
        st = add_string_to_sum(a, from->file, &m.file);
        if (st)
                return st;
        key = hash_number_key(&m, sizeof m);
        st = number_map_get(&a->s->mappings, &key, ret, &fresh, a->err);
        if (!st && fresh)
                st = profile_add_mapping(&a->s->profile, &m, &again, a->err); /* both count up together */
        if (!st)
                a->mappings[number] = *ret;
        return st;
}

static enum status copy_lines_to_sum(struct sum_addition *a, const struct profile_location *from,
                                     struct profile_line *ret)
{
        enum status st = ST_OK;

        memset(ret, 0, LIMIT_LINES_PER_LOCATION * sizeof *ret);
        for (uint32_t i = 0; i < from->line_count && !st; i++) {
                const struct profile_line *line = &a->from->lines.items[from->first_line + i];

                ret[i].line = line->line;
                ret[i].start_line = line->start_line;
                st = add_string_to_sum(a, line->function, &ret[i].function);
                if (!st)
                        st = add_string_to_sum(a, line->linkage_name, &ret[i].linkage_name);
                if (!st)
                        st = add_string_to_sum(a, line->file, &ret[i].file);
        }
        return st;
}

static enum status add_location_to_sum(struct sum_addition *a, uint32_t number, uint32_t *ret)
{
        const struct profile_location *from = &a->from->locations.items[number];
        struct {
                uint64_t address;
                uint32_t mapping, kind, frame_type, line_count;
                struct profile_line lines[LIMIT_LINES_PER_LOCATION];
        } content = { .address = from->address,
                      .mapping = PROFILE_NONE,
                      .kind = from->kind,
                      .frame_type = from->frame_type,
                      .line_count = from->line_count };
        struct profile_location l = *from;
        struct number_key key;
        uint32_t again;
        bool fresh;
        enum status st = copy_lines_to_sum(a, from, content.lines);

        if (!st && from->mapping != PROFILE_NONE)
                st = add_mapping_to_sum(a, from->mapping, &content.mapping);
        if (st)
                return st;
        key = hash_number_key(&content, offsetof(typeof(content), lines) + from->line_count * sizeof *content.lines);
        st = number_map_get(&a->s->locations, &key, ret, &fresh, a->err);
        if (st || !fresh)
                return st;
        l.mapping = content.mapping;
        l.first_line = a->s->profile.lines.count;
        for (uint32_t i = 0; i < from->line_count && !st; i++)
                st = profile_add_line(&a->s->profile, &content.lines[i], &again, a->err);
        return st ? st : profile_add_location(&a->s->profile, &l, &again, a->err);
}

static enum status add_stack_to_sum(struct sum_addition *a, uint32_t number, uint32_t *ret)
{
        const struct profile_stack *from = &a->from->stacks.items[number];
        enum status st = ST_OK;

        if (a->stacks[number] != PROFILE_NONE) {
                *ret = a->stacks[number];
                return ST_OK;
        }
        for (uint32_t i = 0; i < from->location_count && !st; i++) {
                uint32_t l = a->from->stack_locations.items[from->first_location + i];

                if (a->locations[l] == PROFILE_NONE)
                        st = add_location_to_sum(a, l, &a->locations[l]);
                a->frames[i] = a->locations[l];
        }
        if (!st)
                st = profile_add_stack(&a->s->profile, a->frames, from->location_count, ret, a->err);
        if (!st) {
                a->s->profile.stacks.items[*ret].truncated |= from->truncated;
                a->stacks[number] = *ret;
        }
        return st;
}

static enum status add_type_to_sum(struct sum_addition *a, uint32_t number, uint32_t *ret)
{
        struct profile_type t = a->from->types.items[number];
        enum status st = add_string_to_sum(a, t.id, &t.id);

        if (!st)
                st = add_string_to_sum(a, t.unit, &t.unit);
        return st ? st : profile_add_type(&a->s->profile, &t, ret, a->err);
}

static enum status add_labels_to_sum(struct sum_addition *a, const struct profile_sample *from, uint32_t *first_ret)
{
        struct profile_label set[LIMIT_LABELS_PER_SAMPLE];
        enum status st = ST_OK;

        for (uint32_t i = 0; i < from->label_count && !st; i++) {
                const struct profile_label *l = &a->from->labels.items[from->first_label + i];

                st = add_string_to_sum(a, l->key, &set[i].key);
                if (!st)
                        st = add_string_to_sum(a, l->value, &set[i].value);
        }
        return st ? st : profile_add_label_set(&a->s->profile, set, from->label_count, first_ret, a->err);
}

/* Ignores the duration when the sum exceeds 63 bits. */
static int64_t get_sample_end(const struct profile_sample *s)
{
        int64_t end;

        return __builtin_add_overflow(s->time_unix_ns, s->duration_ns, &end) ? s->time_unix_ns : end;
}

static void merge_equal_sample(struct profile_sample *to, const struct profile_sample *from)
{
        int64_t end = get_sample_end(to), from_end = get_sample_end(from);

        to->value = (int64_t)((uint64_t)to->value + (uint64_t)from->value);
        if (from->time_unix_ns < to->time_unix_ns)
                to->time_unix_ns = from->time_unix_ns;
        if (__builtin_sub_overflow(end > from_end ? end : from_end, to->time_unix_ns, &to->duration_ns))
                to->duration_ns = INT64_MAX;
}

static enum status add_sample_to_sum(struct sum_addition *a, const struct profile_sample *from)
{
        struct profile_sample s = *from;
        struct number_key key;
        uint32_t number, again;
        bool fresh;
        enum status st = add_stack_to_sum(a, from->stack, &s.stack);

        if (!st)
                st = add_type_to_sum(a, from->type, &s.type);
        if (!st)
                st = add_labels_to_sum(a, from, &s.first_label);
        key = (struct number_key){ { s.stack, s.type, s.first_label, s.label_count } };
        if (!st)
                st = number_map_get(&a->s->samples, &key, &number, &fresh, a->err);
        if (st)
                return st;
        if (!fresh) {
                merge_equal_sample(&a->s->profile.samples.items[number], &s);
                return ST_OK;
        }
        return profile_add_sample(&a->s->profile, &s, &again, a->err);
}

static uint32_t *alloc_unknown_numbers(uint32_t count)
{
        uint32_t *ret = malloc((count + 1ul) * sizeof *ret);

        if (ret)
                memset(ret, 0xff, (count + 1ul) * sizeof *ret); /* PROFILE_NONE */
        return ret;
}

enum status profile_sum_add(struct profile_sum *s, const struct profile *p, uint32_t *added_ret, struct error *err)
{
        _cleanup_free_ uint32_t *mappings = alloc_unknown_numbers(p->mappings.count),
                                *locations = alloc_unknown_numbers(p->locations.count),
                                *stacks = alloc_unknown_numbers(p->stacks.count);
        _cleanup_free_ struct sum_addition *a = calloc(1, sizeof *a);
        enum status st = ST_OK;

        *added_ret = 0;
        if (!mappings || !locations || !stacks || !a)
                return error_no_memory(err);
        *a = (struct sum_addition){
                .s = s, .from = p, .err = err, .mappings = mappings, .locations = locations, .stacks = stacks
        };
        for (uint32_t i = 0; i < p->samples.count && !st; i++) {
                st = add_sample_to_sum(a, &p->samples.items[i]);
                *added_ret += !st;
        }
        return st;
}
