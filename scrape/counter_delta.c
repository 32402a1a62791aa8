/* SPDX-License-Identifier: Apache-2.0 */
#include "scrape/counter_delta.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory/buf.h"
#include "common/cleanup.h"
#include "common/limits.h"
#include "profile-formats/profile_type.h"

void counter_totals_deinit(struct counter_totals *t)
{
        free(t->items);
        memory_release(&t->memory);
        *t = (struct counter_totals){ 0 };
}

bool counter_type_is_total(const struct profile *p, uint32_t type)
{
        return !profile_type_is_gauge(profile_text(p, p->types.items[type].id));
}

/* ---- keys by content: indices of strings and stacks differ between profiles ---- */

struct content_keys {
        const struct profile *p;
        struct hash128 *strings, *locations, *stacks; /* owned */
        struct buf text;                              /* serialized current entry, strings as hashes */
};

#define ENTRY_BYTES MiB(1) /* of one serialized location, stack or sample */

static void put_string(struct content_keys *k, uint32_t string)
{
        buf_append(&k->text, &k->strings[string], sizeof *k->strings);
}

static void put_location(struct content_keys *k, const struct profile_location *l)
{
        buf_append_u8(&k->text, (uint8_t)l->kind);
        buf_append_u64(&k->text, l->address);
        buf_append_u8(&k->text, l->mapping != PROFILE_NONE);
        if (l->mapping != PROFILE_NONE) {
                const struct profile_mapping *m = &k->p->mappings.items[l->mapping];

                put_string(k, m->file);
                buf_append_u64(&k->text, m->file_offset);
                buf_append_u8(&k->text, m->build_id.size);
                buf_append(&k->text, m->build_id.bytes, m->build_id.size);
        }
        for (uint32_t i = 0; i < l->line_count; i++) {
                const struct profile_line *line = &k->p->lines.items[l->first_line + i];

                put_string(k, line->function);
                put_string(k, line->linkage_name);
                put_string(k, line->file);
                buf_append_u64(&k->text, (uint64_t)line->line);
        }
}

static enum status hash_content(struct content_keys *k, struct hash128 *ret, struct error *err)
{
        enum status st = buf_status(&k->text, err, "a location, stack or sample");

        if (!st)
                *ret = hash_bytes128(k->text.data, k->text.size);
        buf_clear(&k->text);
        return st;
}

static enum status make_content_keys(struct content_keys *k, struct error *err)
{
        const struct profile *p = k->p;
        enum status st = ST_OK;

        k->strings = calloc((size_t)p->strings.count + 1, sizeof *k->strings);
        k->locations = calloc((size_t)p->locations.count + 1, sizeof *k->locations);
        k->stacks = calloc((size_t)p->stacks.count + 1, sizeof *k->stacks);
        if (!k->strings || !k->locations || !k->stacks)
                return error_no_memory(err);
        for (uint32_t i = 0; i < p->strings.count; i++) /* once each: any number of entries may share a long string */
                k->strings[i] = hash_bytes128(p->strings.items[i].text, p->strings.items[i].size);
        for (uint32_t i = 0; !st && i < p->locations.count; i++) {
                put_location(k, &p->locations.items[i]);
                st = hash_content(k, &k->locations[i], err);
        }
        for (uint32_t i = 0; !st && i < p->stacks.count; i++) {
                const struct profile_stack *s = &p->stacks.items[i];

                for (uint32_t j = 0; j < s->location_count; j++)
                        buf_append(&k->text, &k->locations[p->stack_locations.items[s->first_location + j]],
                                   sizeof *k->locations);
                buf_append_u8(&k->text, s->truncated);
                st = hash_content(k, &k->stacks[i], err);
        }
        return st;
}

static enum status hash_sample(struct content_keys *k, const struct profile_sample *s, struct hash128 *ret,
                               struct error *err)
{
        put_string(k, k->p->types.items[s->type].id);
        buf_append(&k->text, &k->stacks[s->stack], sizeof *k->stacks);
        for (uint32_t i = 0; i < s->label_count; i++) {
                put_string(k, k->p->labels.items[s->first_label + i].key);
                put_string(k, k->p->labels.items[s->first_label + i].value);
        }
        return hash_content(k, ret, err);
}

/* ---- totals of one profile ---- */

struct keyed_sample {
        struct hash128 key;
        uint32_t sample;
};

static int compare_keyed_samples(const void *left, const void *right)
{
        const struct keyed_sample *a = left, *b = right;
        int order = memcmp(&a->key, &b->key, sizeof a->key);

        return order ? order : (a->sample > b->sample) - (a->sample < b->sample);
}

static enum status list_keyed_samples(const struct profile *p, struct keyed_sample *ret, size_t *count_ret,
                                      struct error *err)
{
        struct content_keys k = { .p = p };
        size_t count = 0;
        enum status st;

        buf_init(&k.text, ENTRY_BYTES);
        st = make_content_keys(&k, err);
        for (uint32_t i = 0; !st && i < p->samples.count; i++) {
                if (!counter_type_is_total(p, p->samples.items[i].type))
                        continue;
                ret[count].sample = i;
                st = hash_sample(&k, &p->samples.items[i], &ret[count++].key, err);
        }
        buf_deinit(&k.text);
        free(k.strings);
        free(k.locations);
        free(k.stacks);
        if (st)
                return st;
        if (count)
                qsort(ret, count, sizeof *ret, compare_keyed_samples);
        *count_ret = count;
        return ST_OK;
}

/* Sum the samples of each key into its first sample; the others become 0. */
static enum status sum_equal_keys(struct profile *p, const struct keyed_sample *list, size_t count,
                                  struct counter_totals *to, uint32_t *samples, struct error *err)
{
        for (size_t i = 0; i < count; i++) {
                struct profile_sample *s = &p->samples.items[list[i].sample];
                struct counter_total *last = to->count ? &to->items[to->count - 1] : NULL;

                if (s->value < 0)
                        return error_set(err, ST_BAD_DATA, "a total is negative: %lld", (long long)s->value);
                if (last && memcmp(&last->key, &list[i].key, sizeof last->key) == 0) {
                        if (__builtin_add_overflow(last->value, s->value, &last->value))
                                return error_set(err, ST_BAD_DATA, "a total is too large");
                        p->samples.items[samples[to->count - 1]].value = last->value;
                        s->value = 0;
                        continue;
                }
                samples[to->count] = list[i].sample;
                to->items[to->count++] = (struct counter_total){ list[i].key, s->value };
        }
        return ST_OK;
}

/* ---- differences ---- */

static int compare_totals(const struct counter_total *a, const struct counter_total *b)
{
        return memcmp(&a->key, &b->key, sizeof a->key);
}

static bool has_process_restarted(const struct counter_totals *last, const struct counter_totals *now)
{
        size_t j = 0;

        for (size_t i = 0; i < last->count; i++) {
                while (j < now->count && compare_totals(&now->items[j], &last->items[i]) < 0)
                        j++;
                if (j == now->count || compare_totals(&now->items[j], &last->items[i]) != 0 ||
                    now->items[j].value < last->items[i].value)
                        return true;
        }
        return false;
}

static void subtract_totals(const struct counter_totals *last, const struct counter_totals *now, struct profile *p,
                            const uint32_t *samples)
{
        size_t j = 0;

        for (size_t i = 0; i < last->count; i++) {
                while (compare_totals(&now->items[j], &last->items[i]) < 0)
                        j++;
                assert(j < now->count && now->items[j].value >= last->items[i].value);
                p->samples.items[samples[j]].value -= last->items[i].value;
        }
}

static void remove_zero_samples(struct profile *p, const struct counter_totals *now, const uint32_t *samples,
                                bool all_totals)
{
        uint32_t kept = 0;

        for (size_t i = 0; all_totals && i < now->count; i++)
                p->samples.items[samples[i]].value = 0;
        for (uint32_t i = 0; i < p->samples.count; i++)
                if (p->samples.items[i].value)
                        p->samples.items[kept++] = p->samples.items[i];
        p->samples.count = kept;
}

/* Totals are kept until the next scrape; their array was sized for all samples, gauges included. */
static void shrink_totals(struct counter_totals *t)
{
        struct counter_total *items = reallocarray(t->items, t->count + 1, sizeof *items);

        if (!items)
                return;
        t->items = items;
        memory_shrink(&t->memory, t->count * sizeof *items);
}

enum status counter_totals_subtract(const struct counter_totals *last, struct profile *p,
                                    struct counter_totals *now_ret, enum counter_change *change_ret, struct error *err)
{
        _cleanup_free_ struct keyed_sample *list = NULL;
        _cleanup_free_ uint32_t *samples = NULL; /* index of the sample that holds each total */
        _cleanup_memory_ struct memory_reservation scratch = { .use = MEMORY_INGEST };
        struct counter_totals now = { .memory.use = MEMORY_CACHES, .is_known = true };
        size_t n = p->samples.count, count = 0;
        size_t hashes = (size_t)p->strings.count + p->locations.count + p->stacks.count;
        enum counter_change change = COUNTER_ADDED;
        enum status st =
                memory_reserve(&scratch, n * (sizeof *list + sizeof *samples) + hashes * sizeof(struct hash128), err);

        if (!st)
                st = memory_reserve(&now.memory, n * sizeof *now.items, err);
        if (st) {
                counter_totals_deinit(&now);
                return st;
        }
        list = calloc(n + 1, sizeof *list);
        samples = calloc(n + 1, sizeof *samples);
        now.items = calloc(n + 1, sizeof *now.items);
        st = list && samples && now.items ? list_keyed_samples(p, list, &count, err) : error_no_memory(err);
        if (!st)
                st = sum_equal_keys(p, list, count, &now, samples, err);
        if (st) {
                counter_totals_deinit(&now);
                return st;
        }
        if (!last->is_known)
                change = COUNTER_FIRST;
        else if (has_process_restarted(last, &now))
                change = COUNTER_RESET;
        else
                subtract_totals(last, &now, p, samples);
        remove_zero_samples(p, &now, samples, change == COUNTER_FIRST);
        shrink_totals(&now);
        *now_ret = now;
        *change_ret = change;
        return ST_OK;
}
