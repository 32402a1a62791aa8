/* SPDX-License-Identifier: Apache-2.0 */
#include "query/engine/sample_rules.h"

#include <string.h>

#include "common/cleanup.h"
#include "common/limits.h"
#include "profile-store/lifecycle/sample_retention.h"

#define RULE_TEXTS_MAX MiB(1)

static enum status refuse_label_rule(const char *text, const char *why, struct error *err)
{
        return error_set(err, ST_USAGE, "retention rule '%.100s' %s", text, why);
}

/* end: the last brace of the text; an age has no brace. */
static enum status add_label_rule(struct sample_rules *r, const char *text, const char *end, struct error *err)
{
        _cleanup_free_ char *selector_text = strndup(text, (size_t)(end + 1 - text));
        _cleanup_selector_ struct selector s = { 0 };
        struct sample_limits age = { 0 };
        enum status st;

        if (!selector_text)
                return error_no_memory(err);
        if (r->limits.rule_count == LABEL_RULES_MAX)
                return error_set(err, ST_USAGE, "more than %d retention rules with labels", LABEL_RULES_MAX);
        if (strncmp(end + 1, ",age=", 5) != 0 || strchr(end + 2, ','))
                return refuse_label_rule(text, "is not {LABELS},age=TIME, as {env=\"dev\"},age=3d", err);
        st = sample_limits_parse(end + 2, &age, err);
        if (!st)
                st = selector_parse(selector_text, NULL, &s, err);
        if (st)
                return st;
        if (!s.count && !s.type)
                return refuse_label_rule(text, "selects all samples: omit the braces", err);
        r->rules[r->limits.rule_count] = (struct label_rule){
                .matchers = s.matchers, .matcher_count = s.count, .type = s.type, .age_s = age.age_s
        };
        r->selectors[r->limits.rule_count++] = s;
        r->limits.rules = r->rules;
        s = (struct selector){ 0 };
        return ST_OK;
}

enum status sample_rules_add(struct sample_rules *r, const char *text, struct error *err)
{
        const char *end = strrchr(text, '}');
        enum status st = end ? add_label_rule(r, text, end, err) : sample_limits_parse(text, &r->limits, err);

        if (st)
                return st;
        r->text.max = RULE_TEXTS_MAX;
        buf_printf(&r->text, "%s\n", text);
        return buf_status(&r->text, err, "retention rules");
}

enum status sample_rules_copy(struct sample_rules *to, const struct sample_rules *from, struct error *err)
{
        _cleanup_free_ char *lines =
                strndup((const char *)(from->text.data ? from->text.data : (const uint8_t *)""), from->text.size);
        char *rest = lines, *line;
        enum status st = lines ? ST_OK : error_no_memory(err);

        while (!st && (line = strsep(&rest, "\n")))
                if (*line)
                        st = sample_rules_add(to, line, err);
        return st;
}

bool sample_rules_are_equal(const struct sample_rules *a, const struct sample_rules *b)
{
        return a->text.size == b->text.size && (!a->text.size || memcmp(a->text.data, b->text.data, a->text.size) == 0);
}

void sample_rules_deinit(struct sample_rules *r)
{
        for (size_t i = 0; i < r->limits.rule_count; i++)
                selector_deinit(&r->selectors[i]);
        buf_deinit(&r->text);
        *r = (struct sample_rules){ 0 };
}
