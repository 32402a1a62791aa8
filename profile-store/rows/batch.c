/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reduction of a profile, whose tables refer to each other by number, to a batch with ids made of content.
 * batch_create() has the steps, each after those that its ids are made of: mark the stacks and locations of samples,
 * since others are dropped; locations, whose ids are hashes of their content; stacks, whose ids are hashes of
 * location ids; samples, with types and label sets. Each step also merges entries that have become equal by
 * normalization.
 *
 * struct reduction has the temporary arrays, most of them by number of the profile: a string is copied on its first
 * use, and stacks find the ids of their locations. The result is in the arena of the batch. Names of functions that are
 * mangled become readable after the location has its id, which is a hash of the names as sent.
 *
 * In the file: locations; stacks; label sets and samples; the invariants; create, references; lookup of a label.
 */
#include "profile-store/rows/batch.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "common/memory/array.h"
#include "common/debug_check.h"
#include "common/limits.h"
#include "profile-formats/profile_type.h"
#include "profile-store/rows/key_map.h"
#include "symbol-index/demangle.h"

/* Bytes charged for a name that the demangler gave up. */
#define FAILED_NAME_BYTES KiB(4)

#define RENAMED_LABEL_PREFIX "exported_" /* as Prometheus does */
#define US_PER_DAY INT64_C(86400000000)

struct reduction {
        const struct profile *p;
        struct batch *b;
        struct buf scratch;
        const char **strings;  /* by the profile's string number; copied on first use */
        const char **readable; /* by the profile's string number: demangled, or the string itself */
        struct buf name_scratch;
        size_t demangled_bytes;              /* spent of LIMIT_SENT_NAMES_BYTES */
        uint64_t *location_ids;              /* by the profile's location number */
        uint32_t *stacks;                    /* by the profile's stack number: number in the batch */
        uint8_t *stack_used, *location_used; /* by the profile's numbers: whether a sample refers to it */
        struct build_id **build_ids;         /* by the profile's mapping number */
        struct batch_label_set *label_sets;
        size_t label_set_capacity;
};

int64_t day_of_us(int64_t time_us)
{
        return time_us / US_PER_DAY - (time_us % US_PER_DAY < 0);
}

static int64_t convert_ns_to_us(int64_t ns)
{
        int64_t us = ns / 1000 - (ns % 1000 < 0);

        return us < INT64_MIN / 1000 ? INT64_MIN / 1000 : us; /* the value in nanoseconds must fit 64 bits */
}

static const char *copy_string_to_batch(struct reduction *r, uint32_t string)
{
        if (!r->strings[string]) {
                const struct profile_string *s = &r->p->strings.items[string];

                r->strings[string] = arena_strndup(&r->b->arena, s->text, s->size);
        }
        return r->strings[string];
}

static enum status report_full_batch(struct error *err)
{
        if (memory_budget_refused_recently())
                return error_set(err, ST_BUSY, "the memory for queued batches is in use; send again later");
        return error_set(err, ST_TOO_BIG, "a batch needs more than %zu bytes in memory; send smaller ones",
                         (size_t)LIMIT_PROFILE_MEMORY_BYTES);
}

static bool may_be_mangled(const char *name)
{
        return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R' || name[1] == 'D' || name[1] == 'G');
}

/* The readable form of a function's name, or the name itself. NULL when the arena is full. */
static const char *get_readable_name(struct reduction *r, uint32_t string)
{
        const char *name = copy_string_to_batch(r, string), *readable;
        size_t n;

        if (!name || r->readable[string])
                return name ? r->readable[string] : NULL;
        r->readable[string] = name;
        if (!may_be_mangled(name) || r->demangled_bytes >= LIMIT_SENT_NAMES_BYTES)
                return name;
        readable = symbol_demangle(name, &r->name_scratch);
        if (readable == name) {
                r->demangled_bytes += FAILED_NAME_BYTES;
                return name;
        }
        n = strlen(readable);
        r->demangled_bytes += n;
        r->readable[string] = arena_strndup(&r->b->arena, readable, n);
        return r->readable[string];
}

/*
 * Give a sender's frame the names as those of symbols: the readable one, and the linkage name if it differs. A sender
 * that does not demangle sends the linkage name as either of them.
 */
static bool make_frame_readable(struct reduction *r, const struct profile_line *line, struct sent_frame *frame)
{
        uint32_t name = *frame->function ? line->function : line->linkage_name;
        const char *readable = get_readable_name(r, name);

        if (!readable)
                return false;
        if (readable != r->strings[name] && !*frame->linkage_name)
                frame->linkage_name = r->strings[name];
        frame->function = readable;
        return true;
}

static enum status reduce_location(struct reduction *r, uint32_t number, struct batch_location *ret, struct error *err)
{
        const struct profile_location *from = &r->p->locations.items[number];
        struct sent_frame *frames = arena_alloc_array(&r->b->arena, from->line_count, sizeof *frames);
        struct location_identity *l = &ret->identity;
        enum status st;

        if (from->line_count > LIMIT_LINES_PER_LOCATION) /* the copy in the queue could not be decoded */
                return error_set(err, ST_TOO_BIG, "a location has %u lines, more than %d", from->line_count,
                                 LIMIT_LINES_PER_LOCATION);
        *l = (struct location_identity){ .mapping = "",
                                         .kind = from->kind,
                                         .address = from->address,
                                         .is_kernel = from->frame_type == PROFILE_FRAME_KERNEL,
                                         .frames = frames,
                                         .frame_count = from->line_count };
        if (from->mapping != PROFILE_NONE) {
                struct build_id **id = &r->build_ids[from->mapping];

                if (!*id && (*id = arena_alloc(&r->b->arena, sizeof **id)))
                        **id = r->p->mappings.items[from->mapping].build_id;
                l->build_id = *id;
                l->mapping = copy_string_to_batch(r, r->p->mappings.items[from->mapping].file);
                if (!*id || !l->mapping)
                        return report_full_batch(err);
        }
        for (uint32_t i = 0; i < from->line_count; i++) {
                const struct profile_line *line = &r->p->lines.items[from->first_line + i];

                if (!frames)
                        return report_full_batch(err);
                frames[i] = (struct sent_frame){ .function = copy_string_to_batch(r, line->function),
                                                 .linkage_name = copy_string_to_batch(r, line->linkage_name),
                                                 .file = copy_string_to_batch(r, line->file),
                                                 .line = line->line,
                                                 .start_line = line->start_line };
                if (!frames[i].function || !frames[i].linkage_name || !frames[i].file)
                        return report_full_batch(err);
        }
        location_identity_normalize(l);
        st = location_identity_hash(l, &r->scratch, &ret->id, err);
        for (uint32_t i = 0; !st && i < from->line_count; i++) {
                if (!make_frame_readable(r, &r->p->lines.items[from->first_line + i], &frames[i]))
                        st = report_full_batch(err);
        }
        return st;
}

static void mark_sampled_locations(struct reduction *r)
{
        for (uint32_t i = 0; i < r->p->samples.count; i++) {
                uint32_t number = r->p->samples.items[i].stack;
                const struct profile_stack *stack = &r->p->stacks.items[number];

                if (r->stack_used[number])
                        continue;
                r->stack_used[number] = 1;
                for (uint32_t k = 0; k < stack->location_count; k++)
                        r->location_used[r->p->stack_locations.items[stack->first_location + k]] = 1;
        }
}

static enum status reduce_locations(struct reduction *r, struct error *err)
{
        struct batch *b = r->b;
        _cleanup_key_map_ struct key_map seen = { 0 };
        enum status st;

        b->locations = arena_alloc_array(&b->arena, r->p->locations.count, sizeof *b->locations);
        if (!b->locations && r->p->locations.count)
                return report_full_batch(err);
        st = key_map_reserve(&seen, r->p->locations.count, err);
        if (st)
                return st;
        for (uint32_t i = 0; i < r->p->locations.count; i++) {
                struct batch_location l;
                struct hash128 key;
                bool added;

                if (!r->location_used[i])
                        continue;
                st = reduce_location(r, i, &l, err);
                if (st)
                        return st;
                key = make_u64_key(l.id);
                st = key_map_put(&seen, &key, 0, &added, NULL, err);
                if (st)
                        return st;
                r->location_ids[i] = l.id;
                if (added)
                        b->locations[b->location_count++] = l;
        }
        return ST_OK;
}

static enum status reduce_stacks(struct reduction *r, struct error *err)
{
        struct batch *b = r->b;
        _cleanup_key_map_ struct key_map seen = { 0 };
        enum status st;

        b->stacks = arena_alloc_array(&b->arena, r->p->stacks.count, sizeof *b->stacks);
        if (!b->stacks && r->p->stacks.count)
                return report_full_batch(err);
        st = key_map_reserve(&seen, r->p->stacks.count, err);
        if (st)
                return st;
        for (uint32_t i = 0; i < r->p->stacks.count; i++) {
                const struct profile_stack *from = &r->p->stacks.items[i];
                struct batch_stack s = { .location_count = from->location_count };
                uint64_t *ids, *number;
                bool added;

                if (!r->stack_used[i])
                        continue;
                s.location_ids = ids = arena_alloc_array(&b->arena, from->location_count, sizeof *ids);
                if (!ids && from->location_count)
                        return report_full_batch(err);
                for (uint32_t k = 0; k < from->location_count; k++)
                        ids[k] = r->location_ids[r->p->stack_locations.items[from->first_location + k]];
                s.id = hash_stack_identity(ids, from->location_count);
                st = key_map_put(&seen, &s.id, b->stack_count, &added, &number, err);
                if (st)
                        return st;
                r->stacks[i] = (uint32_t)*number;
                if (added)
                        b->stacks[b->stack_count++] = s;
        }
        return ST_OK;
}

static int compare_label_names(const void *a, const void *b)
{
        const struct batch_label *x = a, *y = b;

        return strcmp(x->name, y->name);
}

/* The label's name: the column spelling of its key, which must not be that of a part of the type in selectors. */
static char *make_label_name(struct batch *b, const char *key)
{
        const size_t size = strlen(key);
        char *name = arena_strndup(&b->arena, key, size), *renamed;

        if (!name)
                return NULL;
        normalize_label_key(key, name);
        if (!profile_type_find_key(name))
                return name;
        renamed = arena_alloc(&b->arena, sizeof RENAMED_LABEL_PREFIX + size);
        if (renamed)
                snprintf(renamed, sizeof RENAMED_LABEL_PREFIX + size, RENAMED_LABEL_PREFIX "%s", name);
        return renamed;
}

/* Keys with the same column spelling become one label, with the value of the key that is first in byte order. */
static enum status reduce_label_set(struct reduction *r, const struct profile_sample *from, struct batch_label_set *ret,
                                    struct error *err)
{
        struct batch_label *labels = arena_alloc_array(&r->b->arena, from->label_count, sizeof *labels);
        const char **keys = arena_alloc_array(&r->b->arena, from->label_count, sizeof *keys);
        uint32_t count = 0;

        if (from->label_count && (!labels || !keys))
                return report_full_batch(err);
        for (uint32_t i = 0; i < from->label_count; i++) {
                const struct profile_label *l = &r->p->labels.items[from->first_label + i];
                const char *key = profile_text(r->p, l->key);
                const char *value = copy_string_to_batch(r, l->value);
                const char *name = make_label_name(r->b, key);
                uint32_t at;

                if (!name || !value)
                        return report_full_batch(err);
                if (!*value)
                        continue;
                for (at = 0; at < count && strcmp(labels[at].name, name) != 0; at++)
                        ;
                if (at < count && strcmp(keys[at], key) <= 0)
                        continue;
                labels[at] = (struct batch_label){ .name = name, .value = value };
                keys[at] = key;
                count += at == count;
        }
        if (count)
                qsort(labels, count, sizeof *labels, compare_label_names);
        *ret = (struct batch_label_set){ .labels = labels, .count = count };
        return ST_OK;
}

/* Samples of one sender share few label sets. `seen` finds a set by the labels as the profile stores them. */
static enum status find_or_add_label_set(struct reduction *r, struct key_map *seen, const struct profile_sample *from,
                                         uint32_t *ret, struct error *err)
{
        const void *labels = from->label_count ? &r->p->labels.items[from->first_label] : NULL;
        struct hash128 key = hash_bytes128(labels, from->label_count * sizeof *r->p->labels.items);
        uint64_t *number;
        bool added;
        enum status st = key_map_put(seen, &key, r->b->label_set_count, &added, &number, err);

        if (st)
                return st;
        *ret = (uint32_t)*number;
        if (!added)
                return ST_OK;
        if (!array_reserve(&r->label_sets, &r->label_set_capacity, r->b->label_set_count))
                return error_no_memory(err);
        return reduce_label_set(r, from, &r->label_sets[r->b->label_set_count++], err);
}

static bool has_nonzero_byte(const uint8_t *bytes, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                if (bytes[i])
                        return true;
        }
        return false;
}

static enum status reduce_samples(struct reduction *r, struct error *err)
{
        struct batch *b = r->b;
        _cleanup_key_map_ struct key_map sets = { 0 }, days = { 0 };

        b->samples = arena_alloc_array(&b->arena, r->p->samples.count, sizeof *b->samples);
        b->types = arena_alloc_array(&b->arena, r->p->types.count, sizeof *b->types);
        if ((r->p->samples.count && !b->samples) || (r->p->types.count && !b->types))
                return report_full_batch(err);
        for (uint32_t i = 0; i < r->p->types.count; i++) {
                const struct profile_type *t = &r->p->types.items[i];

                b->types[i] = (struct batch_type){ .id = copy_string_to_batch(r, t->id),
                                                   .unit = copy_string_to_batch(r, t->unit),
                                                   .period = t->period };
                if (!b->types[i].id || !b->types[i].unit)
                        return report_full_batch(err);
        }
        b->type_count = r->p->types.count;
        for (uint32_t i = 0; i < r->p->samples.count; i++) {
                const struct profile_sample *from = &r->p->samples.items[i];
                struct batch_sample *s = &b->samples[b->sample_count++];
                struct hash128 day;
                enum status st;

                *s = (struct batch_sample){ .time_us = convert_ns_to_us(from->time_unix_ns),
                                            .duration_ns = from->duration_ns,
                                            .value = from->value,
                                            .type = from->type,
                                            .stack = r->stacks[from->stack],
                                            .has_trace = has_nonzero_byte(from->trace_id, sizeof from->trace_id),
                                            .has_span = has_nonzero_byte(from->span_id, sizeof from->span_id) };
                memcpy(s->trace_id, from->trace_id, sizeof s->trace_id);
                memcpy(s->span_id, from->span_id, sizeof s->span_id);
                st = find_or_add_label_set(r, &sets, from, &s->label_set, err);
                day = make_u64_key((uint64_t)day_of_us(s->time_us));
                if (!st)
                        st = key_map_put(&days, &day, 0, NULL, NULL, err);
                if (st)
                        return st;
                b->oldest_us = s->time_us < b->oldest_us ? s->time_us : b->oldest_us;
                b->newest_us = s->time_us > b->newest_us ? s->time_us : b->newest_us;
        }
        b->label_sets = arena_alloc_array(&b->arena, b->label_set_count, sizeof *b->label_sets);
        if (b->label_set_count && !b->label_sets)
                return report_full_batch(err);
        if (b->label_set_count)
                memcpy(b->label_sets, r->label_sets, b->label_set_count * sizeof *b->label_sets);
        if (days.count > LIMIT_BATCH_DATES)
                return error_set(err, ST_TOO_BIG, "the samples of a batch span %zu days, more than %d", days.count,
                                 LIMIT_BATCH_DATES);
        return ST_OK;
}

static void reduction_deinit(struct reduction *r)
{
        buf_deinit(&r->scratch);
        buf_deinit(&r->name_scratch);
        free(r->strings);
        free(r->readable);
        free(r->location_ids);
        free(r->stacks);
        free(r->stack_used);
        free(r->location_used);
        free(r->build_ids);
        free(r->label_sets);
}

void batch_check(const struct batch *b)
{
        assert(atomic_load(&b->references) > 0);
        assert(!b->sample_count == (b->oldest_us > b->newest_us));
#if DEBUG_CHECKS
        for (uint32_t i = 0; i < b->sample_count; i++) {
                const struct batch_sample *s = &b->samples[i];

                assert(s->type < b->type_count && s->label_set < b->label_set_count && s->stack < b->stack_count);
                assert(s->time_us >= b->oldest_us && s->time_us <= b->newest_us);
        }
        for (uint32_t i = 0; i < b->label_set_count; i++) {
                for (uint32_t k = 1; k < b->label_sets[i].count; k++)
                        assert(strcmp(b->label_sets[i].labels[k - 1].name, b->label_sets[i].labels[k].name) < 0);
        }
#endif
}

enum status batch_create(const struct profile *p, struct batch **ret, struct error *err)
{
        return batch_create_for(MEMORY_QUEUE, p, ret, err);
}

enum status batch_create_for(enum memory_use use, const struct profile *p, struct batch **ret, struct error *err)
{
        _cleanup_(reduction_deinit) struct reduction r = { .p = p };
        struct batch *b = calloc(1, sizeof *b);
        enum status st = ST_OK;

        if (!b)
                return error_no_memory(err);
        atomic_init(&b->references, 1);
        arena_init_budget(&b->arena, LIMIT_PROFILE_MEMORY_BYTES, use);
        b->oldest_us = INT64_MAX;
        b->newest_us = INT64_MIN;
        r.b = b;
        buf_init(&r.scratch, LIMIT_PROFILE_MEMORY_BYTES);
        buf_init(&r.name_scratch, LIMIT_DEMANGLED_BYTES + 1);
        r.strings = calloc(p->strings.count + 1, sizeof *r.strings);
        r.readable = calloc(p->strings.count + 1, sizeof *r.readable);
        r.location_ids = calloc(p->locations.count + 1, sizeof *r.location_ids);
        r.stacks = calloc(p->stacks.count + 1, sizeof *r.stacks);
        r.build_ids = calloc(p->mappings.count + 1, sizeof *r.build_ids);
        r.stack_used = calloc(p->stacks.count + 1, 1);
        r.location_used = calloc(p->locations.count + 1, 1);
        if (!r.strings || !r.readable || !r.location_ids || !r.stacks || !r.build_ids || !r.stack_used ||
            !r.location_used)
                st = error_no_memory(err);
        else
                mark_sampled_locations(&r);
        if (!st)
                st = reduce_locations(&r, err);
        if (!st)
                st = reduce_stacks(&r, err);
        if (!st)
                st = reduce_samples(&r, err);
        if (st) {
                batch_unref(b);
                return st;
        }
        batch_check(b);
        *ret = b;
        return ST_OK;
}

uint64_t batch_get_bytes(const struct batch *b)
{
        return sizeof *b + b->arena.used;
}

struct batch *batch_ref(struct batch *b)
{
        unsigned before = atomic_fetch_add(&b->references, 1);

        assert(before > 0);
        return b;
}

void batch_unref(struct batch *b)
{
        if (!b || atomic_fetch_sub(&b->references, 1) != 1)
                return;
        arena_deinit(&b->arena);
        free(b);
}

const char *batch_find_label(const struct batch_label_set *set, const char *name)
{
        for (uint32_t i = 0; i < set->count; i++) {
                if (strcmp(set->labels[i].name, name) == 0)
                        return set->labels[i].value;
        }
        return "";
}
