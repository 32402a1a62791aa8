/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo-store/object_retention.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/text/number_text.h"

static bool parse_rule_pattern(const char *text, char ret[static OBJECT_TAG_SIZE])
{
        if (!*text || strlen(text) >= OBJECT_TAG_SIZE)
                return false;
        memcpy(ret, text, strlen(text) + 1);
        return true;
}

static bool parse_rule_source(const char *text, const char **ret)
{
        for (unsigned s = 0; s <= SOURCE_UPSTREAM; s++) {
                if (strcmp(text, object_source_name(s)) == 0) {
                        *ret = object_source_name(s);
                        return true;
                }
        }
        return false;
}

static bool parse_rule_kind(const char *text, const char **ret)
{
        enum object_kind kind;

        if (!object_kind_parse(text, &kind))
                return false;
        *ret = object_kind_name(kind);
        return true;
}

static bool parse_rule_part(const char *key, const char *value, struct retention_rule *r)
{
        if (strcmp(key, "tag") == 0)
                return parse_rule_pattern(value, r->tag);
        if (strcmp(key, "token") == 0)
                return parse_rule_pattern(value, r->token);
        if (strcmp(key, "source") == 0)
                return parse_rule_source(value, &r->source);
        if (strcmp(key, "kind") == 0)
                return parse_rule_kind(value, &r->kind);
        if (strcmp(key, "age") == 0)
                return parse_age(value, &r->age_s);
        if (strcmp(key, "unused") == 0)
                return parse_age(value, &r->unused_s);
        return strcmp(key, "size") == 0 && parse_bytes(value, &r->size_bytes);
}

enum status retention_rule_parse(const char *text, struct retention_rule *ret, struct error *err)
{
        _cleanup_free_ char *copy = strdup(text);
        struct retention_rule r = { 0 };
        bool keep = false;
        char *rest = copy;

        if (!copy)
                return error_no_memory(err);
        while (rest) {
                char *part = strsep(&rest, ","), *value = strchr(part, '=');

                if (value)
                        *value++ = 0;
                if (!value && strcmp(part, "keep") == 0)
                        keep = true;
                else if (!value || !parse_rule_part(part, value, &r))
                        return error_set(err, ST_USAGE,
                                         "retention rule '%.200s': '%.60s%s%.60s' is not one of tag=GLOB, token=GLOB, "
                                         "source=upload|upstream, kind=KIND, age=90d, unused=4w, size=200G, keep",
                                         text, part, value ? "=" : "", value ? value : "");
        }
        if (keep == (r.age_s || r.unused_s || r.size_bytes))
                return error_set(err, ST_USAGE, "retention rule '%.200s' %s", text,
                                 keep ? "has both keep and a bound"
                                      : "has no bound: add age=, unused=, size=, or keep");
        *ret = r;
        return ST_OK;
}

/* source and kind are static strings, so pointers can be compared. */
bool retention_rules_are_equal(const struct retention_rule *a, const struct retention_rule *b)
{
        return strcmp(a->tag, b->tag) == 0 && strcmp(a->token, b->token) == 0 && a->source == b->source &&
               a->kind == b->kind && a->age_s == b->age_s && a->unused_s == b->unused_s &&
               a->size_bytes == b->size_bytes;
}

enum status retention_rules_parse(const char *const *texts, size_t count,
                                  struct retention_rule ret[static RETENTION_RULES_MAX], struct error *err)
{
        enum status st = ST_OK;

        if (count > RETENTION_RULES_MAX)
                return error_set(err, ST_USAGE, "%zu retention rules, at most %d are allowed", count,
                                 RETENTION_RULES_MAX);
        for (size_t i = 0; i < count && !st; i++)
                st = retention_rule_parse(texts[i], &ret[i], err);
        return st;
}

static bool rule_selects(const struct retention_rule *r, const struct stored_object *o)
{
        return (!r->tag[0] || fnmatch(r->tag, o->tag, 0) == 0) &&
               (!r->token[0] || fnmatch(r->token, o->token, 0) == 0) &&
               (!r->source || strcmp(r->source, object_source_name(o->source)) == 0) &&
               (!r->kind || strcmp(r->kind, object_kind_name(o->kind)) == 0);
}

size_t retention_find_rule(const struct retention_rule *rules, size_t count, const struct stored_object *object)
{
        size_t i = 0;

        while (i < count && !rule_selects(&rules[i], object))
                i++;
        return i;
}
