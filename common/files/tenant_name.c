/* SPDX-License-Identifier: Apache-2.0 */
#include "common/files/tenant_name.h"

#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/files/file.h"

bool tenant_name_is_valid(const char *name)
{
        size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_");

        return n > 0 && n < TENANT_NAME_SIZE && !name[n] && name[0] != '-';
}

char *tenant_data_path(const char *data, const char *name)
{
        char *path;

        if (!name || strcmp(name, TENANT_DEFAULT) == 0)
                return strdup(data);
        return asprintf(&path, "%s/tenants/%s", data, name) < 0 ? NULL : path;
}

char *tenant_store_url(const char *store, const char *name)
{
        size_t n = strlen(store);
        _cleanup_free_ char *root = NULL;

        while (n && store[n - 1] == '/')
                n--;
        root = strndup(store, n);
        return root ? tenant_data_path(root, name) : NULL;
}

char *tenant_profiles_path(const char *data, const char *name)
{
        _cleanup_free_ char *folder = tenant_data_path(data, name);

        return folder ? path_join(folder, "profiles") : NULL;
}
