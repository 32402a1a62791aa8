/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/profile.h"

#include <string.h>

#include "common/hash.h"
#include "common/limits.h"
#include "common/utf8.h"
#include "profile-formats/label_list.h"

/* Open addressing over the numbers of a table's entries; 0 means empty, so number i is kept as i + 1. */
struct intern_table {
        uint32_t *slots;
        uint32_t *hashes; /* of the slot's entry, so that most mismatches need no compare */
        uint32_t mask;
        uint32_t used;
};

struct profile_intern {
        struct intern_table strings, stacks, label_sets;
        PROFILE_TABLE(struct label_set) sets;
};

struct label_set {
        uint32_t first, count;
};

#define FIRST_SLOTS 1024u
#define LIMIT_TABLE 64000000u /* labels, lines and stack entries: memory ends before */

static enum status too_big(const struct profile *p, const char *what, struct error *err)
{
        return error_set(err, ST_TOO_BIG, "profile needs more than %zu bytes of memory for its %s", p->arena.max,
                         what);
}

/* Room for n more entries; the old array stays in the arena, which at worst doubles a table. */
static enum status grow(struct profile *p, void **items, uint32_t count, uint32_t *capacity, uint32_t n,
                        size_t size, uint32_t limit, const char *what, struct error *err)
{
        uint64_t want = *capacity ? (uint64_t)*capacity * 2 : 64;
        void *bigger;

        if (n > limit - count)
                return error_set(err, ST_TOO_BIG, "profile has more than %u %s", limit, what);
        if (n <= *capacity - count)
                return ST_OK;
        if (want < (uint64_t)count + n)
                want = (uint64_t)count + n;
        if (want > limit)
                want = limit;
        bigger = arena_alloc_array(&p->arena, want, size);
        if (!bigger)
                return too_big(p, what, err);
        if (count)
                memcpy(bigger, *items, count * size);
        *items = bigger;
        *capacity = (uint32_t)want;
        return ST_OK;
}

#define GROW(p, table, n, limit, what, err)                                                                        \
        ({                                                                                                         \
                void *items_ = (p)->table.items;                                                                   \
                enum status st_ = grow(p, &items_, (p)->table.count, &(p)->table.capacity, n,                      \
                                       sizeof *(p)->table.items, limit, what, err);                                \
                (p)->table.items = items_;                                                                         \
                st_;                                                                                               \
        })

#define APPEND(p, table, item, limit, what, ret, err)                                                              \
        ({                                                                                                         \
                enum status append_ = GROW(p, table, 1, limit, what, err);                                         \
                if (!append_) {                                                                                    \
                        *(ret) = (p)->table.count;                                                                 \
                        (p)->table.items[(p)->table.count++] = *(item);                                            \
                }                                                                                                  \
                append_;                                                                                           \
        })

/* Make sure that one more entry keeps the table at most half full. */
static enum status intern_reserve(struct profile *p, struct intern_table *in, struct error *err)
{
        uint32_t count = in->slots ? (in->mask + 1) * 2 : FIRST_SLOTS;
        uint32_t *slots, *hashes;

        if (in->slots && in->used < (in->mask + 1) / 2)
                return ST_OK;
        slots = arena_alloc_array(&p->arena, count, sizeof *slots);
        hashes = arena_alloc_array(&p->arena, count, sizeof *hashes);
        if (!slots || !hashes)
                return too_big(p, "tables", err);
        for (uint32_t i = 0; in->slots && i <= in->mask; i++) {
                uint32_t at;

                if (!in->slots[i])
                        continue;
                for (at = in->hashes[i] & (count - 1); slots[at]; at = (at + 1) & (count - 1))
                        ;
                slots[at] = in->slots[i];
                hashes[at] = in->hashes[i];
        }
        in->slots = slots;
        in->hashes = hashes;
        in->mask = count - 1;
        return ST_OK;
}

typedef bool (*same_fn)(const struct profile *p, uint32_t number, const void *key, size_t n);

/* The slot of an equal entry, or the empty one where it belongs. */
static uint32_t intern_slot(const struct profile *p, const struct intern_table *in, uint32_t hash, same_fn same,
                            const void *key, size_t n)
{
        uint32_t at;

        for (at = hash & in->mask; in->slots[at]; at = (at + 1) & in->mask)
                if (in->hashes[at] == hash && same(p, in->slots[at] - 1, key, n))
                        break;
        return at;
}

static void intern_fill(struct intern_table *in, uint32_t at, uint32_t hash, uint32_t number)
{
        in->slots[at] = number + 1;
        in->hashes[at] = hash;
        in->used++;
}

enum status profile_init(struct profile *p, size_t max_bytes, struct error *err)
{
        uint32_t empty;
        enum status st;

        *p = (struct profile){ 0 };
        arena_init(&p->arena, max_bytes);
        p->intern = arena_alloc(&p->arena, sizeof *p->intern);
        st = p->intern ? profile_add_string(p, "", 0, &empty, err) : too_big(p, "tables", err);
        if (st)
                profile_deinit(p);
        return st;
}

void profile_deinit(struct profile *p)
{
        arena_deinit(&p->arena);
        *p = (struct profile){ 0 };
}

/* A copy with U+FFFD for each byte that is no UTF-8, and for NUL. */
static char *copy_repaired(struct arena *a, const char *text, size_t n, size_t *size_ret)
{
        char *copy = n > SIZE_MAX / 4 ? NULL : arena_alloc(a, 3 * n + 1);
        size_t out = 0;

        if (!copy)
                return NULL;
        for (size_t i = 0; i < n;) {
                size_t len = text[i] ? utf8_sequence(text + i, n - i) : 0;

                memcpy(copy + out, len ? text + i : "\xef\xbf\xbd", len ? len : 3);
                out += len ? len : 3;
                i += len ? len : 1;
        }
        *size_ret = out;
        return copy;
}

static bool same_string(const struct profile *p, uint32_t number, const void *key, size_t n)
{
        const struct profile_string *s = &p->strings.items[number];

        return s->size == n && (n == 0 || memcmp(s->text, key, n) == 0);
}

enum status profile_add_string(struct profile *p, const char *text, size_t n, uint32_t *ret, struct error *err)
{
        struct intern_table *in = &p->intern->strings;
        struct profile_string s = { NULL, (uint32_t)n };
        enum status st;
        uint32_t hash, at;

        if (n > LIMIT_NAME_BYTES)
                return error_set(err, ST_TOO_BIG, "profile has a string of %zu bytes, more than %zu", n,
                                 LIMIT_NAME_BYTES);
        if (n && (memchr(text, 0, n) || !utf8_valid(text, n))) {
                s.text = text = copy_repaired(&p->arena, text, n, &n);
                if (!text)
                        return too_big(p, "strings", err);
                s.size = (uint32_t)n;
        }
        st = intern_reserve(p, in, err);
        if (st)
                return st;
        hash = (uint32_t)hash64(text, n);
        at = intern_slot(p, in, hash, same_string, text, n);
        if (in->slots[at]) {
                *ret = in->slots[at] - 1;
                return ST_OK;
        }
        if (!s.text)
                s.text = arena_strndup(&p->arena, text, n);
        if (!s.text)
                return too_big(p, "strings", err);
        st = APPEND(p, strings, &s, LIMIT_STRINGS, "strings", ret, err);
        if (!st)
                intern_fill(in, at, hash, *ret);
        return st;
}

bool profile_find_string(const struct profile *p, const char *text, size_t n, uint32_t *ret)
{
        const struct intern_table *in = &p->intern->strings;
        uint32_t at = intern_slot(p, in, (uint32_t)hash64(text, n), same_string, text, n);

        if (!in->slots[at])
                return false;
        *ret = in->slots[at] - 1;
        return true;
}

enum status profile_add_mapping(struct profile *p, const struct profile_mapping *m, uint32_t *ret,
                                struct error *err)
{
        return APPEND(p, mappings, m, LIMIT_LOCATIONS, "mappings", ret, err);
}

enum status profile_add_line(struct profile *p, const struct profile_line *l, uint32_t *ret, struct error *err)
{
        return APPEND(p, lines, l, LIMIT_TABLE, "lines", ret, err);
}

enum status profile_add_location(struct profile *p, const struct profile_location *l, uint32_t *ret,
                                 struct error *err)
{
        return APPEND(p, locations, l, LIMIT_LOCATIONS, "locations", ret, err);
}

static bool same_stack(const struct profile *p, uint32_t number, const void *key, size_t n)
{
        const struct profile_stack *s = &p->stacks.items[number];

        return s->location_count == n &&
               (n == 0 || memcmp(p->stack_locations.items + s->first_location, key, n * sizeof(uint32_t)) == 0);
}

enum status profile_add_stack(struct profile *p, const uint32_t *locations, uint32_t count, uint32_t *ret,
                              struct error *err)
{
        struct intern_table *in = &p->intern->stacks;
        struct profile_stack s = { .first_location = p->stack_locations.count };
        enum status st = intern_reserve(p, in, err);
        uint32_t hash, at;

        if (st)
                return st;
        s.truncated = count > LIMIT_STACK_FRAMES;
        s.location_count = s.truncated ? LIMIT_STACK_FRAMES : count;
        hash = (uint32_t)hash64(locations, s.location_count * sizeof *locations) ^ s.truncated;
        at = intern_slot(p, in, hash, same_stack, locations, s.location_count);
        if (in->slots[at]) {
                *ret = in->slots[at] - 1;
                p->stacks.items[*ret].truncated |= s.truncated;
                return ST_OK;
        }
        st = GROW(p, stack_locations, s.location_count, LIMIT_TABLE, "stack entries", err);
        if (!st)
                st = APPEND(p, stacks, &s, LIMIT_SAMPLES, "stacks", ret, err);
        if (st)
                return st;
        if (s.location_count)
                memcpy(p->stack_locations.items + s.first_location, locations,
                       s.location_count * sizeof *locations);
        p->stack_locations.count += s.location_count;
        intern_fill(in, at, hash, *ret);
        return ST_OK;
}

enum status profile_add_type(struct profile *p, const struct profile_type *t, uint32_t *ret, struct error *err)
{
        for (uint32_t i = 0; i < p->types.count; i++) {
                const struct profile_type *old = &p->types.items[i];

                if (old->id == t->id && old->unit == t->unit && old->period == t->period) {
                        *ret = i;
                        return ST_OK;
                }
        }
        return APPEND(p, types, t, LIMIT_PROFILE_TYPES, "sample types", ret, err);
}

enum status profile_add_label(struct profile *p, const struct profile_label *l, uint32_t *ret, struct error *err)
{
        return APPEND(p, labels, l, LIMIT_TABLE, "labels", ret, err);
}

static bool same_label_set(const struct profile *p, uint32_t number, const void *key, size_t n)
{
        const struct label_set *s = &p->intern->sets.items[number];

        return s->count == n &&
               (n == 0 || memcmp(p->labels.items + s->first, key, n * sizeof *p->labels.items) == 0);
}

enum status profile_add_label_set(struct profile *p, struct profile_label *labels, uint32_t count,
                                  uint32_t *first_ret, struct error *err)
{
        struct intern_table *in = &p->intern->label_sets;
        struct label_set s = { p->labels.count, count };
        enum status st = intern_reserve(p, in, err);
        uint32_t hash, at, number;

        if (st)
                return st;
        for (uint32_t i = 1; i < count; i++) { /* a handful, nearly sorted */
                struct profile_label l = labels[i];
                uint32_t j = i;

                for (; j > 0 && labels[j - 1].key > l.key; j--)
                        labels[j] = labels[j - 1];
                labels[j] = l;
        }
        hash = (uint32_t)hash64(labels, count * sizeof *labels);
        at = intern_slot(p, in, hash, same_label_set, labels, count);
        if (in->slots[at]) {
                *first_ret = p->intern->sets.items[in->slots[at] - 1].first;
                return ST_OK;
        }
        st = GROW(p, labels, count, LIMIT_TABLE, "labels", err);
        if (!st)
                st = APPEND(p, intern->sets, &s, LIMIT_SAMPLES, "label sets", &number, err);
        if (st)
                return st;
        if (count)
                memcpy(p->labels.items + s.first, labels, count * sizeof *labels);
        p->labels.count += count;
        intern_fill(in, at, hash, number);
        *first_ret = s.first;
        return ST_OK;
}

enum status profile_add_sample(struct profile *p, const struct profile_sample *s, uint32_t *ret, struct error *err)
{
        return APPEND(p, samples, s, LIMIT_SAMPLES, "samples", ret, err);
}

void profile_reject_sample(struct profile *p, const char *reason)
{
        if (p->rejected_samples++ == 0)
                snprintf(p->rejected_reason, sizeof p->rejected_reason, "%s", reason);
}

enum status profile_label_all(struct profile *p, const char *key, const char *value, struct error *err)
{
        struct label_list l;
        uint32_t last_first = PROFILE_NONE, last_count = 0; /* samples in a row share their set */
        struct profile_sample *last = NULL;
        uint32_t key_number;
        enum status st = profile_add_string(p, key, strlen(key), &key_number, err);

        for (uint32_t i = 0; !st && i < p->samples.count; i++) {
                struct profile_sample *s = &p->samples.items[i];
                bool has = false;

                if (last && s->first_label == last_first && s->label_count == last_count) {
                        s->first_label = last->first_label;
                        s->label_count = last->label_count;
                        continue;
                }
                last = s;
                last_first = s->first_label;
                last_count = s->label_count;
                l.count = s->label_count;
                for (uint32_t j = 0; j < l.count; j++) {
                        l.items[j] = p->labels.items[s->first_label + j];
                        has |= l.items[j].key == key_number;
                }
                if (has)
                        continue;
                st = label_list_set_text(&l, p, key, value, strlen(value), err);
                if (!st)
                        st = profile_add_label_set(p, l.items, l.count, &s->first_label, err);
                s->label_count = l.count;
        }
        return st;
}

void profile_default_time(struct profile *p, int64_t now_unix_ns)
{
        for (uint32_t i = 0; i < p->samples.count; i++)
                if (p->samples.items[i].time_unix_ns == 0)
                        p->samples.items[i].time_unix_ns = now_unix_ns;
}
