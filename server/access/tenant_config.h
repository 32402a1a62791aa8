/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_ACCESS_TENANT_CONFIG_H
#define CAIRN_SERVER_ACCESS_TENANT_CONFIG_H

/**
 * @file
 * Tenants file: lines "NAME", or "NAME SETTING VALUE" where VALUE is the rest of the line:
 *
 *     team-a
 *     team-a retain age=30d,size=200G
 *     team-a retain {env="dev"},age=3d
 *     team-a rate 100
 *     team-a bytes 10G
 *     team-a debuginfo own
 *
 * A name must satisfy tenant_name_is_valid(). retain is a rule of query/engine/sample_rules.h; rate limits the tenant's
 * requests per second, bytes the data that it sends per day (K, M, G, T); debuginfo is "shared" (the default) or "own":
 * server/core/debuginfo_space.h. A line that begins with '#' is a comment.
 *
 * Threads: any, except load and destroy.
 */
#include <stdbool.h>

#include "common/files/tenant_name.h"
#include "query/engine/sample_rules.h"
#include "server/access/rate_limit.h"

struct tenant_config {
        char name[TENANT_NAME_SIZE];
        bool has_rules; /* else the rules of the service apply */
        bool has_own_debuginfo;
        struct sample_rules rules;
        struct rate_limit_config limits;
};

struct tenant_configs {
        struct tenant_config *items; /* in the order of the file; LIMIT_TENANTS are allocated */
        size_t count;
};

/** ST_BAD_DATA, ST_USAGE or ST_TOO_BIG name the line. A file without a tenant is ST_BAD_DATA too. */
enum status tenant_configs_load(const char *path, struct tenant_configs **ret, struct error *err) MUST_CHECK;
/** The same for a text, which is modified. */
enum status tenant_configs_parse(char *text, const char *path, struct tenant_configs **ret,
                                 struct error *err) MUST_CHECK;
void tenant_configs_destroy(struct tenant_configs *c); /* takes NULL */

/** The configuration of a tenant other than the default one; NULL: none, also when c is NULL. Borrowed. */
struct tenant_config *tenant_configs_find(const struct tenant_configs *c, const char *name);

/** Whether the tenant exists; the default one always does when c is not NULL. */
bool tenant_configs_have(const struct tenant_configs *c, const char *name);

#endif
