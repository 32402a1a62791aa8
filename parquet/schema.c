/* SPDX-License-Identifier: Apache-2.0 */
#include "parquet/schema.h"

#include <string.h>

#include "common/limits.h"
#include "parquet/format.h"

/* Number of nodes of a field and its descendants: a list or map adds a repeated group. */
static size_t count_nodes(const struct parquet_field *f, unsigned depth)
{
        size_t n = f->kind == PARQUET_LIST || f->kind == PARQUET_MAP ? 2 : 1;

        if (depth == 0)
                return LIMIT_PARQUET_NODES;
        for (size_t i = 0; i < f->child_count && n < LIMIT_PARQUET_NODES; i++)
                n += count_nodes(&f->children[i], depth - 1);
        return n;
}

static uint8_t physical_of(enum parquet_kind kind)
{
        switch (kind) {
        case PARQUET_BOOL:
                return PHYSICAL_BOOLEAN;
        case PARQUET_INT32:
        case PARQUET_DATE:
                return PHYSICAL_INT32;
        case PARQUET_DOUBLE:
                return PHYSICAL_DOUBLE;
        case PARQUET_STRING:
        case PARQUET_BINARY:
                return PHYSICAL_BYTE_ARRAY;
        default:
                return PHYSICAL_INT64;
        }
}

static size_t expected_children(enum parquet_kind kind, size_t given)
{
        switch (kind) {
        case PARQUET_STRUCT:
                return given ? given : 1;
        case PARQUET_LIST:
                return 1;
        case PARQUET_MAP:
                return 2;
        default:
                return 0;
        }
}

static bool names_repeat(const struct parquet_field *fields, size_t count)
{
        for (size_t i = 0; i < count; i++) {
                for (size_t k = 0; k < i; k++) {
                        if (!strcmp(fields[i].name, fields[k].name))
                                return true;
                }
        }
        return false;
}

struct layout {
        struct arena *arena;
        struct parquet_schema *schema;
        struct error *err;
};

static struct parquet_node *add_schema_node(struct layout *l, const char *name, enum parquet_kind kind,
                                            uint8_t repetition, size_t child_count)
{
        struct parquet_node *n = &l->schema->nodes[l->schema->node_count];

        n->name = arena_strndup(l->arena, name, strlen(name));
        if (!n->name)
                return NULL;
        n->kind = kind;
        n->repetition = repetition;
        n->child_count = (uint32_t)child_count;
        n->physical = physical_of(kind);
        n->unit = TIME_UNIT_MICROS;
        l->schema->node_count++;
        return n;
}

/* Recursion depth is bounded by count_nodes(), which runs first. */
static enum status add_schema_field(struct layout *l, const struct parquet_field *f, const char *name, bool in_list)
{
        bool repeats = f->kind == PARQUET_LIST || f->kind == PARQUET_MAP;
        uint8_t repetition = f->optional ? REPETITION_OPTIONAL : REPETITION_REQUIRED;

        if (f->kind >= PARQUET_OTHER || f->child_count != expected_children(f->kind, f->child_count))
                return error_set(l->err, ST_USAGE, "column '%s' has the wrong number of children", f->name);
        if (repeats && in_list)
                return error_set(l->err, ST_USAGE, "column '%s' is a list inside a list", f->name);
        if (f->kind == PARQUET_STRUCT && names_repeat(f->children, f->child_count))
                return error_set(l->err, ST_USAGE, "two fields of '%s' have the same name", f->name);
        if (!add_schema_node(l, name, f->kind, repetition, repeats ? 1 : f->child_count))
                return error_no_memory(l->err);
        if (repeats && !add_schema_node(l, f->kind == PARQUET_LIST ? "list" : "key_value", PARQUET_STRUCT,
                                        REPETITION_REPEATED, f->child_count))
                return error_no_memory(l->err);
        for (size_t i = 0; i < f->child_count; i++) {
                const char *child = f->children[i].name;
                enum status st;

                if (f->kind == PARQUET_LIST)
                        child = "element";
                else if (f->kind == PARQUET_MAP)
                        child = i ? "value" : "key";
                st = add_schema_field(l, &f->children[i], child, in_list || repeats);
                if (st)
                        return st;
        }
        return ST_OK;
}

enum status parquet_schema_from_fields(struct arena *a, const struct parquet_field *fields, size_t count,
                                       struct parquet_schema *ret, struct error *err)
{
        struct parquet_schema s = { 0 };
        struct layout l = { .arena = a, .schema = &s, .err = err };
        size_t n = 1;
        enum status st;

        for (size_t i = 0; i < count; i++) {
                n += count_nodes(&fields[i], LIMIT_PARQUET_DEPTH);
                if (n >= LIMIT_PARQUET_NODES)
                        return error_set(err, ST_TOO_BIG, "a schema has more than %d nodes or is nested too deeply",
                                         LIMIT_PARQUET_NODES);
        }
        if (!count || names_repeat(fields, count))
                return error_set(err, ST_USAGE, "a schema has no columns, or two with the same name");
        s.nodes = arena_alloc_array(a, n, sizeof *s.nodes);
        if (!s.nodes || !add_schema_node(&l, "schema", PARQUET_STRUCT, REPETITION_REQUIRED, count))
                return error_no_memory(err);
        for (size_t i = 0; i < count; i++) {
                st = add_schema_field(&l, &fields[i], fields[i].name, false);
                if (st)
                        return st;
        }
        st = parquet_schema_resolve(a, &s, err);
        if (st)
                return st;
        *ret = s;
        return ST_OK;
}

enum status parquet_schema_resolve(struct arena *a, struct parquet_schema *s, struct error *err)
{
        uint32_t open[LIMIT_PARQUET_DEPTH]; /* ancestors of the current node */
        uint32_t left[LIMIT_PARQUET_DEPTH]; /* number of their children still to come */
        unsigned depth = 0;

        s->columns = arena_alloc_array(a, s->node_count, sizeof *s->columns);
        if (!s->columns)
                return error_no_memory(err);
        s->column_count = 0;
        for (uint32_t i = 0; i < s->node_count; i++) {
                struct parquet_node *n = &s->nodes[i];

                if (i) {
                        const struct parquet_node *p;

                        if (depth == 0)
                                return error_set(err, ST_BAD_DATA, "the schema has nodes outside its root");
                        n->parent = open[depth - 1];
                        left[depth - 1]--;
                        p = &s->nodes[n->parent];
                        n->max_def = p->max_def + (n->repetition != REPETITION_REQUIRED);
                        n->max_rep = p->max_rep + (n->repetition == REPETITION_REPEATED);
                        n->list_def = n->repetition == REPETITION_REPEATED ? n->max_def : p->list_def;
                }
                n->column = PARQUET_NO_COLUMN;
                n->column_start = s->column_count;
                if (n->child_count) {
                        if (depth == LIMIT_PARQUET_DEPTH)
                                return error_set(err, ST_TOO_BIG, "the schema is nested deeper than %d",
                                                 LIMIT_PARQUET_DEPTH);
                        open[depth] = i;
                        left[depth++] = n->child_count;
                        continue;
                }
                if (i) {
                        n->column = s->column_count;
                        s->columns[s->column_count++] = i;
                }
                n->column_end = s->column_count;
                n->end = i + 1;
                while (depth && left[depth - 1] == 0) {
                        s->nodes[open[--depth]].end = i + 1;
                        s->nodes[open[depth]].column_end = s->column_count;
                }
        }
        if (depth || !s->node_count || !s->column_count)
                return error_set(err, ST_BAD_DATA, "the schema's child counts do not form one tree");
        return ST_OK;
}

uint32_t parquet_schema_find(const struct parquet_schema *s, const char *path)
{
        uint32_t at = 0;

        while (*path) {
                const char *dot = strchrnul(path, '.');
                size_t n = (size_t)(dot - path);
                uint32_t child = at + 1;

                while (child < s->nodes[at].end &&
                       (strncmp(s->nodes[child].name, path, n) != 0 || s->nodes[child].name[n] != 0))
                        child = s->nodes[child].end;
                if (child >= s->nodes[at].end)
                        return 0;
                at = child;
                path = *dot ? dot + 1 : dot;
        }
        return at;
}
