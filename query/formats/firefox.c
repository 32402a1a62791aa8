/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The format has tables of columns that refer to each other by row: stackTable to frameTable, that to funcTable, and
 * that to sources, resourceTable and stringArray. The drawing of the tree (call_tree.h) gives the stacks: its nodes,
 * without the root, are the rows of stackTable, and a node with a value of its own is a sample.
 *
 * intern_stacks() fills all columns first, since the format has an array for each column, not for each row; each
 * intern_...() function finds or adds a row. The first failure is kept in `st`, and the following calls do nothing.
 * Then the JSON is written table by table; an exhausted meter ends each loop (count_row()), and the caller of
 * flame_put_firefox() checks it.
 *
 * In the file: interning, from texts to stacks; columns and tables as JSON; samples and the thread; the entry point.
 */
#include "query/formats/firefox.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/files/file.h"
#include "common/hash.h"
#include "common/json/json_out.h"
#include "common/memory/array.h"
#include "common/memory/memory_budget.h"
#include "profile-formats/number_map.h"
#include "profile-formats/profile_type.h"

#define FORMAT_VERSION 60
#define GECKO_VERSION 31 /* version of the browser's own format, which readers require as well */
#define RESOURCE_LIBRARY 1
#define UNCOUNTED_NODES 1024 /* up to this many, memory is not charged to the budget */
#define NODE_BYTES 128       /* estimate per node: maps, columns, a row of the frame table */
#define FUNCTION_BYTES 400   /* estimate per function: with three texts */

/* In the order of put_categories(). */
enum category { CATEGORY_OTHER, CATEGORY_USER, CATEGORY_KERNEL, CATEGORY_LABEL };

/* A column of numbers; NONE is null. */
#define NONE INT64_MIN
struct column {
        int64_t *items; /* owned */
        size_t count, capacity;
};

struct firefox_writer {
        const struct flame *f;
        struct drawing d;
        struct json_out j;
        struct number_map texts, frames, functions, sources, resources;
        const char **strings; /* by number in `texts`; owned, the strings are borrowed */
        size_t string_capacity;
        struct column stack_prefix, stack_frame, frame_function, frame_line, frame_category, function_name,
                function_source, function_resource, source_text, resource_text;
        struct memory_reservation memory; /* of maps and columns */
        struct error *err;
        enum status st; /* the first failure */
};

static void firefox_writer_deinit(struct firefox_writer *w)
{
        struct column *const columns[] = { &w->stack_prefix,    &w->stack_frame,       &w->frame_function,
                                           &w->frame_line,      &w->frame_category,    &w->function_name,
                                           &w->function_source, &w->function_resource, &w->source_text,
                                           &w->resource_text };

        drawing_deinit(&w->d);
        number_map_deinit(&w->texts);
        number_map_deinit(&w->frames);
        number_map_deinit(&w->functions);
        number_map_deinit(&w->sources);
        number_map_deinit(&w->resources);
        free(w->strings);
        for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
                free(columns[i]->items);
        memory_release(&w->memory);
}

/* ---- interning ---- */

static void append_number(struct firefox_writer *w, struct column *c, int64_t value)
{
        if (w->st)
                return;
        if (array_reserve(&c->items, &c->capacity, c->count))
                c->items[c->count++] = value;
        else
                w->st = error_no_memory(w->err);
}

static uint32_t intern_key(struct firefox_writer *w, struct number_map *m, struct number_key key, bool *fresh)
{
        uint32_t number = 0;

        *fresh = false;
        if (!w->st)
                w->st = number_map_get(m, &key, &number, fresh, w->err);
        return number;
}

static uint32_t intern_output_text(struct firefox_writer *w, const char *text)
{
        struct hash128 hash = hash_bytes128(text, strlen(text));
        struct number_key key = { 0 };
        uint32_t number;
        bool fresh;

        memcpy(key.parts, hash.bytes, sizeof hash.bytes);
        number = intern_key(w, &w->texts, key, &fresh);
        if (fresh && !array_reserve(&w->strings, &w->string_capacity, number))
                w->st = error_no_memory(w->err);
        else if (fresh)
                w->strings[number] = text;
        return number;
}

/* Intern a row of a table whose only column is a text. NONE for "". */
static int64_t intern_named_row(struct firefox_writer *w, struct number_map *m, struct column *texts, const char *text)
{
        uint32_t number, row;
        bool fresh;

        if (!*text)
                return NONE;
        number = intern_output_text(w, text);
        row = intern_key(w, m, (struct number_key){ { number } }, &fresh);
        if (fresh)
                append_number(w, texts, number);
        return row;
}

static uint32_t intern_function(struct firefox_writer *w, uint32_t frame)
{
        const struct query_frame *f = frame == DRAWN_OTHER ? NULL : &w->f->frames->items[frame];
        bool fresh;
        uint32_t number = intern_key(w, &w->functions, (struct number_key){ { frame } }, &fresh);

        if (!fresh)
                return number;
        append_number(w, &w->function_name, intern_output_text(w, f ? f->function : "(other)"));
        append_number(w, &w->function_source, intern_named_row(w, &w->sources, &w->source_text, f ? f->file : ""));
        append_number(w, &w->function_resource,
                      intern_named_row(w, &w->resources, &w->resource_text, f ? path_base(f->mapping) : ""));
        return number;
}

static enum category get_category(const struct firefox_writer *w, uint32_t frame)
{
        if (frame == DRAWN_OTHER)
                return CATEGORY_OTHER;
        switch (w->f->frames->items[frame].kind) {
        case FRAME_NATIVE:
        case FRAME_INLINED:
                return CATEGORY_USER;
        case FRAME_KERNEL:
                return CATEGORY_KERNEL;
        case FRAME_LABEL:
                return CATEGORY_LABEL;
        default:
                return CATEGORY_OTHER;
        }
}

static uint32_t intern_frame(struct firefox_writer *w, const struct drawn_node *n)
{
        const struct number_key key = { { n->frame, (uint32_t)n->line, (uint32_t)((uint64_t)n->line >> 32) } };
        bool fresh;
        uint32_t number = intern_key(w, &w->frames, key, &fresh);

        if (!fresh)
                return number;
        append_number(w, &w->frame_function, intern_function(w, n->frame));
        append_number(w, &w->frame_line, n->line > 0 ? n->line : NONE);
        append_number(w, &w->frame_category, get_category(w, n->frame));
        return number;
}

/* Node i of the drawing becomes row i - 1; the root has no row. */
static void intern_stacks(struct firefox_writer *w)
{
        for (uint32_t i = 1; i < w->d.count && !w->st; i++) {
                const struct drawn_node *n = &w->d.nodes[i];

                w->st = work_meter_add(w->f->frames->meter, 64, w->err);
                append_number(w, &w->stack_prefix, n->parent ? (int64_t)n->parent - 1 : NONE);
                append_number(w, &w->stack_frame, intern_frame(w, n));
        }
}

/* ---- JSON ---- */

static void put_null(struct json_out *j, const char *key)
{
        json_out_str(j, key, NULL);
}

static void put_number(struct json_out *j, int64_t value)
{
        if (value == NONE)
                put_null(j, NULL);
        else
                json_out_int(j, NULL, value);
}

/* Charge one written row to the meter; false: the query was ended, which the caller of the writer checks. */
static bool count_row(const struct firefox_writer *w)
{
        return work_meter_add(w->f->frames->meter, 8, NULL) == ST_OK;
}

static void put_column(struct firefox_writer *w, const char *key, const struct column *c)
{
        json_out_array(&w->j, key);
        for (size_t i = 0; i < c->count && count_row(w); i++)
                put_number(&w->j, c->items[i]);
        json_out_array_end(&w->j);
}

/* A column with the same value in every row. */
static void put_repeated_number(struct firefox_writer *w, const char *key, int64_t value, size_t count)
{
        json_out_array(&w->j, key);
        for (size_t i = 0; i < count && count_row(w); i++)
                put_number(&w->j, value);
        json_out_array_end(&w->j);
}

static void put_repeated_false(struct firefox_writer *w, const char *key, size_t count)
{
        json_out_array(&w->j, key);
        for (size_t i = 0; i < count && count_row(w); i++)
                json_out_bool(&w->j, NULL, false);
        json_out_array_end(&w->j);
}

static void put_categories(struct json_out *j)
{
        static const char *const categories[][2] = {
                [CATEGORY_OTHER] = { "Other", "grey" },
                [CATEGORY_USER] = { "User", "yellow" },
                [CATEGORY_KERNEL] = { "Kernel", "orange" },
                [CATEGORY_LABEL] = { "Label", "purple" },
        };

        json_out_array(j, "categories");
        for (size_t i = 0; i < sizeof categories / sizeof *categories; i++) {
                json_out_object(j, NULL);
                json_out_str(j, "name", categories[i][0]);
                json_out_str(j, "color", categories[i][1]);
                json_out_array(j, "subcategories");
                json_out_str(j, NULL, "Other");
                json_out_array_end(j);
                json_out_object_end(j);
        }
        json_out_array_end(j);
}

static void put_meta(struct firefox_writer *w)
{
        struct json_out *j = &w->j;

        json_out_object(j, "meta");
        json_out_int(j, "version", GECKO_VERSION);
        json_out_int(j, "preprocessedProfileVersion", FORMAT_VERSION);
        json_out_str(j, "product", "Cairn");
        json_out_str(j, "importedFrom", "Cairn");
        json_out_int(j, "processType", 0);
        json_out_int(j, "interval", 1);
        json_out_int(j, "startTime", w->f->sides[0]->selection->from_unix_ns / 1000000);
        json_out_int(j, "stackwalk", 1);
        json_out_bool(j, "symbolicated", true);
        json_out_bool(j, "usesOnlyOneStackType", true);
        json_out_bool(j, "sourceCodeIsNotOnSearchfox", true);
        json_out_array(j, "markerSchema");
        json_out_array_end(j);
        put_categories(j);
        json_out_object_end(j);
}

static void put_frame_table(struct firefox_writer *w)
{
        struct json_out *j = &w->j;
        size_t count = w->frame_function.count;

        json_out_object(j, "frameTable");
        put_repeated_number(w, "address", -1, count);
        put_repeated_number(w, "inlineDepth", 0, count);
        put_column(w, "category", &w->frame_category);
        put_repeated_number(w, "subcategory", 0, count);
        put_column(w, "func", &w->frame_function);
        put_repeated_number(w, "nativeSymbol", NONE, count);
        put_repeated_number(w, "innerWindowID", NONE, count);
        put_column(w, "line", &w->frame_line);
        put_repeated_number(w, "column", NONE, count);
        json_out_uint(j, "length", count);
        json_out_object_end(j);
}

static void put_function_table(struct firefox_writer *w)
{
        struct json_out *j = &w->j;
        size_t count = w->function_name.count;

        for (size_t i = 0; i < count; i++)
                if (w->function_resource.items[i] == NONE)
                        w->function_resource.items[i] = -1; /* -1 instead of null is specific to this table */
        json_out_object(j, "funcTable");
        put_column(w, "name", &w->function_name);
        put_repeated_false(w, "isJS", count);
        put_repeated_false(w, "relevantForJS", count);
        put_column(w, "resource", &w->function_resource);
        put_column(w, "source", &w->function_source);
        put_repeated_number(w, "lineNumber", NONE, count);
        put_repeated_number(w, "columnNumber", NONE, count);
        json_out_uint(j, "length", count);
        json_out_object_end(j);
}

static void put_small_tables(struct firefox_writer *w)
{
        static const char *const symbol_columns[] = { "libIndex", "address", "name", "functionSize" };
        struct json_out *j = &w->j;

        json_out_object(j, "resourceTable");
        put_repeated_number(w, "lib", NONE, w->resource_text.count);
        put_column(w, "name", &w->resource_text);
        put_repeated_number(w, "host", NONE, w->resource_text.count);
        put_repeated_number(w, "type", RESOURCE_LIBRARY, w->resource_text.count);
        json_out_uint(j, "length", w->resource_text.count);
        json_out_object_end(j);
        json_out_object(j, "sources");
        put_repeated_number(w, "uuid", NONE, w->source_text.count);
        put_column(w, "filename", &w->source_text);
        json_out_uint(j, "length", w->source_text.count);
        json_out_object_end(j);
        json_out_object(j, "nativeSymbols");
        for (size_t i = 0; i < sizeof symbol_columns / sizeof *symbol_columns; i++)
                put_repeated_number(w, symbol_columns[i], NONE, 0);
        json_out_int(j, "length", 0);
        json_out_object_end(j);
}

static void put_shared_tables(struct firefox_writer *w)
{
        struct json_out *j = &w->j;

        json_out_object(j, "shared");
        json_out_object(j, "stackTable");
        put_column(w, "frame", &w->stack_frame);
        put_column(w, "prefix", &w->stack_prefix);
        json_out_uint(j, "length", w->stack_frame.count);
        json_out_object_end(j);
        put_frame_table(w);
        put_function_table(w);
        put_small_tables(w);
        json_out_array(j, "stringArray");
        for (uint32_t i = 0; i < w->texts.count && count_row(w); i++)
                json_out_str(j, NULL, w->strings[i]);
        json_out_array_end(j);
        json_out_object_end(j);
}

/* ---- samples ---- */

/* How the Firefox Profiler shows values of a unit: as milliseconds, bytes or numbers of samples. */
struct weight_unit {
        const char *type;
        double scale; /* of values */
        bool is_time;
};

static struct weight_unit choose_weight_unit(const char *unit)
{
        struct profile_unit known;

        if (!profile_unit_find(unit, strlen(unit), &known))
                return (struct weight_unit){ "samples", 1, false };
        if (known.is_time)
                return (struct weight_unit){ "tracing-ms", (double)known.factor / 1e6, true };
        return (struct weight_unit){ "bytes", (double)known.factor, false };
}

static void put_weight(struct firefox_writer *w, int64_t value, double scale)
{
        if (scale == 1)
                json_out_int(&w->j, NULL, value);
        else
                json_out_double(&w->j, NULL, (double)value * scale);
}

/* The start of each sample, in ms. */
static void put_times(struct firefox_writer *w, const struct weight_unit *unit)
{
        int64_t at = 0;

        json_out_array(&w->j, "time");
        for (uint32_t i = 0; i < w->d.count && count_row(w); i++) {
                int64_t value = w->d.nodes[i].self[0];

                if (!value)
                        continue;
                put_weight(w, at, unit->is_time ? unit->scale : 1);
                if (!unit->is_time)
                        at++;
                else if (value > 0)
                        add_saturating(&at, value);
        }
        json_out_array_end(&w->j);
}

static void put_samples(struct firefox_writer *w)
{
        const struct weight_unit unit = choose_weight_unit(w->f->sides[0]->unit);
        struct json_out *j = &w->j;
        uint64_t count = 0;

        json_out_object(j, "samples");
        json_out_array(j, "stack");
        for (uint32_t i = 0; i < w->d.count && count_row(w); i++) {
                if (!w->d.nodes[i].self[0])
                        continue;
                count++;
                if (i)
                        json_out_int(j, NULL, (int64_t)i - 1);
                else
                        put_null(j, NULL);
        }
        json_out_array_end(j);
        put_times(w, &unit);
        json_out_array(j, "weight");
        for (uint32_t i = 0; i < w->d.count && count_row(w); i++)
                if (w->d.nodes[i].self[0])
                        put_weight(w, w->d.nodes[i].self[0], unit.scale);
        json_out_array_end(j);
        json_out_str(j, "weightType", unit.type);
        json_out_uint(j, "length", count);
        json_out_object_end(j);
}

static void put_thread(struct firefox_writer *w)
{
        static const char *const marker_columns[] = { "data", "name", "startTime", "endTime", "phase", "category" };
        const struct merged_profile *m = w->f->sides[0];
        struct json_out *j = &w->j;

        json_out_object(j, NULL);
        json_out_str(j, "name", *m->type ? m->type : "no samples");
        json_out_str(j, "processName", *m->selection->text ? m->selection->text : "everything");
        json_out_str(j, "processType", "default");
        json_out_bool(j, "isMainThread", true);
        json_out_str(j, "pid", "0");
        json_out_int(j, "tid", 0);
        json_out_int(j, "processStartupTime", 0);
        put_null(j, "processShutdownTime");
        json_out_int(j, "registerTime", 0);
        put_null(j, "unregisterTime");
        json_out_array(j, "pausedRanges");
        json_out_array_end(j);
        json_out_object(j, "markers");
        for (size_t i = 0; i < sizeof marker_columns / sizeof *marker_columns; i++)
                put_repeated_number(w, marker_columns[i], NONE, 0);
        json_out_int(j, "length", 0);
        json_out_object_end(j);
        put_samples(w);
        json_out_object_end(j);
}

/* Functions are at most the frames of the query's table and "(other)". */
static size_t count_table_bytes(const struct firefox_writer *w)
{
        size_t functions = w->f->frames->count + (size_t)1;

        return w->d.count * NODE_BYTES + (functions < w->d.count ? functions : w->d.count) * FUNCTION_BYTES;
}

enum status flame_put_firefox(const struct flame *f, struct buf *ret, struct error *err)
{
        _cleanup_(firefox_writer_deinit) struct firefox_writer w = { .f = f, .memory.use = MEMORY_QUERIES, .err = err };

        assert(!f->sides[1]); /* diffs are not supported */
        w.st = tree_draw(f->tree, f->max_nodes, &w.d, err);
        if (!w.st && w.d.count > UNCOUNTED_NODES)
                w.st = memory_reserve(&w.memory, count_table_bytes(&w), err);
        if (!w.st)
                intern_stacks(&w);
        if (w.st)
                return w.st;
        json_out_init(&w.j, ret);
        json_out_object(&w.j, NULL);
        put_meta(&w);
        put_repeated_number(&w, "libs", NONE, 0);
        put_shared_tables(&w);
        json_out_array(&w.j, "threads");
        put_thread(&w);
        json_out_array_end(&w.j);
        json_out_object_end(&w.j);
        return buf_status(ret, err, "profile");
}
