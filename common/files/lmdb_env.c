/* SPDX-License-Identifier: Apache-2.0 */
#include "common/files/lmdb_env.h"

#include <errno.h>
#include <lmdb.h>
#include <sys/stat.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/limits.h"

size_t lmdb_map_bytes(const char *variable, size_t normal_bytes)
{
        const char *text = getenv(variable);
        char *end;
        unsigned long long mib;

        if (!text || *text < '0' || *text > '9')
                return normal_bytes;
        errno = 0;
        mib = strtoull(text, &end, 10);
        return errno || *end || !mib || mib > SIZE_MAX / MiB(1) ? normal_bytes : (size_t)mib * MiB(1);
}

enum status lmdb_set_error(struct error *err, int rc, const struct lmdb_map *map, const char *what)
{
        switch (rc) {
        case MDB_SUCCESS:
                return ST_OK;
        case MDB_NOTFOUND:
                return error_set(err, ST_NOT_FOUND, "%s: not found", what);
        case MDB_MAP_FULL:
                return error_no_space(
                        err,
                        "%s: its map of %zu MiB is full; set %s to more, see that 'ulimit -v' allows it, and restart",
                        what, map->bytes >> 20, map->variable);
        case MDB_TXN_FULL:
                return error_set(err, ST_TOO_BIG, "%s: %s", what, mdb_strerror(rc));
        case MDB_READERS_FULL:
                return error_set(err, ST_BUSY, "%s: %s", what, mdb_strerror(rc));
        case MDB_PANIC:
                return error_set(err, ST_OS, "%s, because an earlier write failed; restart the service", what);
        case EIO: /* LMDB's code for a short write */
                return error_os(err, rc, "%s: the disk is full or failing; make room there and try again", what);
        case MDB_CORRUPTED:
        case MDB_PAGE_NOTFOUND:
        case MDB_INVALID:
        case MDB_VERSION_MISMATCH:
        case MDB_INCOMPATIBLE:
                return error_set(err, ST_BAD_DATA, "%s: %s", what, mdb_strerror(rc));
        default:
                if (rc > 0)
                        return error_os(err, rc, "%s", what);
                return error_set(err, ST_OS, "%s: %s", what, mdb_strerror(rc));
        }
}

static enum status create_empty_env(const char *dir, struct error *err)
{
        MDB_env *env = NULL;
        int rc = mdb_env_create(&env);

        if (!rc)
                rc = mdb_env_open(env, dir, 0, 0644);
        if (!rc)
                rc = mdb_env_sync(env, 1);
        if (env)
                mdb_env_close(env);
        if (rc > 0)
                return error_os(err, rc, "cannot make a database in '%s'", dir);
        return rc ? error_set(err, ST_OS, "cannot make a database in '%s': %s", dir, mdb_strerror(rc)) : ST_OK;
}

enum status lmdb_create_env(const char *dir, struct error *err)
{
        _cleanup_free_ char *path = path_join(dir, "data.mdb"), *making = path_join(dir, "making");
        _cleanup_free_ char *made = making ? path_join(making, "data.mdb") : NULL;
        enum status st;

        if (!path || !made)
                return error_no_memory(err);
        if (access(path, F_OK) == 0)
                return ST_OK;
        st = file_remove_tree(making, err);
        if (!st)
                st = file_make_dirs(making, err);
        if (!st)
                st = create_empty_env(making, err);
        if (!st && rename(made, path) < 0)
                st = error_os(err, errno, "cannot rename '%s' to '%s'", made, path);
        if (!st)
                st = file_sync_parent(path, err);
        return st ? st : file_remove_tree(making, err);
}

static int copy_env(const char *from_dir, const char *to_dir)
{
        MDB_env *env = NULL;
        int rc = mdb_env_create(&env);

        if (!rc)
                rc = mdb_env_open(env, from_dir, MDB_RDONLY | MDB_NOTLS, 0644);
        if (!rc)
                rc = mdb_env_copy2(env, to_dir, 0);
        if (env)
                mdb_env_close(env);
        return rc;
}

enum status lmdb_copy_env(const char *from_dir, const char *to_dir, uint64_t *bytes_ret, struct error *err)
{
        _cleanup_free_ char *from = path_join(from_dir, "data.mdb"), *to = path_join(to_dir, "data.mdb");
        struct stat info;
        int rc;

        if (!from || !to)
                return error_no_memory(err);
        if (access(from, F_OK))
                return error_set(err, ST_NOT_FOUND, "no database in '%s'", from_dir);
        rc = copy_env(from_dir, to_dir);
        if (rc > 0)
                return error_os(err, rc, "cannot copy the database '%s' to '%s'", from, to);
        if (rc)
                return error_set(err, ST_BAD_DATA, "cannot copy the database '%s': %s", from, mdb_strerror(rc));
        if (stat(to, &info))
                return error_os(err, errno, "cannot open '%s'", to);
        *bytes_ret = (uint64_t)info.st_size;
        return ST_OK;
}

static int get_env_usage(MDB_env *env, const char *dir, struct lmdb_usage *ret)
{
        MDB_envinfo info;
        MDB_stat stat;
        int rc = mdb_env_open(env, dir, MDB_RDONLY | MDB_NOLOCK | MDB_NOTLS, 0644);

        if (!rc)
                rc = mdb_env_info(env, &info);
        if (!rc)
                rc = mdb_env_stat(env, &stat);
        if (!rc)
                *ret = (struct lmdb_usage){ info.me_mapsize, ((uint64_t)info.me_last_pgno + 1) * stat.ms_psize };
        return rc;
}

enum status lmdb_measure_env(const char *dir, struct lmdb_usage *ret, struct error *err)
{
        MDB_env *env = NULL;
        int rc = mdb_env_create(&env);

        if (!rc)
                rc = get_env_usage(env, dir, ret);
        if (env)
                mdb_env_close(env);
        if (rc == ENOENT)
                return error_set(err, ST_NOT_FOUND, "no database in '%s'", dir);
        if (rc > 0)
                return error_os(err, rc, "cannot open the database in '%s'", dir);
        return rc ? error_set(err, ST_BAD_DATA, "cannot open the database in '%s': %s", dir, mdb_strerror(rc)) : ST_OK;
}
