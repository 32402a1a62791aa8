/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables are arrays in the profile's arena: reserve_profile_rows() doubles one by copying it, and discards the
 * old one. GROW makes room in a table, APPEND adds an entry, ADD_ENTRY also counts a unit of work.
 *
 * Three kinds of tables: strings, stacks and label sets are interned, so that equal ones have one number (hash tables
 * of numbers, struct profile_intern); types are few, and found by a linear search; mappings, lines, locations and
 * samples are appended as they are; avoiding repetition is left to the decoder. A sample refers to its label set by
 * the first label, hence the separate table of sets.
 *
 * In the file: growth; the count of work; init and deinit; one profile_add_...() function for each table; reasons for
 * an absence of samples; changes of all samples (labels, missing times).
 */
#include "profile-formats/profile.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/hash/hash_table.h"
#include "common/limits.h"
#include "common/text/number_text.h"
#include "common/text/utf8.h"
#include "profile-formats/sample_labels.h"

struct profile_intern {
        struct hash_table strings, stacks, label_sets; /* numbers by content; seeded, since senders choose it */
        PROFILE_TABLE(struct label_set) sets;
};

struct label_set {
        uint32_t first, count;
};

#define LIMIT_TABLE 64000000u /* labels, lines and stack entries; the memory limit is reached before */

static enum status fail_profile_memory(const struct profile *p, const char *what, struct error *err)
{
        if (p->arena.failed == ST_BUSY)
                return error_set(err, ST_BUSY, "the memory for profiles is in use; send again later");
        return error_set(err, ST_TOO_BIG, "profile needs more than %zu bytes of memory for its %s", p->arena.max, what);
}

/* Make room for n more entries. */
static enum status reserve_profile_rows(struct profile *p, void **items, uint32_t count, uint32_t *capacity, uint32_t n,
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
                return fail_profile_memory(p, what, err);
        if (count)
                memcpy(bigger, *items, count * size);
        arena_discard(&p->arena, *items, *capacity * size);
        *items = bigger;
        *capacity = (uint32_t)want;
        return ST_OK;
}

#define GROW(p, table, n, limit, what, err)                                                                            \
        ({                                                                                                             \
                void *items_ = (p)->table.items;                                                                       \
                enum status st_ = reserve_profile_rows(p, &items_, (p)->table.count, &(p)->table.capacity, n,          \
                                                       sizeof *(p)->table.items, limit, what, err);                    \
                (p)->table.items = items_;                                                                             \
                st_;                                                                                                   \
        })

#define APPEND(p, table, item, limit, what, ret, err)                                                                  \
        ({                                                                                                             \
                enum status append_ = GROW(p, table, 1, limit, what, err);                                             \
                if (!append_) {                                                                                        \
                        *(ret) = (p)->table.count;                                                                     \
                        (p)->table.items[(p)->table.count++] = *(item);                                                \
                }                                                                                                      \
                append_;                                                                                               \
        })

void profile_limit_work(struct profile *p, uint64_t input_bytes)
{
        p->max_work = LIMIT_DECODE_WORK_FREE + LIMIT_DECODE_WORK_PER_BYTE * input_bytes;
}

enum status profile_count_work(struct profile *p, uint64_t units, struct error *err)
{
        p->work += units;
        if (!p->max_work || p->work <= p->max_work)
                return ST_OK;
        return error_set(err, ST_TOO_BIG,
                         "the profile repeats so many frames or texts that decoding it takes more than %d steps per "
                         "byte",
                         LIMIT_DECODE_WORK_PER_BYTE);
}

/* Count one unit, and append. */
#define ADD_ENTRY(p, table, item, limit, what, ret, err)                                                               \
        ({                                                                                                             \
                enum status add_ = profile_count_work(p, 1, err);                                                      \
                add_ ? add_ : APPEND(p, table, item, limit, what, ret, err);                                           \
        })

static enum status reserve_interned(struct profile *p, struct hash_table *t, struct error *err)
{
        t->arena = &p->arena; /* again: a profile may have been copied to another variable since */
        return hash_table_reserve(t, NULL) ? fail_profile_memory(p, "tables", err) : ST_OK;
}

enum status profile_init(struct profile *p, size_t max_bytes, struct error *err)
{
        return profile_init_budget(p, max_bytes, MEMORY_INGEST, err);
}

enum status profile_init_budget(struct profile *p, size_t max_bytes, enum memory_use use, struct error *err)
{
        uint32_t empty;
        enum status st;

        *p = (struct profile){ 0 };
        arena_init_budget(&p->arena, max_bytes, use);
        p->intern = arena_alloc(&p->arena, sizeof *p->intern);
        if (p->intern)
                p->intern->strings.arena = p->intern->stacks.arena = p->intern->label_sets.arena = &p->arena;
        st = p->intern ? profile_add_string(p, "", 0, &empty, err) : fail_profile_memory(p, "tables", err);
        if (st)
                profile_deinit(p);
        return st;
}

void profile_deinit(struct profile *p)
{
        arena_deinit(&p->arena);
        *p = (struct profile){ 0 };
}

/* A copy with U+FFFD for each byte that is not UTF-8, and for NUL. */
static char *copy_repaired(struct arena *a, const char *text, size_t n, size_t *size_ret)
{
        char *copy = n > SIZE_MAX / 4 ? NULL : arena_alloc(a, 3 * n + 1);
        size_t out = 0;

        if (!copy)
                return NULL;
        for (size_t i = 0; i < n;) {
                size_t len = text[i] ? utf8_sequence_length(text + i, n - i) : 0;

                memcpy(copy + out, len ? text + i : "\xef\xbf\xbd", len ? len : 3);
                out += len ? len : 3;
                i += len ? len : 1;
        }
        *size_ret = out;
        return copy;
}

static bool equal_string(const void *context, uint32_t number, const void *key, size_t n)
{
        const struct profile *p = context;
        const struct profile_string *s = &p->strings.items[number];

        return s->size == n && (n == 0 || memcmp(s->text, key, n) == 0);
}

enum status profile_add_string(struct profile *p, const char *text, size_t n, uint32_t *ret, struct error *err)
{
        struct hash_table *known = &p->intern->strings;
        struct profile_string s = { NULL, (uint32_t)n };
        enum status st;
        uint32_t hash;

        if (n > LIMIT_NAME_BYTES)
                return error_set(err, ST_TOO_BIG, "profile has a string of %zu bytes, more than %zu", n,
                                 LIMIT_NAME_BYTES);
        st = profile_count_work(p, n + 1, err);
        if (st)
                return st;
        if (n && (memchr(text, 0, n) || !utf8_valid(text, n))) {
                s.text = text = copy_repaired(&p->arena, text, n, &n);
                if (!text)
                        return fail_profile_memory(p, "strings", err);
                if (n > LIMIT_NAME_BYTES) { /* repair tripled some bytes; the result has to pass this limit when it is
                                               decoded again */
                        char *end = (char *)text + (n = utf8_truncate(text, n, LIMIT_NAME_BYTES));

                        *end = 0;
                }
                s.size = (uint32_t)n;
        }
        hash = hash_table_hash(text, n);
        if (hash_table_find(known, hash, equal_string, p, text, n, ret))
                return ST_OK;
        st = reserve_interned(p, known, err);
        if (st)
                return st;
        if (!s.text)
                s.text = arena_strndup(&p->arena, text, n);
        if (!s.text)
                return fail_profile_memory(p, "strings", err);
        st = APPEND(p, strings, &s, LIMIT_STRINGS, "strings", ret, err);
        if (!st)
                hash_table_insert(known, hash, *ret);
        return st;
}

bool profile_find_string(const struct profile *p, const char *text, size_t n, uint32_t *ret)
{
        return hash_table_find(&p->intern->strings, hash_table_hash(text, n), equal_string, p, text, n, ret);
}

enum status profile_add_mapping(struct profile *p, const struct profile_mapping *m, uint32_t *ret, struct error *err)
{
        struct profile_mapping known = *m;

        assert(m->file < p->strings.count && m->build_id.size <= BUILD_ID_MAX);
        if (build_id_is_placeholder(&m->build_id))
                known.build_id = unknown_build_id;
        return ADD_ENTRY(p, mappings, &known, LIMIT_LOCATIONS, "mappings", ret, err);
}

enum status profile_add_line(struct profile *p, const struct profile_line *l, uint32_t *ret, struct error *err)
{
        assert(l->function < p->strings.count && l->linkage_name < p->strings.count && l->file < p->strings.count);
        return ADD_ENTRY(p, lines, l, LIMIT_TABLE, "lines", ret, err);
}

enum status profile_add_location(struct profile *p, const struct profile_location *l, uint32_t *ret, struct error *err)
{
        assert(l->mapping == PROFILE_NONE || l->mapping < p->mappings.count);
        assert(l->line_count == 0 ||
               (l->first_line <= p->lines.count && l->line_count <= p->lines.count - l->first_line));
        return ADD_ENTRY(p, locations, l, LIMIT_LOCATIONS, "locations", ret, err);
}

static bool equal_stack(const void *context, uint32_t number, const void *key, size_t n)
{
        const struct profile *p = context;
        const struct profile_stack *s = &p->stacks.items[number];

        return s->location_count * sizeof(uint32_t) == n &&
               (n == 0 || memcmp(p->stack_locations.items + s->first_location, key, n) == 0);
}

enum status profile_add_stack(struct profile *p, const uint32_t *locations, uint32_t count, uint32_t *ret,
                              struct error *err)
{
        struct hash_table *known = &p->intern->stacks;
        struct profile_stack s = { .first_location = p->stack_locations.count };
        enum status st;
        uint32_t hash;
        size_t size;

        s.truncated = count > LIMIT_STACK_FRAMES;
        s.location_count = s.truncated ? LIMIT_STACK_FRAMES : count;
        st = profile_count_work(p, s.location_count + 1u, err);
        if (st)
                return st;
        size = s.location_count * sizeof *locations;
        hash = hash_table_hash(locations, size) ^ s.truncated;
        if (hash_table_find(known, hash, equal_stack, p, locations, size, ret)) {
                p->stacks.items[*ret].truncated |= s.truncated;
                return ST_OK;
        }
        st = reserve_interned(p, known, err);
        if (!st)
                st = GROW(p, stack_locations, s.location_count, LIMIT_TABLE, "stack entries", err);
        if (!st)
                st = APPEND(p, stacks, &s, LIMIT_SAMPLES, "stacks", ret, err);
        if (st)
                return st;
        if (size)
                memcpy(p->stack_locations.items + s.first_location, locations, size);
        p->stack_locations.count += s.location_count;
        hash_table_insert(known, hash, *ret);
        return ST_OK;
}

enum status profile_add_type(struct profile *p, const struct profile_type *t, uint32_t *ret, struct error *err)
{
        enum status st = profile_count_work(p, 1 + p->types.count / 4, err); /* 16 bytes are compared with each */

        if (st)
                return st;
        for (uint32_t i = 0; i < p->types.count; i++) {
                const struct profile_type *old = &p->types.items[i];

                if (old->id == t->id && old->unit == t->unit && old->period == t->period) {
                        *ret = i;
                        return ST_OK;
                }
        }
        return APPEND(p, types, t, LIMIT_PROFILE_TYPES, "sample types", ret, err);
}

static bool equal_label_set(const void *context, uint32_t number, const void *key, size_t n)
{
        const struct profile *p = context;
        const struct label_set *s = &p->intern->sets.items[number];

        return s->count * sizeof *p->labels.items == n && (n == 0 || memcmp(p->labels.items + s->first, key, n) == 0);
}

enum status profile_add_label_set(struct profile *p, struct profile_label *labels, uint32_t count, uint32_t *first_ret,
                                  struct error *err)
{
        struct hash_table *known = &p->intern->label_sets;
        struct label_set s = { p->labels.count, count };
        size_t size = count * sizeof *labels, moved = 0;
        enum status st;
        uint32_t hash, number;

        assert(count <= LIMIT_LABELS_PER_SAMPLE);
        for (uint32_t i = 1; i < count; i++) { /* insertion sort: few labels, nearly sorted */
                struct profile_label l = labels[i];
                uint32_t j = i;

                for (; j > 0 && labels[j - 1].key > l.key; j--)
                        labels[j] = labels[j - 1];
                labels[j] = l;
                moved += i - j;
        }
        st = profile_count_work(p, count + moved + 1, err);
        if (st)
                return st;
        hash = hash_table_hash(labels, size);
        if (hash_table_find(known, hash, equal_label_set, p, labels, size, &number)) {
                *first_ret = p->intern->sets.items[number].first;
                return ST_OK;
        }
        st = reserve_interned(p, known, err);
        if (!st)
                st = GROW(p, labels, count, LIMIT_TABLE, "labels", err);
        if (!st)
                st = APPEND(p, intern->sets, &s, LIMIT_SAMPLES, "label sets", &number, err);
        if (st)
                return st;
        if (count)
                memcpy(p->labels.items + s.first, labels, size);
        p->labels.count += count;
        hash_table_insert(known, hash, number);
        *first_ret = s.first;
        return ST_OK;
}

enum status profile_add_sample(struct profile *p, const struct profile_sample *s, uint32_t *ret, struct error *err)
{
        assert(s->stack < p->stacks.count && s->type < p->types.count);
        assert(s->label_count <= LIMIT_LABELS_PER_SAMPLE);
        return ADD_ENTRY(p, samples, s, LIMIT_SAMPLES, "samples", ret, err);
}

void profile_reject_sample(struct profile *p, const char *reason)
{
        if (p->rejected_samples++ == 0)
                snprintf(p->rejected_reason, sizeof p->rejected_reason, "%s", reason);
}

void profile_explain_absence(const struct profile *p, char *text, size_t size)
{
        const char *reason = p->rejected_samples ? p->rejected_reason : p->note;

        if (p->rejected_samples)
                snprintf(text, size, "%s%s rejected: %s", p->rejected_samples == 1 ? "" : "all ",
                         COUNTED(p->rejected_samples, "sample", "samples"), reason);
        else
                snprintf(text, size, "the profile has no samples%s%s", *reason ? ": " : "", reason);
}

enum status profile_check_samples(const struct profile *p, struct error *err)
{
        char text[sizeof p->note + 64];

        if (p->samples.count)
                return ST_OK;
        profile_explain_absence(p, text, sizeof text);
        return error_set(err, ST_BAD_DATA, "%s", text);
}

/* Add to own the labels whose keys it lacks. */
static enum status add_missing_labels(struct sample_labels *own, const struct sample_labels *labels, struct error *err)
{
        enum status st = ST_OK;

        for (uint32_t i = 0; !st && i < labels->count; i++)
                if (!sample_labels_has(own, labels->items[i].key))
                        st = sample_labels_set(own, labels->items[i].key, labels->items[i].value, err);
        return st;
}

enum status profile_add_labels_to_all(struct profile *p, const struct sample_labels *labels, struct error *err)
{
        uint32_t last_first = PROFILE_NONE, last_count = 0; /* consecutive samples often share their set */
        const struct profile_sample *last = NULL;
        enum status st = ST_OK;

        for (uint32_t i = 0; !st && labels->count && i < p->samples.count; i++) {
                struct profile_sample *s = &p->samples.items[i];
                struct sample_labels own;

                if (last && s->first_label == last_first && s->label_count == last_count) {
                        s->first_label = last->first_label;
                        s->label_count = last->label_count;
                        continue;
                }
                last = s;
                last_first = s->first_label;
                last_count = own.count = s->label_count;
                if (own.count)
                        memcpy(own.items, p->labels.items + s->first_label, own.count * sizeof *own.items);
                st = add_missing_labels(&own, labels, err);
                if (!st && own.count > last_count)
                        st = profile_add_label_set(p, own.items, own.count, &s->first_label, err);
                s->label_count = own.count;
        }
        return st;
}

enum status profile_add_label_to_all(struct profile *p, const char *key, const char *value, struct error *err)
{
        struct sample_labels labels = { .count = 0 };
        enum status st = sample_labels_set_text(&labels, p, key, value, strlen(value), err);

        return st ? st : profile_add_labels_to_all(p, &labels, err);
}

void profile_set_missing_times(struct profile *p, int64_t now_unix_ns)
{
        for (uint32_t i = 0; i < p->samples.count; i++)
                if (p->samples.items[i].time_unix_ns <= 0) /* before 1970: a sender without a clock */
                        p->samples.items[i].time_unix_ns = now_unix_ns;
}

static uint32_t max_uint32(uint32_t a, uint32_t b)
{
        return a > b ? a : b;
}

uint32_t profile_longest_probe(const struct profile *p)
{
        const struct profile_intern *in = p->intern;

        return max_uint32(hash_table_longest_probe(&in->strings),
                          max_uint32(hash_table_longest_probe(&in->stacks), hash_table_longest_probe(&in->label_sets)));
}
