/* SPDX-License-Identifier: Apache-2.0 */
#include "scan/index.h"

#include <string.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "common/hash.h"
#include "common/limits.h"
#include "common/lmdb_map.h"
#include "scan/index_internal.h"

#define MAP_BYTES GiB(64)
#define VERSION "2"

enum status scan_lmdb_error(struct error *err, int rc, const char *what)
{
        if (rc == MDB_NOTFOUND)
                return error_set(err, ST_NOT_FOUND, "%s: not found", what);
        if (rc == EIO) /* what LMDB makes of a short write */
                return error_os(err, rc, "%s: the disk is full, make room there and try again, or it fails", what);
        if (rc > 0)
                return error_os(err, rc, "%s", what);
        if (rc == MDB_MAP_FULL)
                return lmdb_map_full(err, lmdb_map_bytes(LMDB_MAP_SCAN, MAP_BYTES), LMDB_MAP_SCAN, what);
        return error_set(err, ST_BAD_DATA, "%s: %s", what, mdb_strerror(rc));
}

void scan_index_close(struct scan_index *ix)
{
        if (!ix)
                return;
        if (ix->env)
                mdb_env_close(ix->env);
        free(ix);
}

static void cleanup_index(struct scan_index **ix)
{
        scan_index_close(*ix);
}

/* MDB_VERSION_MISMATCH when the databases are of another form. */
static int open_databases(struct scan_index *ix, MDB_txn *txn)
{
        const struct {
                const char *name;
                MDB_dbi *dbi;
        } all[] = { { "paths", &ix->paths }, { "files", &ix->files }, { "contents", &ix->contents },
                    { "objects", &ix->objects }, { "sources", &ix->sources }, { "sections", &ix->sections } };
        MDB_val key = { 7, (void *)(uintptr_t) "version" }, ours = { sizeof VERSION, (void *)(uintptr_t)VERSION }, value;
        MDB_cursor *cursor;
        MDB_dbi meta;
        int rc = mdb_dbi_open(txn, "meta", MDB_CREATE, &meta);

        if (!rc)
                rc = mdb_get(txn, meta, &key, &value);
        if (!rc && (value.mv_size != ours.mv_size || memcmp(value.mv_data, ours.mv_data, ours.mv_size) != 0))
                return MDB_VERSION_MISMATCH;
        if (rc == MDB_NOTFOUND)
                rc = mdb_put(txn, meta, &key, &ours, 0);
        for (size_t i = 0; !rc && i < sizeof all / sizeof *all; i++)
                rc = mdb_dbi_open(txn, all[i].name, MDB_CREATE, all[i].dbi);
        if (rc || (rc = mdb_cursor_open(txn, ix->files, &cursor)))
                return rc;
        rc = mdb_cursor_get(cursor, &key, &value, MDB_LAST);
        atomic_store(&ix->next_number, rc || key.mv_size != 4 ? 1 : scan_get_be32(key.mv_data) + 1);
        mdb_cursor_close(cursor);
        return rc == MDB_NOTFOUND ? 0 : rc;
}

static int open_environment(const char *dir, struct scan_index *ix)
{
        MDB_txn *txn;
        int rc = mdb_env_create(&ix->env);

        if (!rc)
                rc = mdb_env_set_mapsize(ix->env, lmdb_map_bytes(LMDB_MAP_SCAN, MAP_BYTES));
        if (!rc)
                rc = mdb_env_set_maxdbs(ix->env, 8);
        if (!rc)
                rc = mdb_env_set_maxreaders(ix->env, 1024);
        if (!rc)
                rc = mdb_env_open(ix->env, dir, MDB_NOTLS, 0644);
        if (!rc)
                rc = mdb_txn_begin(ix->env, NULL, 0, &txn);
        if (rc)
                return rc;
        rc = open_databases(ix, txn);
        if (!rc)
                return mdb_txn_commit(txn);
        mdb_txn_abort(txn);
        return rc;
}

enum status scan_index_open(const char *dir, struct scan_index **ret, struct error *err)
{
        for (unsigned tries = 0;; tries++) {
                _cleanup_(cleanup_index) struct scan_index *ix = calloc(1, sizeof *ix);
                enum status st = ix ? file_make_dirs(dir, err) : error_no_memory(err);
                int rc;

                if (st)
                        return st;
                rc = open_environment(dir, ix);
                if (!rc) {
                        *ret = steal_ptr(ix);
                        return ST_OK;
                }
                if (rc > 0 || tries > 0) {
                        scan_lmdb_error(err, rc, dir);
                        return error_prefix(err, ST_OS, "cannot open the scan index");
                }
                st = file_remove_tree(dir, err); /* of another version or damaged: scanned anew */
                if (st)
                        return st;
        }
}

struct scan_file scan_file_of(const struct stat *info)
{
        return (struct scan_file){ .mtime_ns = (int64_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec,
                                   .size_bytes = (uint64_t)info->st_size, .inode = info->st_ino };
}

bool scan_file_is(const struct scan_file *f, const struct stat *info)
{
        struct scan_file now = scan_file_of(info);

        return f->mtime_ns == now.mtime_ns && f->size_bytes == now.size_bytes && f->inode == now.inode;
}

static enum status begin(struct scan_index *ix, MDB_txn **ret, struct error *err)
{
        int rc = mdb_txn_begin(ix->env, NULL, MDB_RDONLY, ret);

        return rc ? scan_lmdb_error(err, rc, "cannot read the scan index") : ST_OK;
}

enum status scan_index_is_known(struct scan_index *ix, const char *path, const struct stat *info, bool *ret, struct error *err)
{
        struct hash128 hash = hash128(path, strlen(path));
        MDB_val key = { sizeof hash.bytes, hash.bytes }, value;
        struct scan_file file;
        MDB_txn *txn;
        enum status st = begin(ix, &txn, err);
        int rc;

        if (st)
                return st;
        rc = mdb_get(txn, ix->paths, &key, &value);
        if (!rc)
                rc = mdb_get(txn, ix->files, &value, &value);
        *ret = !rc && !scan_file_decode(&value, &file, NULL) && strcmp(file.path, path) == 0 && scan_file_is(&file, info);
        mdb_txn_abort(txn);
        return rc && rc != MDB_NOTFOUND ? scan_lmdb_error(err, rc, "cannot read the scan index") : ST_OK;
}

enum status scan_index_next_files(struct scan_index *ix, uint32_t after, struct scan_numbered *ret, size_t n, size_t *count_ret,
                                  struct error *err)
{
        uint8_t bytes[4];
        MDB_val key = { sizeof bytes, bytes }, value;
        MDB_cursor *cursor;
        MDB_txn *txn;
        enum status st = begin(ix, &txn, err);
        size_t count = 0;
        int rc;

        if (st)
                return st;
        scan_put_be32(bytes, after + 1);
        rc = mdb_cursor_open(txn, ix->files, &cursor);
        if (!rc) {
                for (rc = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE); !rc && !st && count < n;
                     rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
                        struct scan_file file;

                        st = scan_file_decode(&value, &file, err);
                        if (st)
                                break;
                        ret[count] = (struct scan_numbered){ scan_get_be32(key.mv_data), strdup(file.path) };
                        st = ret[count].path ? ST_OK : error_no_memory(err);
                        count += !st;
                }
                mdb_cursor_close(cursor);
        }
        mdb_txn_abort(txn);
        if (!st && rc && rc != MDB_NOTFOUND)
                st = scan_lmdb_error(err, rc, "cannot list the scan index");
        if (st) {
                while (count)
                        free(ret[--count].path);
                return st;
        }
        *count_ret = count;
        return ST_OK;
}

enum status scan_index_count(struct scan_index *ix, struct scan_counts *ret, struct error *err)
{
        MDB_stat files, objects, sources;
        MDB_txn *txn;
        enum status st = begin(ix, &txn, err);
        int rc;

        if (st)
                return st;
        rc = mdb_stat(txn, ix->files, &files);
        if (!rc)
                rc = mdb_stat(txn, ix->objects, &objects);
        if (!rc)
                rc = mdb_stat(txn, ix->sources, &sources);
        mdb_txn_abort(txn);
        if (rc)
                return scan_lmdb_error(err, rc, "cannot count the scan index");
        *ret = (struct scan_counts){ .files = files.ms_entries, .objects = objects.ms_entries, .sources = sources.ms_entries };
        return ST_OK;
}
