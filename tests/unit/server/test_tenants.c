/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/memory/memory_budget.h"
#include "profile-store/core/profile_store_internal.h"
#include "server/core/node_roles.h"
#include "server/core/tenants.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

static struct tenant_configs *parse_tenants(const char *text)
{
        _cleanup_free_ char *copy = strdup(text);
        struct tenant_configs *ret = NULL;
        struct error err;

        ck_assert_ptr_nonnull(copy);
        ck_assert_msg(tenant_configs_parse(copy, "file", &ret, &err) == ST_OK, "%s", err.text);
        return ret;
}

static void refuse_tenants(const char *text, const char *why)
{
        _cleanup_free_ char *copy = strdup(text);
        struct tenant_configs *ret = NULL;
        struct error err;

        ck_assert_ptr_nonnull(copy);
        ck_assert_int_ne(tenant_configs_parse(copy, "file", &ret, &err), ST_OK);
        ck_assert_msg(strstr(err.text, why) != NULL, "'%s' lacks '%s'", err.text, why);
        ck_assert_ptr_null(ret);
}

START_TEST(settings_of_one_tenant_are_combined)
{
        struct tenant_configs *c = parse_tenants("# teams\n"
                                                 "a\r\n"
                                                 " \t b-2_x  retain   {env=\"a # b\"},age=3d \n"
                                                 "b-2_x retain age=30d,size=1G\n"
                                                 "b-2_x rate 7\nb-2_x bytes 2K\nb-2_x debuginfo own\n"
                                                 "c debuginfo own\nc debuginfo shared\n");

        ck_assert_uint_eq(c->count, 3);
        ck_assert(!c->items[0].has_own_debuginfo && c->items[1].has_own_debuginfo && !c->items[2].has_own_debuginfo);
        ck_assert_str_eq(c->items[0].name, "a");
        ck_assert(!c->items[0].has_rules);
        ck_assert_uint_eq(c->items[0].limits.requests_per_s, 0);
        ck_assert_str_eq(c->items[1].name, "b-2_x");
        ck_assert(c->items[1].has_rules);
        ck_assert_uint_eq(c->items[1].rules.limits.age_s, 30 * 86400);
        ck_assert_uint_eq(c->items[1].rules.limits.size_bytes, 1u << 30);
        ck_assert_uint_eq(c->items[1].rules.limits.rule_count, 1);
        ck_assert_uint_eq(c->items[1].limits.requests_per_s, 7);
        ck_assert_uint_eq(c->items[1].limits.bytes_per_day, 2048);
        ck_assert(tenant_configs_have(c, "a") && tenant_configs_have(c, TENANT_DEFAULT));
        ck_assert(!tenant_configs_have(c, "b") && !tenant_configs_have(NULL, TENANT_DEFAULT));
        tenant_configs_destroy(c);
}
END_TEST

START_TEST(malformed_line_is_reported)
{
        refuse_tenants("a\nB\n", "'file' line 2: 'B' is not a tenant's name");
        refuse_tenants("..\n", "line 1");
        refuse_tenants("a/b\n", "line 1");
        refuse_tenants("-a\n", "line 1");
        refuse_tenants("anonymous\n", "options of the service");
        refuse_tenants("a keep 3d\n", "'keep' is not a setting");
        refuse_tenants("a retain\n", "line 1");
        refuse_tenants("a rate 0\n", "rate '0'");
        refuse_tenants("a rate 1000001\n", "rate '1000001'");
        refuse_tenants("a bytes\n", "bytes ''");
        refuse_tenants("a debuginfo\n", "debuginfo '' is neither own nor shared");
        refuse_tenants("a debuginfo OWN\n", "debuginfo 'OWN' is neither");
        refuse_tenants("\n# a\n", "holds no tenant");
}
END_TEST

START_TEST(names_are_valid_folder_names)
{
        static const char *const bad[] = { "", ".", "..", "a/b", "../a", "a.b", "A", "-a", "a b", "\xc3\xa4" };
        char longest[TENANT_NAME_SIZE + 1];
        _cleanup_free_ char *path = tenant_profiles_path("data", "a"), *none = tenant_profiles_path("data", NULL),
                            *standard = tenant_profiles_path("data", TENANT_DEFAULT);

        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
                ck_assert_msg(!tenant_name_is_valid(bad[i]), "'%s'", bad[i]);
        memset(longest, 'a', sizeof longest);
        longest[TENANT_NAME_SIZE - 1] = 0;
        ck_assert(tenant_name_is_valid(longest));
        longest[TENANT_NAME_SIZE - 1] = 'a';
        longest[TENANT_NAME_SIZE] = 0;
        ck_assert(!tenant_name_is_valid(longest));
        ck_assert_str_eq(path, "data/tenants/a/profiles");
        ck_assert_str_eq(none, "data/profiles");
        ck_assert_str_eq(standard, "data/profiles");
}
END_TEST

static char folder[TEMPORARY_DIR_BYTES];

static struct tenants *open_tenants_of(const struct tenant_configs *configs, const struct server_options *server)
{
        const struct tenants_options o = { .server = server, .configs = configs };
        struct tenants *ret = NULL;
        struct error err;

        ck_assert_msg(tenants_open(&o, &ret, &err) == ST_OK, "%s", err.text);
        return ret;
}

/* "a": selected; "403": refused. */
static void expect_choice(struct tenants *t, const char *says, const char *header, enum http_tenancy tenancy,
                          const char *wanted)
{
        const struct tenant_request r = { .header = header, .token_tenant = says, .tenancy = tenancy };
        struct tenant *tenant = NULL;
        struct error err;
        char got[TENANT_NAME_SIZE];
        unsigned code = tenants_choose(t, &r, &tenant, &err);

        if (code)
                snprintf(got, sizeof got, "%u", code);
        else
                snprintf(got, sizeof got, "%s", tenant->name);
        ck_assert_msg(strcmp(got, wanted) == 0, "token %s, header %s: got %s, want %s", says ? says : "(none)",
                      header ? header : "(none)", got, wanted);
}

START_TEST(tenant_is_selected_by_token_or_permitted_header)
{
        static const struct {
                const char *says, *header, *own, *whole;
        } cases[] = {
                { NULL, NULL, TENANT_DEFAULT, TENANT_DEFAULT },
                { NULL, "a", "a", "a" },
                { NULL, "c", "404", "404" },
                { NULL, "../a", "400", "400" },
                { NULL, "", "400", "400" },
                { "", NULL, TENANT_DEFAULT, TENANT_DEFAULT },
                { "", TENANT_DEFAULT, TENANT_DEFAULT, TENANT_DEFAULT },
                { "", "a", "403", "403" },
                { "a", NULL, "a", "403" },
                { "a", "a", "a", "403" },
                { "a", "b", "403", "403" },
                { "a", "c", "403", "403" },
                { "a", TENANT_DEFAULT, "403", "403" },
                { "c", NULL, "403", "403" }, /* no longer configured */
                { TENANT_DEFAULT, NULL, TENANT_DEFAULT, "403" },
                { "*", NULL, TENANT_DEFAULT, TENANT_DEFAULT },
                { "*", "b", "b", "b" },
                { "*", "c", "404", "404" },
        };
        struct tenant_configs *c = parse_tenants("a\nb\n");
        struct server_options server = { .dir = folder, .roles = ROLE_ALL, .flush_interval_ms = UINT64_MAX };
        char command[64];
        struct tenants *t;

        temporary_dir_create(folder, "tenants");
        t = open_tenants_of(c, &server);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                expect_choice(t, cases[i].says, cases[i].header, TENANCY_OWN, cases[i].own);
                expect_choice(t, cases[i].says, cases[i].header, TENANCY_SPACE, cases[i].own);
                expect_choice(t, cases[i].says, cases[i].header, TENANCY_WHOLE, cases[i].whole);
        }
        tenants_close(t);
        t = open_tenants_of(NULL, &server); /* without tenants the header may contain anything */
        expect_choice(t, NULL, "../a", TENANCY_OWN, TENANT_DEFAULT);
        expect_choice(t, "", "a", TENANCY_WHOLE, TENANT_DEFAULT);
        tenants_close(t);
        tenant_configs_destroy(c);
        snprintf(command, sizeof command, "rm -rf %s", folder);
        ck_assert_int_eq(system(command), 0);
}
END_TEST

START_TEST(stores_share_the_limits_of_one)
{
        struct tenant_configs *c = parse_tenants("a\nb\nc\n");
        struct server_options server = { .dir = folder, .roles = ROLE_ALL, .flush_interval_ms = UINT64_MAX };
        char command[64];
        struct tenants *t;

        temporary_dir_create(folder, "tenants");
        t = open_tenants_of(NULL, &server);
        ck_assert_uint_eq(tenants_get_stores(t)[0]->options.flush_bytes, MiB(64));
        ck_assert_uint_eq(tenants_get_stores(t)[0]->options.max_queued_bytes, MiB(512));
        tenants_close(t);
        t = open_tenants_of(c, &server);
        for (size_t i = 0; i < 4; i++) {
                ck_assert_uint_eq(tenants_get_stores(t)[i]->options.flush_bytes, MiB(16));
                ck_assert_uint_eq(tenants_get_stores(t)[i]->options.max_queued_bytes, MiB(128));
        }
        tenants_close(t);
        tenant_configs_destroy(c);
        snprintf(command, sizeof command, "rm -rf %s", folder);
        ck_assert_int_eq(system(command), 0);
}
END_TEST

START_TEST(rules_outlive_a_reload_that_does_not_change_them)
{
        static const char *const rules[] = { "{env=\"dev\"},age=3d" };
        struct server_options server = { .roles = ROLE_ALL,
                                         .dir = folder,
                                         .flush_interval_ms = UINT64_MAX,
                                         .sample_rules = rules,
                                         .sample_rule_count = 1 };
        struct tenants_reload changes;
        struct store_limits *limits;
        char command[64];
        struct tenants *t;
        struct error err;

        temporary_dir_create(folder, "tenants");
        t = open_tenants_of(NULL, &server);
        for (unsigned i = 0; i < 2; i++)
                ck_assert_int_eq(tenants_reload(t, &server, NULL, &changes, &err), ST_OK);
        limits = store_limits_acquire(tenants_get_stores(t)[0]);
        ck_assert_uint_eq(limits->limits.rule_count, 1);
        ck_assert_uint_eq(limits->limits.rules[0].age_s, 3 * 86400);
        store_limits_release(limits);
        tenants_close(t);
        snprintf(command, sizeof command, "rm -rf %s", folder);
        ck_assert_int_eq(system(command), 0);
}
END_TEST

START_TEST(request_bodies_of_a_tenant_are_limited)
{
        struct tenant_configs *c = parse_tenants("a\nb\n");
        struct server_options server = { .dir = folder, .roles = ROLE_ALL, .flush_interval_ms = UINT64_MAX };
        struct tenant *a = NULL, *b = NULL;
        struct tenants *t;
        struct error err;
        char command[64];
        unsigned taken = 0;

        temporary_dir_create(folder, "tenants");
        ck_assert_int_eq(memory_budget_set_limit(LIMIT_MEMORY_LEAST_BYTES, &err), ST_OK);
        t = open_tenants_of(c, &server);
        ck_assert_uint_eq(tenants_choose(t, &(struct tenant_request){ "a", NULL, TENANCY_OWN }, &a, &err), 0);
        ck_assert_uint_eq(tenants_choose(t, &(struct tenant_request){ "b", NULL, TENANCY_OWN }, &b, &err), 0);
        while (taken < 10000 && !tenants_admit(t, a, SCOPE_INGEST, 0, &err)) /* of unknown size */
                taken++;
        ck_assert_uint_gt(taken, 0);
        ck_assert_uint_le(taken, memory_use_ceiling(MEMORY_INGEST) / MiB(1));
        ck_assert_ptr_nonnull(strstr(err.text, "share of the memory"));
        ck_assert_uint_eq(tenants_admit(t, a, SCOPE_READ, 0, &err), 0);
        tenants_finish(t, a, SCOPE_READ, 0, 0);
        ck_assert_uint_eq(tenants_admit(t, b, SCOPE_INGEST, 0, &err), 0);
        tenants_finish(t, b, SCOPE_INGEST, 0, 100);
        while (taken--)
                tenants_finish(t, a, SCOPE_INGEST, 0, 100);
        /* A request refused with 413 does not count. */
        ck_assert_uint_eq(tenants_admit(t, a, SCOPE_INGEST, UINT64_MAX / 2, &err), 0);
        ck_assert_uint_eq(tenants_admit(t, a, SCOPE_INGEST, 100, &err), 0);
        tenants_finish(t, a, SCOPE_INGEST, 100, 100);
        tenants_finish(t, a, SCOPE_INGEST, UINT64_MAX / 2, 0);
        ck_assert_uint_eq(tenants_admit(t, a, SCOPE_INGEST, 100, &err), 0);
        tenants_finish(t, a, SCOPE_INGEST, 100, 100);
        ck_assert_uint_eq(atomic_load(&a->arriving_bytes), 0);
        tenants_close(t);
        tenant_configs_destroy(c);
        snprintf(command, sizeof command, "rm -rf %s", folder);
        ck_assert_int_eq(system(command), 0);
}
END_TEST

TEST_SUITE("tenants", settings_of_one_tenant_are_combined, malformed_line_is_reported, names_are_valid_folder_names,
           tenant_is_selected_by_token_or_permitted_header, stores_share_the_limits_of_one,
           rules_outlive_a_reload_that_does_not_change_them, request_bodies_of_a_tenant_are_limited)
