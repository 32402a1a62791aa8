/* SPDX-License-Identifier: Apache-2.0 */
#include "server/api/profiles/app_name.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/limits.h"
#include "profile-formats/sample_labels.h"

static char *trim_spaces(char *text)
{
        size_t n;

        text += strspn(text, " \t");
        n = strlen(text);
        while (n && strchr(" \t", text[n - 1]))
                text[--n] = 0;
        if (n >= 2 && text[0] == '"' && text[n - 1] == '"') {
                text[n - 1] = 0;
                text++;
        }
        return text;
}

/* Split "KEY=VALUE" in place. */
static enum status split_label_pair(char *pair, char **key_ret, char **value_ret, struct error *err)
{
        char *equals = strchr(pair, '=');

        if (!equals)
                return error_set(err, ST_BAD_DATA, "label '%.80s' of the name has no '='", pair);
        *equals = 0;
        *key_ret = trim_spaces(pair);
        *value_ret = trim_spaces(equals + 1);
        return **key_ret ? ST_OK : error_set(err, ST_BAD_DATA, "a label of the name has no key");
}

static enum status collect_label_pairs(char *pairs, struct profile *p, struct sample_labels *labels,
                                       bool *has_service_ret, struct error *err)
{
        char service_key[] = "service_name";
        enum status st = ST_OK;
        unsigned count = 0;

        while (!st && pairs && *pairs) {
                char *pair = strsep(&pairs, ","), *key = NULL, *value = NULL;

                if (!*trim_spaces(pair))
                        continue;
                if (count++ == LIMIT_LABELS_PER_SAMPLE)
                        return error_set(err, ST_TOO_BIG, "the name has more than %d labels", LIMIT_LABELS_PER_SAMPLE);
                st = split_label_pair(pair, &key, &value, err);
                if (st || strncmp(key, "__", 2) == 0)
                        continue;
                if (strcmp(key, "service_name") == 0 || strcmp(key, "service.name") == 0) {
                        if (!*value)
                                continue;
                        *has_service_ret = true;
                        key = service_key;
                }
                st = sample_labels_set_text(labels, p, key, value, strlen(value), err);
        }
        return st;
}

enum status app_name_add_labels(struct app_name *a, struct profile *p, struct error *err)
{
        struct sample_labels labels = { .count = 0 };
        bool has_service = false;
        enum status st = collect_label_pairs(a->pairs, p, &labels, &has_service, err);

        if (!st)
                st = sample_labels_set_text(&labels, p, has_service ? "app_name" : "service_name", a->service,
                                            strlen(a->service), err);
        return st ? st : profile_add_labels_to_all(p, &labels, err);
}

enum status app_name_parse(const char *name, struct app_name *ret, struct error *err)
{
        _cleanup_free_ char *copy = strdup(name);
        struct app_name a = { 0 };
        size_t n;

        if (!copy)
                return error_no_memory(err);
        a.pairs = strchr(copy, '{');
        if (a.pairs) {
                n = strlen(a.pairs);
                if (a.pairs[n - 1] != '}')
                        return error_set(err, ST_BAD_DATA, "the name '%.80s' has no closing brace", name);
                a.pairs[n - 1] = 0;
                *a.pairs++ = 0;
        }
        a.service = trim_spaces(copy);
        if (!*a.service)
                return error_set(err, ST_BAD_DATA, "the name is empty; send name=SERVICE{KEY=VALUE,...}");
        a.text = copy;
        copy = NULL;
        *ret = a;
        return ST_OK;
}

void app_name_deinit(struct app_name *a)
{
        free(a->text);
        *a = (struct app_name){ 0 };
}
