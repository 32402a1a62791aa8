/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing puts a row column by column. Reading takes the hours of a row group first and skips the group if none is
 * wanted; then each column is read whole, and its texts are interned as C strings, once for each dictionary entry.
 */
#include "profile-store/tables/history_part.h"

#include <string.h>

#include "common/limits.h"

/* ---- rows ---- */

int history_row_compare(const void *a, const void *b)
{
        const struct history_row *x = a, *y = b;
        const char *const texts[][2] = {
                { x->type, y->type },         { x->unit, y->unit },         { x->service, y->service },
                { x->version, y->version },   { x->function, y->function }, { x->file, y->file },
                { x->build_id, y->build_id }, { x->runtime, y->runtime },
        };

        if (x->hour_us != y->hour_us)
                return x->hour_us < y->hour_us ? -1 : 1;
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
                int order = texts[i][0] == texts[i][1] ? 0 : strcmp(texts[i][0], texts[i][1]);

                if (order)
                        return order;
        }
        return 0;
}

/* ---- writing ---- */

enum status history_part_begin(struct history_part *h, struct storage *s, const char *key,
                               const struct part_limits *limits, struct error *err)
{
        const struct {
                const char *path;
                uint32_t *node;
        } nodes[] = {
                { "hour", &h->hour },       { "profile_type", &h->type },
                { "unit", &h->unit },       { "service", &h->service },
                { "version", &h->version }, { "build_id", &h->build_id },
                { "runtime", &h->runtime }, { "function", &h->function },
                { "file", &h->file },       { "self", &h->self },
                { "total", &h->total },     { "self_samples", &h->self_samples },
                { "samples", &h->samples }, { "source_version", &h->source_version },
        };
        enum status st = part_writer_begin(&h->part, s, key, TABLE_HISTORY, NULL, limits, err);

        for (size_t i = 0; !st && i < sizeof nodes / sizeof *nodes; i++)
                *nodes[i].node = parquet_writer_node(h->part.w, nodes[i].path);
        return st;
}

static void put_text_or_null(struct parquet_writer *w, uint32_t node, const char *text)
{
        if (*text)
                parquet_put_str(w, node, text);
        else
                parquet_put_null(w, node);
}

enum status history_part_put(struct history_part *h, const struct history_row *row, struct error *err)
{
        struct parquet_writer *w = h->part.w;

        parquet_put_int(w, h->hour, row->hour_us);
        parquet_put_str(w, h->type, row->type);
        parquet_put_str(w, h->unit, row->unit);
        put_text_or_null(w, h->service, row->service);
        put_text_or_null(w, h->version, row->version);
        put_text_or_null(w, h->build_id, row->build_id);
        put_text_or_null(w, h->runtime, row->runtime);
        put_text_or_null(w, h->function, row->function);
        put_text_or_null(w, h->file, row->file);
        parquet_put_int(w, h->self, row->self);
        parquet_put_int(w, h->total, row->total);
        parquet_put_int(w, h->self_samples, (int64_t)row->self_samples);
        parquet_put_int(w, h->samples, (int64_t)row->samples);
        parquet_put_int(w, h->source_version, row->source_version);
        return part_writer_end_rows(&h->part, 1, err);
}

/* ---- reading ---- */

enum history_text {
        TEXT_TYPE,
        TEXT_UNIT,
        TEXT_SERVICE,
        TEXT_VERSION,
        TEXT_BUILD_ID,
        TEXT_RUNTIME,
        TEXT_FUNCTION,
        TEXT_FILE,
        HISTORY_TEXTS
};
enum history_int { INT_SELF, INT_TOTAL, INT_SELF_SAMPLES, INT_SAMPLES, INT_SOURCE_VERSION, HISTORY_INTS };

static const char *const text_columns[HISTORY_TEXTS] = {
        [TEXT_TYPE] = "profile_type", [TEXT_UNIT] = "unit",         [TEXT_SERVICE] = "service",
        [TEXT_VERSION] = "version",   [TEXT_BUILD_ID] = "build_id", [TEXT_RUNTIME] = "runtime",
        [TEXT_FUNCTION] = "function", [TEXT_FILE] = "file",
};
static const char *const int_columns[HISTORY_INTS] = {
        [INT_SELF] = "self",
        [INT_TOTAL] = "total",
        [INT_SELF_SAMPLES] = "self_samples",
        [INT_SAMPLES] = "samples",
        [INT_SOURCE_VERSION] = "source_version",
};

/* The columns of a row group. */
struct history_group {
        struct parquet_column hours, texts[HISTORY_TEXTS], ints[HISTORY_INTS];
        const char **dicts[HISTORY_TEXTS]; /* by code; in the arena */
        struct arena arena;
};

static void history_group_deinit(struct history_group *g)
{
        parquet_column_deinit(&g->hours);
        for (int i = 0; i < HISTORY_TEXTS; i++)
                parquet_column_deinit(&g->texts[i]);
        for (int i = 0; i < HISTORY_INTS; i++)
                parquet_column_deinit(&g->ints[i]);
        arena_deinit(&g->arena);
}

static enum status intern_dictionary(struct history_group *g, int text, struct error *err)
{
        const struct parquet_column *c = &g->texts[text];

        g->dicts[text] = arena_alloc_array(&g->arena, c->dict_count + (size_t)1, sizeof **g->dicts);
        for (uint32_t i = 0; g->dicts[text] && i < c->dict_count; i++) {
                g->dicts[text][i] = arena_strndup(&g->arena, (const char *)c->dict[i].data, c->dict[i].size);
                if (!g->dicts[text][i])
                        return arena_error(&g->arena, err, "the texts of function_history");
        }
        return g->dicts[text] ? ST_OK : arena_error(&g->arena, err, "the texts of function_history");
}

static bool has_hour_within(const struct parquet_column *hours, int64_t from_us, int64_t to_us)
{
        for (uint64_t i = 0; i < hours->count; i++) {
                if (hours->ints[i] >= from_us && hours->ints[i] < to_us)
                        return true;
        }
        return false;
}

static const char *get_group_text(const struct history_group *g, int text, uint64_t row)
{
        uint32_t code = g->texts[text].codes[row];

        return code == PARQUET_NULL_CODE ? "" : g->dicts[text][code];
}

static void get_group_row(const struct history_group *g, uint64_t i, struct history_row *ret)
{
        *ret = (struct history_row){
                .hour_us = g->hours.ints[i],
                .type = get_group_text(g, TEXT_TYPE, i),
                .unit = get_group_text(g, TEXT_UNIT, i),
                .service = get_group_text(g, TEXT_SERVICE, i),
                .version = get_group_text(g, TEXT_VERSION, i),
                .build_id = get_group_text(g, TEXT_BUILD_ID, i),
                .runtime = get_group_text(g, TEXT_RUNTIME, i),
                .function = get_group_text(g, TEXT_FUNCTION, i),
                .file = get_group_text(g, TEXT_FILE, i),
                .self = g->ints[INT_SELF].ints[i],
                .total = g->ints[INT_TOTAL].ints[i],
                .self_samples = (uint64_t)g->ints[INT_SELF_SAMPLES].ints[i],
                .samples = (uint64_t)g->ints[INT_SAMPLES].ints[i],
                .source_version = g->ints[INT_SOURCE_VERSION].ints[i],
        };
}

struct history_visit {
        int64_t from_us, to_us;
        enum memory_use use;
        visit_history_row *visit;
        void *context;
};

static enum status visit_history_group(const struct part_file *f, uint32_t group, const struct history_visit *v,
                                       struct error *err)
{
        _cleanup_(history_group_deinit) struct history_group g = { 0 };
        enum status st;

        arena_init_budget(&g.arena, LIMIT_SCAN_MEMORY_BYTES, v->use);
        st = part_file_read_column(f, group, "hour", PARQUET_TIMESTAMP, &g.hours, err);
        if (st || !has_hour_within(&g.hours, v->from_us, v->to_us))
                return st;
        for (int i = 0; !st && i < HISTORY_TEXTS; i++) {
                st = part_file_read_column(f, group, text_columns[i], PARQUET_STRING, &g.texts[i], err);
                if (!st)
                        st = intern_dictionary(&g, i, err);
        }
        for (int i = 0; !st && i < HISTORY_INTS; i++)
                st = part_file_read_column(f, group, int_columns[i], PARQUET_INT64, &g.ints[i], err);
        for (uint64_t i = 0; !st && i < g.hours.count; i++) {
                struct history_row row;

                if (g.hours.ints[i] < v->from_us || g.hours.ints[i] >= v->to_us)
                        continue;
                get_group_row(&g, i, &row);
                st = v->visit(v->context, &row, err);
        }
        return st;
}

enum status history_part_visit(const struct table_part *part, int64_t from_us, int64_t to_us, enum memory_use use,
                               visit_history_row *visit, void *context, struct error *err)
{
        const struct history_visit v = { from_us, to_us, use, visit, context };
        _cleanup_part_file_ struct part_file f = { 0 };
        enum status st;

        if (table_part_has_times(part) && (part->max_us < from_us || part->min_us >= to_us))
                return ST_OK;
        st = part_file_open(part, &f, err);
        for (uint32_t g = 0; !st && g < part_file_count_groups(&f); g++)
                st = visit_history_group(&f, g, &v, err);
        return st;
}
