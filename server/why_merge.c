/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the parts of a report together. json-c's names and those of common/json_out.h are the same, so it is a file of its own. */
#include <json-c/json.h>
#include <string.h>

#include "server/why.h"

#define DEPTH_MAX 16

static struct json_object *parse(struct buf *part)
{
        struct json_tokener *t = part->size ? json_tokener_new_ex(DEPTH_MAX) : NULL;
        struct json_object *o = NULL;

        if (t)
                o = json_tokener_parse_ex(t, (const char *)part->data, (int)part->size);
        if (t)
                json_tokener_free(t);
        if (!json_object_is_type(o, json_type_object)) {
                json_object_put(o);
                return NULL;
        }
        return o;
}

static struct json_object *member(struct json_object *o, const char *key, enum json_type type)
{
        struct json_object *v;

        return json_object_is_type(o, json_type_object) && json_object_object_get_ex(o, key, &v) &&
                               json_object_is_type(v, type) ?
                       v :
                       NULL;
}

static struct json_object *item(struct json_object *o, const char *array, size_t i)
{
        struct json_object *a = member(o, array, json_type_array);
        struct json_object *v = a && i < json_object_array_length(a) ? json_object_array_get_idx(a, i) : NULL;

        return json_object_is_type(v, json_type_object) ? v : NULL;
}

static const char *text(struct json_object *o, const char *key)
{
        struct json_object *v = member(o, key, json_type_string);

        return v ? json_object_get_string(v) : "";
}

static int64_t number(struct json_object *o, const char *key)
{
        struct json_object *v = member(o, key, json_type_int);

        return v ? json_object_get_int64(v) : 0;
}

static const char *base(const char *path)
{
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

/* Names without a linkage name have their namespaces in front; libdw gives them bare. */
static bool same_function(struct json_object *ours, struct json_object *theirs)
{
        const char *name = *text(ours, "linkage_name") ? text(ours, "linkage_name") : text(ours, "function");
        const char *other = text(theirs, "function");
        size_t n = strlen(name), m = strlen(other);

        return strcmp(name, other) == 0 || (n > m + 2 && strcmp(name + n - m, other) == 0 &&
                                            strncmp(name + n - m - 2, "::", 2) == 0);
}

/* libdw reads no symbols: a function that they named is not compared. */
static bool agree(struct json_object *ours, struct json_object *theirs)
{
        bool named_elsewhere = *text(ours, "name_source");

        for (size_t i = 0;; i++) {
                struct json_object *x = item(ours, "frames", i), *y = item(theirs, "frames", i);

                if (!x || !y)
                        return !x && !y;
                if ((!same_function(x, y) && !(named_elsewhere && !item(ours, "frames", i + 1))) ||
                    number(x, "line") != number(y, "line") ||
                    strcmp(base(text(x, "file")), base(text(y, "file"))) != 0)
                        return false;
        }
}

/* Move a member out of where it was. */
static void take(struct json_object *to, const char *key, struct json_object *from)
{
        if (from)
                json_object_object_add(to, key, json_object_get(from));
}

static void add_origins(struct json_object *object, struct json_object *origins)
{
        struct json_object *file;

        for (size_t i = 0; (file = item(object, "files", i)); i++) {
                struct json_object *origin = member(origins, text(file, "role"), json_type_object);

                take(file, "name", member(origin, "name", json_type_string));
                take(file, "found", member(origin, "found", json_type_string));
        }
}

/* The answers are the index's, which has them of the symbol file. */
static void add_symbols(struct json_object *report, struct json_object *symbols)
{
        struct json_object *files = json_object_new_array(), *result;

        json_object_array_add(files, json_object_get(symbols));
        json_object_object_add(report, "files", files);
        for (size_t i = 0; (result = item(report, "results", i)); i++)
                if (strcmp(text(result, "state"), "resolved") == 0)
                        json_object_object_add(result, "source", json_object_new_string("symbols"));
}

static void add_to_results(struct json_object *report, struct json_object *index, struct json_object *second)
{
        struct json_object *result;

        for (size_t i = 0; (result = item(report, "results", i)); i++) {
                struct json_object *indexed = item(index, "results", i), *other = item(second, "results", i);

                if (indexed && indexed != result)
                        take(result, "index", indexed);
                if (other) {
                        json_object_object_add(other, "agrees", json_object_new_boolean(agree(result, other)));
                        take(result, "second_opinion", other);
                }
        }
}

static void add_text(struct json_object *o, const char *key, const char *value)
{
        if (value[0])
                json_object_object_add(o, key, json_object_new_string(value));
}

enum status why_merge(struct why_parts *p, struct buf *ret, struct error *err)
{
        struct json_object *object = parse(&p->object), *second = parse(&p->second_opinion);
        struct json_object *index = parse(&p->index), *origins = parse(&p->origins), *report;
        struct json_object *symbols = parse(&p->symbols);

        if (p->object.size && !object)
                snprintf(p->object_error, sizeof p->object_error, "the worker's report is malformed");
        report = object ? json_object_get(object) : json_object_new_object();
        add_origins(object, origins);
        if (!object) {
                take(report, "build_id", member(index, "build_id", json_type_string));
                take(report, "results", member(index, "results", json_type_array));
        }
        if (symbols && !object)
                add_symbols(report, symbols);
        add_to_results(report, index, second);
        if (index) {
                json_object_object_del(index, "results");
                take(report, "index", index);
        }
        add_text(report, "error", p->object_error);
        add_text(report, "second_opinion_error", p->second_opinion_error);
        buf_append_str(ret, json_object_to_json_string_ext(report, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
        json_object_put(report);
        json_object_put(object);
        json_object_put(second);
        json_object_put(index);
        json_object_put(origins);
        json_object_put(symbols);
        return buf_status(ret, err, "the report");
}
