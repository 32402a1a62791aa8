/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Short texts of settings and permissions. The first byte selects how the rest is parsed: as a token file and then as a
 * list of upstreams, as a retention rule of debuginfo or samples and then as a tenants file, or as a JSON body.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/json/json_value.h"
#include "common/limits.h"
#include "debuginfo-store/object_retention.h"
#include "query/engine/sample_rules.h"
#include "server/access/tokens.h"
#include "server/core/upstream_list.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
        if (!ok)
                abort();
}

/* No line of the file may produce two headers. */
static void check_upstreams(const char *path)
{
        struct upstream_list l = { 0 };

        (void)!upstream_list_read(&l, path, NULL);
        for (size_t i = 0; i < l.count; i++) {
                require(strncmp(l.urls[i], "http", 4) == 0 && !strpbrk(l.urls[i], " \t\n"));
                require(!l.headers[i] || !strpbrk(l.headers[i], "\r\n"));
        }
        upstream_list_deinit(&l);
}

/* Whatever the file contains, requests without a token are refused, and its whole text is not a token. */
static void check_tokens(const uint8_t *data, size_t size)
{
        _cleanup_close_ int fd = memfd_create("tokens", 0);
        char path[64], name[HTTP_TOKEN_NAME_SIZE];
        struct token_id unknown;
        struct tokens *t;
        struct error err;

        require(token_identify("a token that nobody has written down", &unknown));
        require(fd >= 0 && file_write_all(fd, data, size, "tokens", NULL) == ST_OK);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        check_upstreams(path);
        if (tokens_load(path, NULL, &t, &err))
                return;
        for (int scope = SCOPE_READ; scope <= SCOPE_ADMIN; scope++) {
                require(tokens_check(t, NULL, scope, name) != ACCESS_GRANTED && !name[0]);
                require(tokens_check(t, &unknown, scope, name) != ACCESS_GRANTED);
        }
        tokens_destroy(t);
}

/* Whatever the file contains, the folder names of its tenants stay inside the data directory. */
static void check_tenants(const char *text)
{
        _cleanup_free_ char *copy = strdup(text);
        struct tenant_configs *c;

        require(copy);
        if (tenant_configs_parse(copy, "file", &c, NULL))
                return;
        require(c->count > 0 && c->count <= LIMIT_TENANTS);
        for (size_t i = 0; i < c->count; i++)
                require(tenant_name_is_valid(c->items[i].name) && !strpbrk(c->items[i].name, "./"));
        tenant_configs_destroy(c);
}

static void check_retention(const char *text)
{
        const struct stored_object o = { .tag = "release/1", .token = "ci" };
        struct retention_rule rule;
        struct error err;

        if (retention_rule_parse(text, &rule, &err) == ST_OK)
                require(retention_find_rule(&rule, 1, &o) <= 1 && *text);
}

/* A rejected rule changes nothing, and one with labels selects samples by age. */
static void check_sample_rule(const char *text)
{
        struct sample_rules rules = { 0 };
        struct error err;

        if (sample_rules_add(&rules, text, &err))
                require(!rules.limits.rule_count && !rules.limits.age_s && !rules.limits.size_bytes);
        else if (rules.limits.rule_count)
                require(rules.rules[0].age_s && (rules.rules[0].matcher_count || rules.rules[0].type));
        sample_rules_deinit(&rules);
}

static void check_json(const uint8_t *data, size_t size)
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
        require(json_value_count(&files, SIZE_MAX - 1) == count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_free_ char *text = NULL;

        if (!size)
                return 0;
        switch (data[0] % 3) {
        case 0:
                check_tokens(data + 1, size - 1);
                break;
        case 1:
                text = strndup((const char *)data + 1, size - 1);
                require(text != NULL);
                check_retention(text);
                check_sample_rule(text);
                check_tenants(text);
                break;
        default:
                check_json(data + 1, size - 1);
        }
        return 0;
}
