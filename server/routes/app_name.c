/* SPDX-License-Identifier: Apache-2.0 */
#include "server/routes/app_name.h"

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/limits.h"

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

static enum status label_pair(char *pair, struct profile *p, struct error *err)
{
        char *equals = strchr(pair, '='), *key;

        if (!equals)
                return error_set(err, ST_BAD_DATA, "label '%.80s' of the name has no '='", pair);
        *equals = 0;
        key = trim_spaces(pair);
        if (!*key)
                return error_set(err, ST_BAD_DATA, "a label of the name has no key");
        if (strncmp(key, "__", 2) == 0)
                return ST_OK;
        return profile_add_label_to_all(p, key, trim_spaces(equals + 1), err);
}

enum status parse_app_name(const char *name, struct profile *p, struct error *err)
{
        _cleanup_free_ char *copy = strdup(name);
        char *braces, *pairs, *service;
        size_t n;
        enum status st;

        if (!copy)
                return error_no_memory(err);
        braces = strchr(copy, '{');
        if (braces) {
                n = strlen(braces);
                if (braces[n - 1] != '}')
                        return error_set(err, ST_BAD_DATA, "the name '%.80s' has no closing brace", name);
                braces[n - 1] = 0;
                *braces++ = 0;
        }
        service = trim_spaces(copy);
        if (!*service)
                return error_set(err, ST_BAD_DATA, "the name is empty; send name=SERVICE{KEY=VALUE,...}");
        st = profile_add_label_to_all(p, "service_name", service, err);
        pairs = braces;
        while (!st && pairs && *pairs) {
                char *pair = strsep(&pairs, ",");

                if (*trim_spaces(pair))
                        st = label_pair(pair, p, err);
        }
        return st;
}
