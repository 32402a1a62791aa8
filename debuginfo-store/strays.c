/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo-store/strays.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "debuginfo-store/store_internal.h"

struct sweep {
        struct debuginfo_store *store;
        bool dry_run;
        uint64_t *count, *bytes;
        struct error *err;
};

static DIR *open_dir(int parent, const char *name)
{
        int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        DIR *d = fd < 0 ? NULL : fdopendir(fd);

        if (!d && fd >= 0)
                close(fd);
        return d;
}

static bool object_kind_of(const char *file, enum object_kind *ret)
{
        const char *dash = strchr(file, '-'), *end = strrchr(file, '.');
        char kind[16];

        if (!dash || !end || strcmp(end, ".zst") != 0 || (size_t)(dash - file) >= sizeof kind)
                return false;
        snprintf(kind, sizeof kind, "%.*s", (int)(dash - file), file);
        return object_kind_parse(kind, ret);
}

/* Nothing is published meanwhile, so a file without a record will not get one. */
static enum status look_at(struct sweep *s, int dir, const struct build_id *id, const char *file)
{
        _cleanup_free_ char *path = NULL;
        struct stored_object o;
        enum object_kind kind;
        struct stat info;
        enum status st;

        if (!object_kind_of(file, &kind) || fstatat(dir, file, &info, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(info.st_mode))
                return ST_OK;
        st = meta_get(s->store->meta, id, kind, &o, s->err);
        if (st && st != ST_NOT_FOUND)
                return st;
        if (!st) {
                path = object_path(s->store, &o);
                if (!path)
                        return error_no_memory(s->err);
                if (strcmp(path_base(path), file) == 0)
                        return ST_OK;
        }
        ++*s->count;
        *s->bytes += (uint64_t)info.st_size;
        if (!s->dry_run && unlinkat(dir, file, 0) < 0)
                return error_os(s->err, errno, "cannot remove '%s', which no record names", file);
        return ST_OK;
}

/* Those of one build-id. */
static enum status sweep_object(struct sweep *s, int parent, const char *prefix, const char *rest)
{
        char hex[BUILD_ID_HEX_MAX];
        struct build_id id;
        _cleanup_closedir_ DIR *d = NULL;
        struct dirent *e;
        enum status st = ST_OK;
        int n = snprintf(hex, sizeof hex, "%s%s", prefix, rest);

        if (n < 0 || (size_t)n >= sizeof hex || !build_id_from_hex(&id, hex, (size_t)n))
                return ST_OK;
        d = open_dir(parent, rest);
        if (!d)
                return errno == ENOENT || errno == ENOTDIR ? ST_OK : error_os(s->err, errno, "cannot read the folder of %s", hex);
        pthread_mutex_lock(&s->store->publish);
        while (!st && (e = readdir(d)))
                if (e->d_name[0] != '.')
                        st = look_at(s, dirfd(d), &id, e->d_name);
        if (!s->dry_run)
                unlinkat(parent, rest, AT_REMOVEDIR); /* refused unless empty */
        pthread_mutex_unlock(&s->store->publish);
        return st;
}

enum status strays_sweep(struct debuginfo_store *store, bool dry_run, uint64_t *count_ret, uint64_t *bytes_ret,
                         struct error *err)
{
        struct sweep s = { .store = store, .dry_run = dry_run, .count = count_ret, .bytes = bytes_ret, .err = err };
        _cleanup_free_ char *path = path_join(store->dir, "objects");
        _cleanup_closedir_ DIR *top = path ? opendir(path) : NULL;
        struct dirent *e;
        enum status st = ST_OK;

        *count_ret = *bytes_ret = 0;
        if (!path)
                return error_no_memory(err);
        if (!top)
                return errno == ENOENT ? ST_OK : error_os(err, errno, "cannot read '%s'", path);
        while (!st && (e = readdir(top))) {
                _cleanup_closedir_ DIR *d = strlen(e->d_name) == 2 ? open_dir(dirfd(top), e->d_name) : NULL;
                struct dirent *o;

                while (d && !st && (o = readdir(d)))
                        if (o->d_name[0] != '.')
                                st = sweep_object(&s, dirfd(d), e->d_name, o->d_name);
        }
        return st;
}
