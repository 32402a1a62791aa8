/* SPDX-License-Identifier: Apache-2.0 */
#include "common/lmdb_new.h"

#include <lmdb.h>

#include "common/cleanup.h"
#include "common/file.h"

static enum status make_env(const char *dir, struct error *err)
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

enum status lmdb_make_new(const char *dir, struct error *err)
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
                st = make_env(making, err);
        if (!st && rename(made, path) < 0)
                st = error_os(err, errno, "cannot rename '%s' to '%s'", made, path);
        if (!st)
                st = file_sync_parent(path, err);
        return st ? st : file_remove_tree(making, err);
}
