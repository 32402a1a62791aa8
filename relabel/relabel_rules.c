/* SPDX-License-Identifier: Apache-2.0 */
#include "relabel/relabel_rules.h"

#include <stdlib.h>

#include "common/limits.h"
#include "common/text/utf8.h"

void relabel_rules_deinit(struct relabel_rules *r)
{
        for (size_t i = 0; i < r->count; i++)
                relabel_rule_deinit(&r->items[i]);
        free(r->items);
        *r = (struct relabel_rules){ 0 };
}

static enum status read_rule_sources(const struct yaml_source *in, const yaml_node_t *value, void *object)
{
        struct relabel_rule *r = object;

        return yaml_read_texts(in, value, LIMIT_RELABEL_LABELS, &r->sources, &r->source_count);
}

static enum status read_rule_action(const struct yaml_source *in, const yaml_node_t *value, void *object)
{
        const char *text = yaml_read_scalar(in, value);

        if (!text)
                return ST_USAGE;
        return relabel_action_parse(text, object) ? yaml_error(in, value, "unknown action '%.40s'", PRINTABLE(text))
                                                  : ST_OK;
}

static const struct yaml_field rule_fields[] = {
        { "source_labels", read_rule_sources, 0 },
        { "separator", yaml_read_text, offsetof(struct relabel_rule, separator) },
        { "regex", yaml_read_text, offsetof(struct relabel_rule, pattern) },
        { "modulus", yaml_read_number, offsetof(struct relabel_rule, modulus) },
        { "target_label", yaml_read_text, offsetof(struct relabel_rule, target_label) },
        { "replacement", yaml_read_text, offsetof(struct relabel_rule, replacement) },
        { "action", read_rule_action, offsetof(struct relabel_rule, action) },
        { 0 },
};

static enum status read_relabel_rule(const struct yaml_source *in, const yaml_node_t *value, void *object)
{
        struct relabel_rules *rules = object;
        struct relabel_rule *r = &rules->items[rules->count++];
        enum status st = yaml_read_mapping(in, value, rule_fields, r);

        if (st)
                return st;
        st = relabel_rule_finish(r, in->err);
        return st ? yaml_locate_error(in, value, st) : ST_OK;
}

enum status relabel_rules_read(const struct yaml_source *in, const yaml_node_t *value, void *object)
{
        struct relabel_rules *rules = object;

        rules->items = calloc(LIMIT_RELABEL_RULES, sizeof *rules->items);
        if (!rules->items)
                return error_no_memory(in->err);
        return yaml_read_items(in, value, LIMIT_RELABEL_RULES, read_relabel_rule, rules);
}

static const struct yaml_field relabel_file_fields[] = { { "relabel_configs", relabel_rules_read, 0 }, { 0 } };

static enum status read_relabel_root(const struct yaml_source *in, const yaml_node_t *root, void *object)
{
        return yaml_read_mapping(in, root, relabel_file_fields, object);
}

enum status relabel_file_read(const char *path, struct relabel_rules *ret, struct error *err)
{
        struct relabel_rules rules = { 0 };
        enum status st = yaml_file_read(path, LIMIT_CONFIG_BYTES, read_relabel_root, &rules, err);

        if (st) {
                relabel_rules_deinit(&rules);
                return st;
        }
        *ret = rules;
        return ST_OK;
}
