/* SPDX-License-Identifier: Apache-2.0 */
#include "common/config/config_file.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "common/config/yaml_fields.h"
#include "common/limits.h"
#include "common/memory/buf.h"
#include "common/text/utf8.h"

/* Known sections: the programs that read the file. */
static const char *const sections[] = { "serve", "agent", "upload" };

#define VALUE_BYTES_MAX (2 * LIMIT_CONFIG_BYTES) /* of a section: larger than the file because of aliases */

struct source {
        const char *path;
        yaml_document_t *document;
        struct error *err;
        size_t value_bytes; /* read so far */
};

static size_t line_of(const yaml_node_t *node)
{
        return node->start_mark.line + 1;
}

static const char *text_of(const yaml_node_t *node)
{
        return (const char *)node->data.scalar.value;
}

/* A text without NUL bytes, which would truncate option values. */
static bool is_text(const yaml_node_t *node)
{
        return node && node->type == YAML_SCALAR_NODE && strlen(text_of(node)) == node->data.scalar.length;
}

static bool is_known_section(const char *name)
{
        for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
                if (strcmp(sections[i], name) == 0)
                        return true;
        return false;
}

static enum status add_value(struct source *in, const yaml_node_t *node, struct config_entry *entry)
{
        if (!is_text(node))
                return error_set(in->err, ST_USAGE, "%s:%zu: '%s' takes a text or a list of texts", in->path,
                                 node ? line_of(node) : entry->line, PRINTABLE(entry->name));
        /* Aliases repeat a text, and even an empty text uses memory. */
        in->value_bytes += node->data.scalar.length + sizeof *entry->values;
        if (in->value_bytes > VALUE_BYTES_MAX)
                return error_set(in->err, ST_USAGE, "%s:%zu: the values take more than %zu bytes", in->path,
                                 line_of(node), (size_t)VALUE_BYTES_MAX);
        entry->values[entry->count] = strdup(text_of(node));
        if (!entry->values[entry->count])
                return error_no_memory(in->err);
        entry->count++;
        return ST_OK;
}

static enum status read_entry_values(struct source *in, const yaml_node_t *node, struct config_entry *entry)
{
        const yaml_node_item_t *item;
        size_t n = 1;
        enum status st = ST_OK;

        if (node && node->type == YAML_SEQUENCE_NODE)
                n = (size_t)(node->data.sequence.items.top - node->data.sequence.items.start);
        entry->values = calloc(n + 1, sizeof *entry->values);
        if (!entry->values)
                return error_no_memory(in->err);
        if (!node || node->type != YAML_SEQUENCE_NODE)
                return add_value(in, node, entry);
        item = node->data.sequence.items.start;
        for (size_t i = 0; i < n && !st; i++)
                st = add_value(in, yaml_document_get_node(in->document, item[i]), entry);
        return st;
}

static enum status read_entries(struct source *in, const yaml_node_t *section, struct config_section *ret)
{
        const yaml_node_pair_t *pairs = section->data.mapping.pairs.start;
        size_t n = (size_t)(section->data.mapping.pairs.top - pairs);
        enum status st = ST_OK;

        if (n > LIMIT_CONFIG_ENTRIES)
                return error_set(in->err, ST_USAGE, "%s:%zu: more than %d names in a section", in->path,
                                 line_of(section), LIMIT_CONFIG_ENTRIES);
        ret->count = 0;
        ret->entries = calloc(n + 1, sizeof *ret->entries);
        if (!ret->entries)
                return error_no_memory(in->err);
        for (size_t i = 0; i < n && !st; i++) {
                const yaml_node_t *key = yaml_document_get_node(in->document, pairs[i].key);
                struct config_entry *entry = &ret->entries[ret->count];

                if (!is_text(key))
                        return error_set(in->err, ST_USAGE, "%s:%zu: a name is a text", in->path,
                                         key ? line_of(key) : line_of(section));
                for (size_t before = 0; before < ret->count; before++)
                        if (strcmp(ret->entries[before].name, text_of(key)) == 0)
                                return error_set(in->err, ST_USAGE, "%s:%zu: '%s' is already set in line %zu", in->path,
                                                 line_of(key), PRINTABLE(text_of(key)), ret->entries[before].line);
                entry->name = strdup(text_of(key));
                if (!entry->name)
                        return error_no_memory(in->err);
                entry->line = line_of(key);
                ret->count++;
                st = read_entry_values(in, yaml_document_get_node(in->document, pairs[i].value), entry);
        }
        return st;
}

static enum status find_config_section(struct source *in, const char *name, struct config_section *ret)
{
        const yaml_node_t *root = yaml_document_get_root_node(in->document), *found = NULL;

        if (!root) /* empty file */
                return ST_OK;
        if (root->type != YAML_MAPPING_NODE)
                return error_set(in->err, ST_USAGE, "%s:%zu: not a mapping of sections, as 'serve:'", in->path,
                                 line_of(root));
        for (const yaml_node_pair_t *p = root->data.mapping.pairs.start; p < root->data.mapping.pairs.top; p++) {
                const yaml_node_t *key = yaml_document_get_node(in->document, p->key);
                const yaml_node_t *value = yaml_document_get_node(in->document, p->value);

                if (!is_text(key) || !is_known_section(text_of(key)))
                        return error_set(in->err, ST_USAGE,
                                         "%s:%zu: unknown section '%s': there are serve, agent and upload", in->path,
                                         line_of(key), is_text(key) ? PRINTABLE(text_of(key)) : "");
                if (strcmp(text_of(key), name) != 0)
                        continue;
                if (found)
                        return error_set(in->err, ST_USAGE, "%s:%zu: section '%s' is there twice", in->path,
                                         line_of(key), name);
                found = value;
        }
        if (!found || (is_text(found) && !*text_of(found))) /* "serve:" without content */
                return ST_OK;
        if (found->type != YAML_MAPPING_NODE)
                return error_set(in->err, ST_USAGE, "%s:%zu: section '%s' is not a mapping of names to values",
                                 in->path, line_of(found), name);
        return read_entries(in, found, ret);
}

static enum status fail_yaml(const struct source *in, const yaml_parser_t *parser)
{
        if (parser->error == YAML_MEMORY_ERROR)
                return error_no_memory(in->err);
        return error_set(in->err, ST_USAGE, "%s:%zu: not YAML: %s", in->path, parser->problem_mark.line + 1,
                         parser->problem ? parser->problem : "bad text");
}

/* Reject a second YAML document; it would be ignored. */
static enum status check_document_end(const struct source *in, yaml_parser_t *parser)
{
        yaml_document_t next;
        const yaml_node_t *root;
        enum status st = ST_OK;

        if (!yaml_parser_load(parser, &next))
                return fail_yaml(in, parser);
        root = yaml_document_get_root_node(&next);
        if (root)
                st = error_set(in->err, ST_USAGE, "%s:%zu: a second document; write one", in->path, line_of(root));
        yaml_document_delete(&next);
        return st;
}

static enum status parse_section(const char *path, const struct buf *text, const char *name, struct config_section *ret,
                                 struct error *err)
{
        yaml_parser_t parser;
        yaml_document_t document;
        struct source in = { .path = path, .document = &document, .err = err };
        enum status st;

        if (!yaml_parser_initialize(&parser))
                return error_no_memory(err);
        yaml_parser_set_input_string(&parser, text->data, text->size);
        if (!yaml_parser_load(&parser, &document)) {
                st = fail_yaml(&in, &parser);
                yaml_parser_delete(&parser);
                return st;
        }
        st = find_config_section(&in, name, ret);
        if (!st && yaml_document_get_root_node(&document))
                st = check_document_end(&in, &parser);
        yaml_document_delete(&document);
        yaml_parser_delete(&parser);
        return st;
}

enum status config_section_read(const char *path, const char *name, struct config_section *ret, struct error *err)
{
        _cleanup_buf_ struct buf text;
        enum status st;

        *ret = (struct config_section){ 0 };
        buf_init(&text, LIMIT_CONFIG_BYTES);
        st = yaml_text_read(path, &text, err);
        if (st)
                return st;
        ret->is_empty = !text.size;
        ret->path = strdup(path);
        st = ret->path ? parse_section(path, &text, name, ret, err) : error_no_memory(err);
        if (st)
                config_section_deinit(ret);
        return st;
}

void config_section_deinit(struct config_section *s)
{
        for (size_t i = 0; i < s->count; i++) {
                for (size_t v = 0; v < s->entries[i].count; v++)
                        free(s->entries[i].values[v]);
                free(s->entries[i].values);
                free(s->entries[i].name);
        }
        free(s->entries);
        free(s->path);
        *s = (struct config_section){ 0 };
}
