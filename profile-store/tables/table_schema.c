/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/tables/table_schema.h"

#include <string.h>

#include "common/json/json_node.h"
#include "common/memory/array.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

const char *table_name(enum table t)
{
        static const char *const names[] = { "samples", "stacks", "locations", "function_history" };

        return names[t];
}

/* ---- label columns -------------------------------------------------------------------- */

bool label_columns_contain(const struct label_columns *c, const char *name)
{
        for (size_t i = 0; i < c->count; i++) {
                if (strcmp(c->names[i], name) == 0)
                        return true;
        }
        return false;
}

enum status label_columns_add(struct label_columns *c, const char *name, size_t n, struct error *err)
{
        if (!array_reserve(&c->names, &c->capacity, c->count))
                return error_no_memory(err);
        c->names[c->count] = strndup(name, n);
        if (!c->names[c->count])
                return error_no_memory(err);
        c->count++;
        return ST_OK;
}

void label_columns_deinit(struct label_columns *c)
{
        for (size_t i = 0; i < c->count; i++)
                free(c->names[i]);
        free(c->names);
        *c = (struct label_columns){ 0 };
}

char *label_column(const char *name)
{
        char *ret;

        return asprintf(&ret, LABEL_COLUMN_PREFIX "%s", name) < 0 ? NULL : ret;
}

bool schema_has_column(const char *schema_json, const char *name)
{
        _cleanup_arena_ struct arena memory = { 0 };
        const struct json_node *schema = json_node_parse(schema_json, strlen(schema_json), &memory), *field;

        for (struct json_node_list l = json_node_list(schema, "fields"); (field = json_node_next(&l));)
                if (strcmp(json_node_text(field, "name"), name) == 0)
                        return true;
        return false;
}

enum status label_columns_parse(const char *schema_json, struct label_columns *ret, struct error *err)
{
        _cleanup_arena_ struct arena memory = { 0 };
        const struct json_node *schema = json_node_parse(schema_json, strlen(schema_json), &memory), *field;
        struct label_columns columns = { 0 };
        enum status st = ST_OK;

        if (!json_node_is_array(json_node_member(schema, "fields")))
                return error_set(err, ST_BAD_DATA, "the samples table's schema has no fields");
        for (struct json_node_list l = json_node_list(schema, "fields"); !st && (field = json_node_next(&l));) {
                const char *text = json_node_text(field, "name");

                if (strncmp(text, LABEL_COLUMN_PREFIX, strlen(LABEL_COLUMN_PREFIX)) == 0) {
                        text += strlen(LABEL_COLUMN_PREFIX);
                        st = label_columns_add(&columns, text, strlen(text), err);
                }
        }
        if (st)
                label_columns_deinit(&columns);
        else
                *ret = columns;
        return st;
}

/* ---- fields --------------------------------------------------------------------------- */

static const struct parquet_field frame_fields[] = {
        { .name = "function", .kind = PARQUET_STRING, .optional = true },
        { .name = "linkage_name", .kind = PARQUET_STRING, .optional = true },
        { .name = "file", .kind = PARQUET_STRING, .optional = true },
        { .name = "line", .kind = PARQUET_INT64, .optional = true },
        { .name = "inlined", .kind = PARQUET_BOOL, .optional = true },
};

static const struct parquet_field frame_element[] = {
        { .name = "element",
          .kind = PARQUET_STRUCT,
          .optional = true,
          .children = frame_fields,
          .child_count = COUNT(frame_fields) },
};

static const struct parquet_field number_element[] = {
        { .name = "element", .kind = PARQUET_INT64, .optional = true },
};

static const struct parquet_field location_fields[] = {
        { .name = "location_id", .kind = PARQUET_INT64, .optional = true },
        { .name = "build_id", .kind = PARQUET_STRING, .optional = true },
        { .name = "address", .kind = PARQUET_INT64, .optional = true },
        { .name = "address_kind", .kind = PARQUET_STRING, .optional = true },
        { .name = "mapping", .kind = PARQUET_STRING, .optional = true },
        { .name = "is_kernel", .kind = PARQUET_BOOL, .optional = true },
        { .name = "frames", .kind = PARQUET_LIST, .optional = true, .children = frame_element, .child_count = 1 },
        { .name = "state", .kind = PARQUET_STRING, .optional = true },
        { .name = "quality", .kind = PARQUET_STRING, .optional = true },
        { .name = "generation", .kind = PARQUET_INT64, .optional = true },
        { .name = START_LINES_COLUMN,
          .kind = PARQUET_LIST,
          .optional = true,
          .children = number_element,
          .child_count = 1 },
};

static const struct parquet_field stack_fields[] = {
        { .name = "stack_id", .kind = PARQUET_BINARY, .optional = true },
        { .name = "location_ids",
          .kind = PARQUET_LIST,
          .optional = true,
          .children = number_element,
          .child_count = 1 },
};

static const struct parquet_field rest_fields[] = {
        { .name = "key", .kind = PARQUET_STRING },
        { .name = "value", .kind = PARQUET_STRING, .optional = true },
};

static const struct parquet_field sample_fields[] = {
        { .name = "time", .kind = PARQUET_TIMESTAMP, .optional = true },
        { .name = "duration_ns", .kind = PARQUET_INT64, .optional = true },
        { .name = "period", .kind = PARQUET_INT64, .optional = true },
        { .name = "profile_type", .kind = PARQUET_STRING, .optional = true },
        { .name = "unit", .kind = PARQUET_STRING, .optional = true },
        { .name = "value", .kind = PARQUET_INT64, .optional = true },
        { .name = "stack_id", .kind = PARQUET_BINARY, .optional = true },
        { .name = "trace_id", .kind = PARQUET_BINARY, .optional = true },
        { .name = "span_id", .kind = PARQUET_BINARY, .optional = true },
        { .name = "labels_rest",
          .kind = PARQUET_MAP,
          .optional = true,
          .children = rest_fields,
          .child_count = COUNT(rest_fields) },
};

static const struct parquet_field history_fields[] = {
        { .name = "hour", .kind = PARQUET_TIMESTAMP, .optional = true },
        { .name = "profile_type", .kind = PARQUET_STRING, .optional = true },
        { .name = "unit", .kind = PARQUET_STRING, .optional = true },
        { .name = "service", .kind = PARQUET_STRING, .optional = true },
        { .name = "version", .kind = PARQUET_STRING, .optional = true },
        { .name = "build_id", .kind = PARQUET_STRING, .optional = true },
        { .name = "runtime", .kind = PARQUET_STRING, .optional = true },
        { .name = "function", .kind = PARQUET_STRING, .optional = true },
        { .name = "file", .kind = PARQUET_STRING, .optional = true },
        { .name = "self", .kind = PARQUET_INT64, .optional = true },
        { .name = "total", .kind = PARQUET_INT64, .optional = true },
        { .name = "self_samples", .kind = PARQUET_INT64, .optional = true },
        { .name = "samples", .kind = PARQUET_INT64, .optional = true },
        { .name = "source_version", .kind = PARQUET_INT64, .optional = true },
};

static const struct {
        const struct parquet_field *fields;
        size_t count;
        bool partitioned;
} tables[] = {
        [TABLE_SAMPLES] = { sample_fields, COUNT(sample_fields), true },
        [TABLE_STACKS] = { stack_fields, COUNT(stack_fields), true },
        [TABLE_LOCATIONS] = { location_fields, COUNT(location_fields), false },
        [TABLE_HISTORY] = { history_fields, COUNT(history_fields), true },
};

enum status make_table_fields(struct arena *a, enum table t, const struct label_columns *columns, bool partition,
                              const struct parquet_field **ret, size_t *count_ret, struct error *err)
{
        size_t label_count = columns ? columns->count : 0, count = tables[t].count;
        struct parquet_field *fields = arena_alloc_array(a, count + label_count + 1, sizeof *fields);

        if (!fields)
                return error_no_memory(err);
        memcpy(fields, tables[t].fields, count * sizeof *fields);
        for (size_t i = 0; i < label_count; i++) {
                size_t size = strlen(columns->names[i]) + sizeof LABEL_COLUMN_PREFIX;
                char *name = arena_alloc(a, size);

                if (!name)
                        return error_no_memory(err);
                snprintf(name, size, "%s%s", LABEL_COLUMN_PREFIX, columns->names[i]);
                fields[count++] = (struct parquet_field){ .name = name, .kind = PARQUET_STRING, .optional = true };
        }
        if (partition && tables[t].partitioned)
                fields[count++] = (struct parquet_field){ .name = "date", .kind = PARQUET_DATE, .optional = true };
        *ret = fields;
        *count_ret = count;
        return ST_OK;
}
