/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_FILES_TENANT_NAME_H
#define CAIRN_COMMON_FILES_TENANT_NAME_H

/**
 * @file
 * Names of tenants, and the paths of their samples in a data directory. docs/internals/tenants.md
 */
#include <stdbool.h>

#define TENANT_NAME_SIZE 33 /* including the NUL */
/* The tenant of requests without a tenant name; its paths are those of a service without tenants. Pyroscope's name. */
#define TENANT_DEFAULT "anonymous"
/* Header with the tenant of a request, in HTTP and (in lower case) gRPC, as in Grafana and Pyroscope. */
#define TENANT_HEADER "X-Scope-OrgID"

/** Whether name is 1 to 32 of a-z, 0-9, '-' and '_', and does not begin with '-'. */
bool tenant_name_is_valid(const char *name);

/** The folder of a tenant (NULL: the default one) in a data directory; owned, NULL when out of memory. */
char *tenant_data_path(const char *data, const char *name);

/** The same below the address of an object store, which may end with slashes: "s3://BUCKET/PREFIX/tenants/NAME". */
char *tenant_store_url(const char *store, const char *name);
/** The profile store of a tenant, likewise. */
char *tenant_profiles_path(const char *data, const char *name);

#endif
