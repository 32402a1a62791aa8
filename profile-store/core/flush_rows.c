/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/core/flush_rows.h"

#include <string.h>

#include "common/limits.h"

/* ---- columns ------------------------------------------------------------------------ */

static int compare_column_names(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A label without room for a column is stored in labels_rest. Existing columns stay. */
static enum status add_column_if_room(struct label_columns *all, size_t *bytes, const char *name, struct error *err)
{
        size_t n = strlen(name);

        if (all->count >= LIMIT_LABEL_COLUMNS || n > LIMIT_LABEL_KEY_BYTES || *bytes + n > LIMIT_LABEL_COLUMN_BYTES ||
            label_columns_contain(all, name))
                return ST_OK;
        *bytes += n;
        return label_columns_add(all, name, n, err);
}

enum status extend_label_columns(struct batch *const *batches, size_t count, const struct label_columns *before,
                                 struct label_columns *ret, bool *grown_ret, struct error *err)
{
        struct label_columns all = { 0 };
        size_t bytes = 0;
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < before->count; i++) {
                bytes += strlen(before->names[i]);
                st = label_columns_add(&all, before->names[i], strlen(before->names[i]), err);
        }
        for (size_t i = 0; !st && i < count; i++) {
                for (uint32_t k = 0; !st && k < batches[i]->label_set_count; k++) {
                        const struct batch_label_set *set = &batches[i]->label_sets[k];

                        for (uint32_t j = 0; !st && j < set->count; j++)
                                st = add_column_if_room(&all, &bytes, set->labels[j].name, err);
                }
        }
        if (st) {
                label_columns_deinit(&all);
                return st;
        }
        *grown_ret = all.count > before->count;
        if (*grown_ret)
                qsort(all.names + before->count, all.count - before->count, sizeof *all.names, compare_column_names);
        *ret = all;
        return ST_OK;
}

/* ---- order --------------------------------------------------------------------------- */

/* A type or label set of a batch, and where to store its rank. */
struct ranked {
        const struct batch *batch;
        uint32_t number;
        uint32_t *rank;
};

static int compare_ranked_types(const void *a, const void *b)
{
        const struct ranked *x = a, *y = b;
        const struct batch_type *s = &x->batch->types[x->number], *t = &y->batch->types[y->number];
        int order = strcmp(s->id, t->id);

        return order ? order : strcmp(s->unit, t->unit);
}

static int compare_ranked_labels(const void *a, const void *b)
{
        const struct ranked *x = a, *y = b;
        const struct batch_label_set *s = &x->batch->label_sets[x->number], *t = &y->batch->label_sets[y->number];

        for (uint32_t i = 0; i < s->count && i < t->count; i++) {
                int order = strcmp(s->labels[i].name, t->labels[i].name);

                if (!order)
                        order = strcmp(s->labels[i].value, t->labels[i].value);
                if (order)
                        return order;
        }
        return (s->count > t->count) - (s->count < t->count);
}

static void assign_ranks(struct ranked *items, size_t count, int (*compare)(const void *, const void *))
{
        uint32_t r = 0;

        if (count)
                qsort(items, count, sizeof *items, compare);
        for (size_t i = 0; i < count; i++) {
                r += i && compare(&items[i - 1], &items[i]);
                *items[i].rank = r;
        }
}

static int compare_sample_rows(const void *a, const void *b)
{
        const struct sample_row *x = a, *y = b;
        int64_t day_x = day_of_us(x->sample->time_us), day_y = day_of_us(y->sample->time_us);
        int order;

        if (day_x != day_y)
                return day_x < day_y ? -1 : 1;
        if (x->type_rank != y->type_rank)
                return x->type_rank < y->type_rank ? -1 : 1;
        if (x->labels_rank != y->labels_rank)
                return x->labels_rank < y->labels_rank ? -1 : 1;
        order = memcmp(x->batch->stacks[x->sample->stack].id.bytes, y->batch->stacks[y->sample->stack].id.bytes,
                       sizeof(struct hash128));
        if (order)
                return order;
        return (x->sample->time_us > y->sample->time_us) - (x->sample->time_us < y->sample->time_us);
}

struct ranks {
        struct ranked *types, *sets;
        uint32_t *type_ranks, *set_ranks;
        size_t type_count, set_count;
};

static void ranks_deinit(struct ranks *r)
{
        free(r->types);
        free(r->sets);
        free(r->type_ranks);
        free(r->set_ranks);
}

size_t get_sort_bytes(struct batch *const *batches, size_t count)
{
        size_t bytes = 0;

        for (size_t i = 0; i < count; i++)
                bytes += batches[i]->sample_count * sizeof(struct sample_row) +
                         ((size_t)batches[i]->type_count + batches[i]->label_set_count) *
                                 (sizeof(struct ranked) + sizeof(uint32_t));
        return bytes;
}

enum status sort_flush_samples(struct batch *const *batches, size_t count, struct sample_row **ret, size_t *count_ret,
                               struct error *err)
{
        _cleanup_(ranks_deinit) struct ranks r = { 0 };
        struct sample_row *rows;
        size_t samples = 0, type = 0, set = 0, at = 0;

        for (size_t i = 0; i < count; i++) {
                samples += batches[i]->sample_count;
                r.type_count += batches[i]->type_count;
                r.set_count += batches[i]->label_set_count;
        }
        r.types = calloc(r.type_count + 1, sizeof *r.types);
        r.sets = calloc(r.set_count + 1, sizeof *r.sets);
        r.type_ranks = calloc(r.type_count + 1, sizeof *r.type_ranks);
        r.set_ranks = calloc(r.set_count + 1, sizeof *r.set_ranks);
        if (!r.types || !r.sets || !r.type_ranks || !r.set_ranks || !(rows = calloc(samples + 1, sizeof *rows)))
                return error_no_memory(err);
        for (size_t i = 0; i < count; i++) {
                for (uint32_t k = 0; k < batches[i]->type_count; k++, type++)
                        r.types[type] = (struct ranked){ batches[i], k, &r.type_ranks[type] };
                for (uint32_t k = 0; k < batches[i]->label_set_count; k++, set++)
                        r.sets[set] = (struct ranked){ batches[i], k, &r.set_ranks[set] };
        }
        assign_ranks(r.types, r.type_count, compare_ranked_types);
        assign_ranks(r.sets, r.set_count, compare_ranked_labels);
        type = set = 0;
        for (size_t i = 0; i < count; i++) {
                for (uint32_t k = 0; k < batches[i]->sample_count; k++) {
                        const struct batch_sample *s = &batches[i]->samples[k];

                        rows[at++] = (struct sample_row){ batches[i], s, r.type_ranks[type + s->type],
                                                          r.set_ranks[set + s->label_set] };
                }
                type += batches[i]->type_count;
                set += batches[i]->label_set_count;
        }
        if (samples)
                qsort(rows, samples, sizeof *rows, compare_sample_rows);
        *ret = rows;
        *count_ret = samples;
        return ST_OK;
}
