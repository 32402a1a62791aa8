/* SPDX-License-Identifier: Apache-2.0 */
#include "common/config/yaml_fields.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/files/file.h"
#include "common/memory/array.h"
#include "common/memory/buf.h"
#include "common/text/number_text.h"
#include "common/text/utf8.h"

enum status yaml_locate_error(const struct yaml_source *in, const yaml_node_t *at, enum status st)
{
        return error_prefix(in->err, st, "%s:%zu", in->path, at ? at->start_mark.line + 1 : 1);
}

enum status yaml_error(const struct yaml_source *in, const yaml_node_t *at, const char *fmt, ...)
{
        char text[200];
        va_list args;

        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        error_set(in->err, ST_USAGE, "%s", text);
        return yaml_locate_error(in, at, ST_USAGE);
}

static const char *borrow_scalar(const yaml_node_t *node)
{
        const char *text;

        if (!node || node->type != YAML_SCALAR_NODE)
                return NULL;
        text = (const char *)node->data.scalar.value;
        return strlen(text) == node->data.scalar.length ? text : NULL;
}

const char *yaml_read_scalar(const struct yaml_source *in, const yaml_node_t *node)
{
        const char *text = borrow_scalar(node);

        if (!text)
                yaml_error(in, node, "a text is expected here");
        return text;
}

/* ---- documents ---- */

static enum status read_yaml_root(const char *path, const struct buf *text, yaml_field_reader *read, void *object,
                                  struct error *err)
{
        yaml_parser_t parser;
        yaml_document_t document;
        struct yaml_source in = { .path = path, .document = &document, .err = err };
        const yaml_node_t *root;
        enum status st = ST_OK;

        if (!yaml_parser_initialize(&parser))
                return error_no_memory(err);
        yaml_parser_set_input_string(&parser, text->data, text->size);
        if (!yaml_parser_load(&parser, &document)) {
                st = parser.error == YAML_MEMORY_ERROR
                             ? error_no_memory(err)
                             : error_set(err, ST_USAGE, "%s:%zu: not YAML: %s", path, parser.problem_mark.line + 1,
                                         parser.problem ? parser.problem : "bad text");
                yaml_parser_delete(&parser);
                return st;
        }
        root = yaml_document_get_root_node(&document);
        if (root)
                st = read(&in, root, object);
        yaml_document_delete(&document);
        yaml_parser_delete(&parser);
        return st;
}

/* Whether the text is JSON or the like, which is not valid before its last bracket. */
static bool is_bracketed(const struct buf *text)
{
        static const char blanks[] = "\xef\xbb\xbf \t\r\n"; /* with a byte order mark */
        size_t i = 0;

        while (i < text->size && text->data[i] && strchr(blanks, text->data[i]))
                i++;
        return i < text->size && (text->data[i] == '{' || text->data[i] == '[');
}

enum status yaml_text_read(const char *path, struct buf *ret, struct error *err)
{
        enum status st = file_read(path, ret, err);

        if (!st && !is_bracketed(ret) && file_check_text(path, ret, err))
                st = ST_USAGE;
        return st;
}

enum status yaml_file_read(const char *path, size_t max, yaml_field_reader *read, void *object, struct error *err)
{
        _cleanup_buf_ struct buf text;
        enum status st;

        buf_init(&text, max);
        st = yaml_text_read(path, &text, err);
        if (!st && !text.size)
                st = error_set(err, ST_USAGE, "'%s' is empty: it may be about to be written", path);
        return st ? st : read_yaml_root(path, &text, read, object, err);
}

/* ---- mappings and sequences ---- */

static bool is_empty_node(const yaml_node_t *node)
{
        const char *text = borrow_scalar(node);

        return text && (!*text || strcmp(text, "null") == 0 || strcmp(text, "~") == 0) &&
               node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

enum status yaml_read_pairs(const struct yaml_source *in, const yaml_node_t *node, size_t max,
                            enum status (*read)(const struct yaml_source *in, const yaml_node_t *name,
                                                const yaml_node_t *value, void *object),
                            void *object)
{
        const yaml_node_pair_t *first, *end;
        enum status st = ST_OK;

        if (is_empty_node(node))
                return ST_OK;
        if (!node || node->type != YAML_MAPPING_NODE)
                return yaml_error(in, node, "a mapping of names to values is expected here");
        first = node->data.mapping.pairs.start;
        end = node->data.mapping.pairs.top;
        if ((size_t)(end - first) > max)
                return yaml_error(in, node, "more than %zu names in a mapping", max);
        for (const yaml_node_pair_t *p = first; !st && p < end; p++) {
                const yaml_node_t *name = yaml_document_get_node(in->document, p->key);
                const char *text = yaml_read_scalar(in, name);

                if (!text)
                        return ST_USAGE;
                for (const yaml_node_pair_t *before = first; before < p; before++)
                        if (strcmp(borrow_scalar(yaml_document_get_node(in->document, before->key)), text) == 0)
                                return yaml_error(in, name, "'%.60s' is there twice", PRINTABLE(text));
                st = read(in, name, yaml_document_get_node(in->document, p->value), object);
        }
        return st;
}

struct field_table {
        const struct yaml_field *fields;
        void *object;
};

static enum status read_yaml_field(const struct yaml_source *in, const yaml_node_t *name, const yaml_node_t *value,
                                   void *object)
{
        const struct field_table *t = object;
        const char *text = borrow_scalar(name);
        const struct yaml_field *f = t->fields;

        while (f->name && strcmp(f->name, text) != 0)
                f++;
        if (!f->name)
                return yaml_error(in, name, "'%.60s' is not known here", PRINTABLE(text));
        if (!value)
                return yaml_error(in, name, "'%s' has no value", f->name);
        return f->read(in, value, (char *)t->object + f->offset);
}

#define FIELDS_MAX 64 /* larger than any table; names are distinct */

enum status yaml_read_mapping(const struct yaml_source *in, const yaml_node_t *node, const struct yaml_field *fields,
                              void *object)
{
        struct field_table t = { fields, object };

        return yaml_read_pairs(in, node, FIELDS_MAX, read_yaml_field, &t);
}

enum status yaml_read_items(const struct yaml_source *in, const yaml_node_t *node, size_t max, yaml_field_reader *read,
                            void *object)
{
        enum status st = ST_OK;

        if (is_empty_node(node))
                return ST_OK;
        if (!node || node->type != YAML_SEQUENCE_NODE)
                return yaml_error(in, node, "a list is expected here");
        if ((size_t)(node->data.sequence.items.top - node->data.sequence.items.start) > max)
                return yaml_error(in, node, "a list of more than %zu items", max);
        for (const yaml_node_item_t *i = node->data.sequence.items.start; !st && i < node->data.sequence.items.top;
             i++) {
                const yaml_node_t *item = yaml_document_get_node(in->document, *i);

                st = item ? read(in, item, object) : yaml_error(in, node, "an item of the list is missing");
        }
        return st;
}

/* ---- values ---- */

enum status yaml_read_text(const struct yaml_source *in, const yaml_node_t *value, void *object)
{
        const char *text = yaml_read_scalar(in, value);
        char **to = object;

        if (!text)
                return ST_USAGE;
        free(*to);
        *to = strdup(text);
        return *to ? ST_OK : error_no_memory(in->err);
}

enum status yaml_read_flag(const struct yaml_source *in, const yaml_node_t *value, void *object)
{
        const char *text = borrow_scalar(value);
        bool yes = text && strcmp(text, "true") == 0;

        if (!yes && (!text || strcmp(text, "false") != 0))
                return yaml_error(in, value, "true or false is expected here");
        *(bool *)object = yes;
        return ST_OK;
}

enum status yaml_read_number(const struct yaml_source *in, const yaml_node_t *value, void *object)
{
        const char *text = borrow_scalar(value);

        return text && parse_uint(text, object) ? ST_OK : yaml_error(in, value, "a whole number is expected here");
}

void yaml_free_texts(char **items, size_t count)
{
        for (size_t i = 0; i < count; i++)
                free(items[i]);
        free(items);
}

struct yaml_texts {
        char **items;
        size_t count, capacity;
};

static enum status read_list_text(const struct yaml_source *in, const yaml_node_t *value, void *object)
{
        struct yaml_texts *l = object;
        char *text = NULL;
        enum status st = yaml_read_text(in, value, &text);

        if (st)
                return st;
        if (!array_reserve(&l->items, &l->capacity, l->count)) {
                free(text);
                return error_no_memory(in->err);
        }
        l->items[l->count++] = text;
        return ST_OK;
}

enum status yaml_read_texts(const struct yaml_source *in, const yaml_node_t *value, size_t max, char ***items,
                            size_t *count)
{
        struct yaml_texts l = { 0 };
        enum status st = yaml_read_items(in, value, max, read_list_text, &l);

        if (st) {
                yaml_free_texts(l.items, l.count);
                return st;
        }
        yaml_free_texts(*items, *count);
        *items = l.items;
        *count = l.count;
        return ST_OK;
}
