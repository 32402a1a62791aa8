/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/scan_groups.h"

#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/text.h"
#include "profile-store/scan/group_rows.h"

#define NO_GROUP UINT32_MAX /* of samples whose type was not requested */

/* State of one thread. */
struct group_summing {
        struct group_table table;
        struct group_rows *rows;
        struct arena arena;                      /* texts of the table; the calling thread uses the scan's arena */
        const char *const *keys;                 /* by->labels in column spelling; borrowed */
        bool by_ids;                             /* they include an id of samples */
        char ids[ID_KEYS][2 * ID_BYTES_MAX + 1]; /* of the current sample, as text */
};

/* arena: for the texts; NULL: creates its own. */
static enum status group_summing_init(struct group_summing *s, const struct scan_group_by *by, const char *const *keys,
                                      const struct label_columns *columns, struct arena *arena, struct error *err)
{
        s->keys = keys;
        for (size_t i = 0; i < by->label_count; i++)
                s->by_ids |= scan_find_id_key(keys[i]) != NULL;
        arena_init_budget(&s->arena, LIMIT_SCAN_MEMORY_BYTES, MEMORY_QUERIES);
        group_table_init(&s->table, by, arena ? arena : &s->arena);
        s->rows = group_rows_create(&s->table, keys, columns);
        return s->rows ? ST_OK : error_no_memory(err);
}

static void group_summing_deinit(struct group_summing *s)
{
        group_rows_destroy(s->rows);
        group_table_deinit(&s->table);
        arena_deinit(&s->arena);
}

/* ---- batches of the head ---- */

static enum status add_batch_sample(struct group_table *t, uint32_t group, const struct batch *b,
                                    const struct batch_sample *sample, struct error *err)
{
        uint32_t item = 0;
        enum status st = ST_OK;

        if (t->by->selects_stack && !t->by->selects_stack(t->by->stack_context, b->stacks[sample->stack].id.bytes))
                return ST_OK;
        if (t->by->times)
                return group_table_add_at_time(t, group, sample->time_us, sample->value, err);
        if (group_by_sums_stacks(t->by))
                st = group_table_number_stack(t, &b->stacks[sample->stack].id, &item, err);
        else if (!t->by->totals && !find_time_step(t->by, sample->time_us, &item))
                return ST_OK;
        return st ? st : group_table_add_value(t, group, item, sample->value, 1, err);
}

/* Value of a label: the sample's id, or else the label of that name. */
static const char *get_sample_label(struct group_summing *s, const struct batch_label_set *set,
                                    const struct batch_sample *sample, const char *name)
{
        const struct id_key *key = scan_find_id_key(name);
        const uint8_t *id = key ? scan_get_sample_id(sample, key) : NULL;

        return id ? hex_encode(id, key->size, s->ids[key - scan_id_keys]) : batch_find_label(set, name);
}

static bool has_same_ids(const struct batch_sample *a, const struct batch_sample *b)
{
        return memcmp(a->trace_id, b->trace_id, sizeof a->trace_id) == 0 &&
               memcmp(a->span_id, b->span_id, sizeof a->span_id) == 0;
}

/* Whether samples are in the same group, or both of a type that was not requested. */
static bool is_same_batch_group(const struct group_summing *s, const struct batch_sample *a,
                                const struct batch_sample *b)
{
        return a->type == b->type && a->label_set == b->label_set && (!s->by_ids || has_same_ids(a, b));
}

static enum status find_batch_group(struct group_summing *s, const struct batch *b, const struct batch_sample *sample,
                                    uint32_t *ret, struct error *err)
{
        struct group_table *t = &s->table;
        const struct batch_type *type = &b->types[sample->type];
        const struct batch_label_set *set = &b->label_sets[sample->label_set];
        const struct group_kind kind = { as_text_bytes(type->id), as_text_bytes(type->unit), type->period };
        enum status st = ST_OK;

        group_table_clear_labels(t);
        for (uint32_t i = 0; !st && group_by_needs_all_labels(t->by) && i < set->count; i++)
                st = group_table_collect_label(t, as_text_bytes(set->labels[i].name),
                                               as_text_bytes(set->labels[i].value), err);
        for (size_t i = 0; !st && !t->by->all_labels && i < t->by->label_count; i++)
                st = group_table_add_label(t, as_text_bytes(s->keys[i]),
                                           as_text_bytes(get_sample_label(s, set, sample, s->keys[i])), err);
        return st ? st : group_table_find_or_add(t, &kind, ret, err);
}

static enum status sum_batch_range(struct group_summing *s, const struct batch *b, const struct row_range *range,
                                   struct work_meter *meter, struct error *err)
{
        const struct batch_sample *last = NULL;
        uint32_t group = NO_GROUP;
        enum status st = ST_OK;

        for (uint32_t i = range->first; !st && i < range->first + range->count; i++) {
                const struct batch_sample *sample = &b->samples[i];

                st = work_meter_add(meter, 8, err);
                if (!st && (!last || !is_same_batch_group(s, last, sample))) {
                        if (group_by_selects_type(s->table.by, as_text_bytes(b->types[sample->type].id)))
                                st = find_batch_group(s, b, sample, &group, err);
                        else
                                group = NO_GROUP;
                        last = sample;
                }
                if (!st && group != NO_GROUP)
                        st = add_batch_sample(&s->table, group, b, sample, err);
        }
        return st;
}

static enum status sum_batch_groups(struct group_summing *s, const struct scan_chunk *chunk, struct error *err)
{
        enum status st = ST_OK;

        for (size_t k = 0; !st && k < chunk->rows->count; k++)
                st = sum_batch_range(s, chunk->batch, &chunk->rows->items[k], chunk->thread->meter, err);
        return st;
}

/* ---- all threads ---- */

static enum status sum_chunk_groups(void *context, const struct scan_chunk *chunk, struct error *err)
{
        struct group_summing *s = context;

        return chunk->batch ? sum_batch_groups(s, chunk, err) : group_rows_sum(s->rows, chunk, err);
}

static enum status copy_label_keys(struct store_scan *scan, const struct scan_group_by *by, const char ***ret,
                                   struct error *err)
{
        const char **keys = calloc(by->label_count + 1, sizeof *keys);

        *ret = keys;
        if (!keys)
                return error_no_memory(err);
        for (size_t i = 0; i < by->label_count; i++) {
                char *name = arena_strndup(&scan->arena, by->labels[i], strlen(by->labels[i]));

                if (!name)
                        return set_scan_too_big(err);
                normalize_label_key(by->labels[i], name);
                keys[i] = name;
        }
        return ST_OK;
}

enum status store_scan_sum_groups(struct store_scan *scan, const struct scan_filter *filter,
                                  const struct scan_group_by *by, struct scan_group_sums *ret, struct error *err)
{
        struct group_summing s[WORK_THREADS_MAX] = { 0 };
        void *contexts[WORK_THREADS_MAX];
        size_t threads = count_work_threads(), count = 0;
        _cleanup_free_ const char **keys = NULL;
        enum status st = copy_label_keys(scan, by, &keys, err);

        for (; !st && count < threads; count++) {
                contexts[count] = &s[count];
                st = group_summing_init(&s[count], by, keys, &scan->tables->columns, count ? NULL : &scan->arena, err);
        }
        if (!st)
                st = scan_visit_chunks(scan, filter, &(struct chunk_visitor){ sum_chunk_groups, NULL }, contexts,
                                       threads, err);
        for (size_t i = 1; !st && i < threads; i++)
                st = group_table_merge(&s[0].table, &s[i].table, scan->meter, err);
        if (!st)
                st = group_table_finish(&s[0].table, scan->meter, ret, err);
        for (size_t i = 0; i < count; i++)
                group_summing_deinit(&s[i]);
        return st;
}

struct sample_count_rule *scan_group_sums_list_count_rules(const struct scan_group_sums *s)
{
        struct sample_count_rule *rules = calloc(s->group_count + 1, sizeof *rules);

        for (size_t i = 0; rules && i < s->group_count; i++)
                rules[i] = profile_type_get_count_rule(s->groups[i].type, s->groups[i].period);
        return rules;
}

/* ---- series ---- */

static int compare_series(const void *x, const void *y)
{
        const uint64_t *a = x, *b = y;

        if (a[0] != b[0])
                return a[0] < b[0] ? -1 : 1;
        return a[1] < b[1] ? -1 : a[1] > b[1];
}

enum status scan_series_set_build(const struct scan_group_sums *s, bool (*is_member)(const char *type),
                                  struct scan_series_set *ret, struct error *err)
{
        struct scan_series_set set = { .items = calloc(s->group_count + 1, sizeof *set.items) };

        if (!set.items)
                return error_no_memory(err);
        for (size_t i = 0; i < s->group_count; i++)
                if (is_member(s->groups[i].type))
                        memcpy(set.items[set.count++], s->groups[i].series, sizeof *set.items);
        qsort(set.items, set.count, sizeof *set.items, compare_series);
        *ret = set;
        return ST_OK;
}

bool scan_series_set_contains(const struct scan_series_set *set, const struct scan_group *g)
{
        return bsearch(g->series, set->items, set->count, sizeof *set->items, compare_series) != NULL;
}
