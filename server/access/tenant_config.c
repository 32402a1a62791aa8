/* SPDX-License-Identifier: Apache-2.0 */
#include "server/access/tenant_config.h"

#include <stdlib.h>
#include <string.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "common/text/number_text.h"

#define RATE_MAX 1000000

struct tenant_config *tenant_configs_find(const struct tenant_configs *c, const char *name)
{
        for (size_t i = 0; c && i < c->count; i++)
                if (strcmp(c->items[i].name, name) == 0)
                        return &c->items[i];
        return NULL;
}

bool tenant_configs_have(const struct tenant_configs *c, const char *name)
{
        return c && (strcmp(name, TENANT_DEFAULT) == 0 || tenant_configs_find(c, name));
}

static enum status add_tenant_config(struct tenant_configs *c, const char *name, struct tenant_config **ret,
                                     struct error *err)
{
        if (!tenant_name_is_valid(name))
                return error_set(err, ST_BAD_DATA,
                                 "'%.40s' is not a tenant's name: 1 to %d of a-z, 0-9, '-' and '_', and not '-' first",
                                 name, TENANT_NAME_SIZE - 1);
        if (strcmp(name, TENANT_DEFAULT) == 0)
                return error_set(err, ST_BAD_DATA,
                                 "'" TENANT_DEFAULT "' is the tenant of requests without one; its settings are the "
                                 "options of the service");
        *ret = tenant_configs_find(c, name);
        if (*ret)
                return ST_OK;
        if (c->count == LIMIT_TENANTS)
                return error_set(err, ST_TOO_BIG, "more than %d tenants", LIMIT_TENANTS);
        *ret = &c->items[c->count++];
        memcpy((*ret)->name, name, strlen(name) + 1);
        return ST_OK;
}

static enum status set_tenant_setting(struct tenant_config *t, const char *key, const char *value, struct error *err)
{
        if (strcmp(key, "retain") == 0) {
                t->has_rules = true;
                return sample_rules_add(&t->rules, value, err);
        }
        if (strcmp(key, "rate") == 0) {
                if (parse_uint(value, &t->limits.requests_per_s) && t->limits.requests_per_s > 0 &&
                    t->limits.requests_per_s <= RATE_MAX)
                        return ST_OK;
                return error_set(err, ST_BAD_DATA, "rate '%.40s' is not a number of requests per second from 1 to %d",
                                 value, RATE_MAX);
        }
        if (strcmp(key, "bytes") == 0) {
                if (parse_bytes(value, &t->limits.bytes_per_day) && t->limits.bytes_per_day)
                        return ST_OK;
                return error_set(err, ST_BAD_DATA, "bytes '%.40s' is not a size with K, M, G or T", value);
        }
        if (strcmp(key, "debuginfo") == 0) {
                t->has_own_debuginfo = strcmp(value, "own") == 0;
                if (t->has_own_debuginfo || strcmp(value, "shared") == 0)
                        return ST_OK;
                return error_set(err, ST_BAD_DATA, "debuginfo '%.40s' is neither own nor shared", value);
        }
        return error_set(err, ST_BAD_DATA, "'%.40s' is not a setting; they are retain, rate, bytes and debuginfo", key);
}

/* Strip blanks at both ends, in place. */
static char *trim_blanks(char *text)
{
        size_t n;

        text += strspn(text, " \t\r");
        n = strlen(text);
        while (n && strchr(" \t\r", text[n - 1]))
                text[--n] = 0;
        return text;
}

static enum status parse_tenant_line(struct tenant_configs *c, char *line, struct error *err)
{
        struct tenant_config *t;
        char *key, *value;
        enum status st;

        line = trim_blanks(line);
        if (!*line || *line == '#')
                return ST_OK;
        key = line + strcspn(line, " \t");
        if (*key)
                *key++ = 0;
        key = trim_blanks(key);
        value = key + strcspn(key, " \t");
        if (*value)
                *value++ = 0;
        st = add_tenant_config(c, line, &t, err);
        if (st || !*key)
                return st;
        return set_tenant_setting(t, key, trim_blanks(value), err);
}

enum status tenant_configs_parse(char *text, const char *path, struct tenant_configs **ret, struct error *err)
{
        struct tenant_configs *c = calloc(1, sizeof *c);
        unsigned number = 0;
        enum status st = ST_OK;

        if (c)
                c->items = calloc(LIMIT_TENANTS, sizeof *c->items);
        if (!c || !c->items)
                st = error_no_memory(err);
        while (text && !st) {
                char *line = strsep(&text, "\n");

                number++;
                st = parse_tenant_line(c, line, err);
                if (st)
                        st = error_prefix(err, st, "'%s' line %u", path, number);
        }
        if (!st && !c->count)
                st = error_set(err, ST_BAD_DATA, "'%s' holds no tenant", path);
        if (!st) {
                *ret = c;
                return ST_OK;
        }
        tenant_configs_destroy(c);
        return st;
}

enum status tenant_configs_load(const char *path, struct tenant_configs **ret, struct error *err)
{
        _cleanup_buf_ struct buf text;
        enum status st;

        buf_init(&text, MiB(1));
        st = file_read_lines(path, &text, err);
        if (!st && memchr(text.data ? text.data : (const uint8_t *)"", 0, text.size))
                st = error_set(err, ST_BAD_DATA, "'%s' holds a NUL character", path);
        if (!st && !buf_cstr(&text))
                st = buf_status(&text, err, path);
        return st ? st : tenant_configs_parse((char *)text.data, path, ret, err);
}

void tenant_configs_destroy(struct tenant_configs *c)
{
        if (!c)
                return;
        for (size_t i = 0; i < c->count; i++)
                sample_rules_deinit(&c->items[i].rules);
        free(c->items);
        free(c);
}
