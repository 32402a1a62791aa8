/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdlib.h>

#include "http/http_server.h"
#include "server/core/node_roles.h"
#include "server/core/route_tables.h"
#include "server/core/server_internal.h"
#include "tests/support/suite.h"

START_TEST(roles_are_written_as_they_are_parsed)
{
        char text[NODE_ROLES_TEXT];
        unsigned parsed;

        for (unsigned roles = 1; roles <= ROLE_ALL; roles++) {
                ck_assert_int_eq(node_roles_parse(node_roles_write(roles, text), &parsed, NULL), ST_OK);
                ck_assert_uint_eq(parsed, roles);
        }
        ck_assert_int_eq(node_roles_parse("gateway", &parsed, NULL), ST_OK);
        ck_assert_uint_eq(parsed, ROLE_GATEWAY);
        ck_assert_str_eq(node_roles_write(0, text), "");
        ck_assert_str_eq(node_roles_write(ROLE_ANY, text), "ingest,query,symbolize,debuginfod,maintain,gateway");
        ck_assert_str_eq(node_roles_write(ROLE_ALL, text), "ingest,query,symbolize,debuginfod,maintain");
        ck_assert_int_eq(node_roles_parse("maintain,query", &parsed, NULL), ST_OK);
        ck_assert_str_eq(node_roles_write(parsed, text), "query,maintain");
        ck_assert_str_eq(node_role_name(ROLE_DEBUGINFOD), "debuginfod");
}
END_TEST

START_TEST(other_names_are_refused)
{
        static const char *const wrong[] = {
                "",        ",",  "ingest,",  ",ingest",     "ingest,,query", "Ingest",
                "ingest ", "in", "ingester", "query,query", "all",           "gateway,query"
        };
        unsigned roles = 77;

        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
                ck_assert_msg(node_roles_parse(wrong[i], &roles, NULL) == ST_USAGE, "%s", wrong[i]);
        ck_assert_uint_eq(roles, 77);
}
END_TEST

/* A refused route needs no token, so that the answer says what is wrong, and occupies no thread of another role. */
START_TEST(routes_of_other_roles_have_the_pool_of_status_requests)
{
        struct http_route *all, *own;
        size_t count, own_count, refused = 0;

        ck_assert_int_eq(routes_join(false, ROLE_ALL, &all, &count, NULL), ST_OK);
        ck_assert_int_eq(routes_join(false, ROLE_INGEST, &own, &own_count, NULL), ST_OK);
        ck_assert_uint_eq(count, own_count);
        for (size_t i = 0; i < count; i++) {
                ck_assert_str_eq(all[i].path, own[i].path);
                if (all[i].handle == own[i].handle)
                        continue;
                refused++;
                ck_assert_uint_eq(own[i].pool, POOL_STATUS);
                ck_assert_int_eq(own[i].scope, SCOPE_NONE);
                ck_assert_ptr_nonnull(own[i].begin);
        }
        ck_assert_uint_gt(refused, 60);
        ck_assert_uint_lt(refused, count);
        free(all);
        free(own);
}
END_TEST

TEST_SUITE("node_roles", roles_are_written_as_they_are_parsed, other_names_are_refused,
           routes_of_other_roles_have_the_pool_of_status_requests)
