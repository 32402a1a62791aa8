/* SPDX-License-Identifier: Apache-2.0 */
#include "query/operations/gate_rules.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* "total>5%", "function>2%", "json::parse>5%" */
static enum status parse_gate_rule(const char *text, size_t n, struct gate_rule *ret, struct error *err)
{
        const char *mark = memrchr(text, '>', n);
        char *end;

        *ret = (struct gate_rule){ .text = strndup(text, n), .change = NAN, .smallest_effect = NAN };
        if (!ret->text)
                return error_no_memory(err);
        if (mark && mark > text) {
                size_t name = (size_t)(mark - text);

                while (name > 1 && text[name - 1] == ' ')
                        name--;
                ret->threshold = strtod(mark + 1, &end) / 100;
                ret->subject = strndup(text, name);
                if (!ret->subject)
                        return error_no_memory(err);
        }
        if (!ret->subject || end == mark + 1 || strncmp(end, "%", 1) != 0 || end + 1 != text + n ||
            !(ret->threshold >= 0 && ret->threshold <= LIMIT_GATE_THRESHOLD))
                return error_set(err, ST_USAGE, "rule '%.80s' is not like total>5%%, function>2%% or NAME>5%%",
                                 ret->text);
        ret->kind = strcmp(ret->subject, "total") == 0      ? RULE_TOTAL
                    : strcmp(ret->subject, "function") == 0 ? RULE_ANY_FUNCTION
                                                            : RULE_FUNCTION;
        return ST_OK;
}

enum status gate_rules_parse(const char *text, struct gate_rule *ret, size_t *count_ret, struct error *err)
{
        enum status st = ST_OK;
        size_t count = 0;

        while (!st && *text) {
                const char *end = strstr(text, "%,"); /* names may contain commas */
                size_t n = end ? (size_t)(end - text) + 1 : strlen(text);

                if (count == LIMIT_GATE_RULES)
                        return error_set(err, ST_USAGE, "more than %u rules", (unsigned)LIMIT_GATE_RULES);
                st = parse_gate_rule(text, n, &ret[count++], err);
                text += n + (end != NULL);
        }
        *count_ret = count;
        return st;
}

void gate_rules_deinit(struct gate_rule *rules)
{
        for (size_t i = 0; i < LIMIT_GATE_RULES; i++) {
                free(rules[i].text);
                free(rules[i].subject);
        }
}
