/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_TENANT_NAME_H
#define CAIRN_COMMON_TENANT_NAME_H

/**
 * @file
 * Names of tenants, and where their samples are in a data directory. docs/internals/tenants.md
 */
#include <stdbool.h>

#define TENANT_NAME_SIZE 33 /* with the NUL */
/* The tenant of requests that name none: its samples are where they are without tenants. Pyroscope's name for it. */
#define TENANT_DEFAULT "anonymous"
/* The header that names the tenant of a request, in HTTP and (in lower case) gRPC: Grafana's and Pyroscope's. */
#define TENANT_HEADER "X-Scope-OrgID"

/** Whether name is 1 to 32 of a-z, 0-9, '-' and '_', and does not begin with '-'. */
bool tenant_name_is_valid(const char *name);

/** The folder of a tenant (NULL: the default one) in a data directory; owned, NULL without memory. */
char *tenant_data_path(const char *data, const char *name);
/** Its profile store. */
char *tenant_profiles_path(const char *data, const char *name);

#endif
