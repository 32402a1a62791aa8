/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/delta/delta_place.h"

#include <string.h>

enum status delta_place_init(struct delta_place *p, struct storage *s, const char *folder, struct error *err)
{
        *p = (struct delta_place){ .storage = s };
        if (asprintf(&p->name, "%s/%s%s_delta_log", storage_root(s), folder, *folder ? "/" : "") < 0) {
                p->name = NULL;
                return error_no_memory(err);
        }
        p->key = p->name + strlen(storage_root(s)) + 1;
        return ST_OK;
}

void delta_place_deinit(struct delta_place *p)
{
        free(p->name);
        *p = (struct delta_place){ 0 };
}

char *delta_make_log_key(const struct delta_place *p, const char *name)
{
        return path_join(p->key, name);
}

char *delta_make_version_key(const struct delta_place *p, int64_t version, const char *suffix)
{
        char *key;

        return asprintf(&key, "%s/%0*jd%s", p->key, DELTA_VERSION_DIGITS, (intmax_t)version, suffix) < 0 ? NULL : key;
}

int64_t delta_parse_version(const char *name, const char **suffix_ret)
{
        uint64_t v = 0;

        for (size_t i = 0; i < DELTA_VERSION_DIGITS; i++) {
                if (name[i] < '0' || name[i] > '9' || v > (uint64_t)INT64_MAX / 10 - 1)
                        return -1;
                v = v * 10 + (uint64_t)(name[i] - '0');
        }
        *suffix_ret = name + DELTA_VERSION_DIGITS;
        return (int64_t)v;
}

struct log_visit {
        size_t prefix_size;
        storage_visit *visit;
        void *context;
};

/* Other programs keep files in subfolders. */
static enum status visit_log_file(void *context, const char *key, const struct storage_info *info, struct error *err)
{
        const struct log_visit *v = context;
        const char *name = key + v->prefix_size;

        return strchr(name, '/') ? ST_OK : v->visit(v->context, name, info, err);
}

enum status delta_list_log(const struct delta_place *p, storage_visit *visit, void *context, struct error *err)
{
        _cleanup_free_ char *folder = delta_make_log_key(p, "");
        struct log_visit v = { .visit = visit, .context = context };

        if (!folder)
                return error_no_memory(err);
        v.prefix_size = strlen(folder);
        return storage_list(p->storage, folder, "", visit_log_file, &v, err);
}
