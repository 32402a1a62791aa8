/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Short texts that say what may happen. The first byte says what the others
 * are: a token file and then a file of upstreams, a retention rule of debuginfo or
 * samples and then a tenants file, or a JSON body with its members.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "common/json/json_value.h"
#include "common/limits.h"
#include "debuginfo-store/retention.h"
#include "query/sample_rules.h"
#include "server/access/tokens.h"
#include "server/upstream_list.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
        if (!ok)
                abort();
}

/* No line of the file becomes two headers. */
static void upstream_file(const char *path)
{
        struct upstream_list l = { 0 };

        (void)!upstream_list_read(&l, path, NULL);
        for (size_t i = 0; i < l.count; i++) {
                must(strncmp(l.urls[i], "http", 4) == 0 && !strpbrk(l.urls[i], " \t\n"));
                must(!l.headers[i] || !strpbrk(l.headers[i], "\r\n"));
        }
        upstream_list_deinit(&l);
}

/* Whatever the file says, nobody comes in without a token, and its whole text is none. */
static void token_file(const uint8_t *data, size_t size)
{
        _cleanup_close_ int fd = memfd_create("tokens", 0);
        char path[64], name[HTTP_TOKEN_NAME_SIZE];
        struct token_id unknown;
        struct tokens *t;
        struct error err;

        must(token_identify("a token that nobody has written down", &unknown));
        must(fd >= 0 && file_write_all(fd, data, size, "tokens", NULL) == ST_OK);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        upstream_file(path);
        if (tokens_load(path, NULL, &t, &err))
                return;
        for (int scope = SCOPE_READ; scope <= SCOPE_ADMIN; scope++) {
                must(tokens_check(t, NULL, scope, name) != ACCESS_GRANTED && !name[0]);
                must(tokens_check(t, &unknown, scope, name) != ACCESS_GRANTED);
        }
        tokens_destroy(t);
}

/* Whatever the file says, its tenants have names that lead into folders of their own. */
static void tenants_file(const char *text)
{
        _cleanup_free_ char *copy = strdup(text);
        struct tenant_configs *c;

        must(copy);
        if (tenant_configs_parse(copy, "file", &c, NULL))
                return;
        must(c->count > 0 && c->count <= LIMIT_TENANTS);
        for (size_t i = 0; i < c->count; i++)
                must(tenant_name_is_valid(c->items[i].name) && !strpbrk(c->items[i].name, "./"));
        tenant_configs_destroy(c);
}

static void retention(const char *text)
{
        const struct stored_object o = { .label = "release/1", .token = "ci" };
        struct retention_rule rule;
        struct error err;

        if (retention_rule_parse(text, &rule, &err) == ST_OK)
                must(retention_find_rule(&rule, 1, &o) <= 1 && *text);
}

/* A refused rule changes nothing, and one with labels selects something by an age. */
static void sample_rule(const char *text)
{
        struct sample_rules rules = { 0 };
        struct error err;

        if (sample_rules_add(&rules, text, &err))
                must(!rules.limits.rule_count && !rules.limits.age_s && !rules.limits.size_bytes);
        else if (rules.limits.rule_count)
                must(rules.rules[0].age_s && (rules.rules[0].matcher_count || rules.rules[0].type));
        sample_rules_deinit(&rules);
}

static void json(const uint8_t *data, size_t size)
{
        struct json_value o, files, file;
        struct json_scan items;
        char text[64];
        struct error err;
        bool flag = false;
        size_t count = 0;

        if (json_value_parse(data, size, &o, &err))
                return;
        (void)json_value_text(&o, "build_id", text, sizeof text);
        (void)json_value_uint(&o, "size", 0);
        (void)json_value_bool(&o, "dry_run", &flag);
        if (!json_value_member(&o, "files", &files) || !json_value_open_array(&files, &items))
                return;
        while (json_value_next(&items, &file)) {
                (void)json_value_copy(&file, text, sizeof text);
                (void)json_value_text(&file, "kind", text, sizeof text);
                count++;
        }
        must(json_value_count(&files, SIZE_MAX - 1) == count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_free_ char *text = NULL;

        if (!size)
                return 0;
        switch (data[0] % 3) {
        case 0:
                token_file(data + 1, size - 1);
                break;
        case 1:
                text = strndup((const char *)data + 1, size - 1);
                must(text != NULL);
                retention(text);
                sample_rule(text);
                tenants_file(text);
                break;
        default:
                json(data + 1, size - 1);
        }
        return 0;
}
