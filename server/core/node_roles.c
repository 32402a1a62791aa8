/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/node_roles.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "common/metrics.h"

#define ROLE_COUNT 6

static const char *const names[ROLE_COUNT] = { "ingest", "query", "symbolize", "debuginfod", "maintain", "gateway" };

#define NODE_ROLE(name) METRIC_GAUGE("cairn_node_role", "1: the service has the role (--role).", "role=\"" name "\"")
static struct metric metrics[ROLE_COUNT] = { NODE_ROLE("ingest"),     NODE_ROLE("query"),    NODE_ROLE("symbolize"),
                                             NODE_ROLE("debuginfod"), NODE_ROLE("maintain"), NODE_ROLE("gateway") };

static unsigned find_role(const char *name, size_t n)
{
        for (unsigned i = 0; i < ROLE_COUNT; i++)
                if (strlen(names[i]) == n && memcmp(names[i], name, n) == 0)
                        return 1u << i;
        return 0;
}

enum status node_roles_parse(const char *text, unsigned *ret, struct error *err)
{
        unsigned roles = 0;

        for (const char *p = text;; p++) {
                size_t n = strcspn(p, ",");
                unsigned role = find_role(p, n);

                if (!role)
                        return error_set(
                                err, ST_USAGE,
                                "--role: '%.*s' is none of ingest, query, symbolize, debuginfod, maintain, gateway",
                                (int)(n < 40 ? n : 40), p);
                if (roles & role)
                        return error_set(err, ST_USAGE, "--role: '%.*s' is given twice", (int)n, p);
                roles |= role;
                p += n;
                if (!*p)
                        break;
        }
        if (roles & ROLE_GATEWAY && roles != ROLE_GATEWAY)
                return error_set(err, ST_USAGE, "--role: a gateway has no other role");
        *ret = roles;
        return ST_OK;
}

const char *node_roles_write(unsigned roles, char ret[static NODE_ROLES_TEXT])
{
        size_t n = 0;

        ret[0] = 0;
        for (unsigned i = 0; i < ROLE_COUNT; i++)
                if (roles & 1u << i)
                        n += (size_t)snprintf(ret + n, NODE_ROLES_TEXT - n, "%s%s", n ? "," : "", names[i]);
        assert(n < NODE_ROLES_TEXT);
        return ret;
}

const char *node_role_name(enum node_role role)
{
        for (unsigned i = 0; i < ROLE_COUNT; i++)
                if (role == 1u << i)
                        return names[i];
        assert(false);
        return "";
}

void node_roles_publish(unsigned roles)
{
        for (unsigned i = 0; i < ROLE_COUNT; i++) {
                metric_set(&metrics[i], (roles & 1u << i) != 0);
                metric_register(&metrics[i]);
        }
}
