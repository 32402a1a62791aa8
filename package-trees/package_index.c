/* SPDX-License-Identifier: Apache-2.0 */
#include "package-trees/package_index.h"

#include <assert.h>
#include <string.h>

#include "common/bytes.h"
#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/files/lmdb_check.h"
#include "common/files/lmdb_env.h"
#include "common/hash.h"
#include "common/limits.h"
#include "common/reader.h"
#include "package-trees/package_index_internal.h"

/* ---- records ---- */

size_t package_make_object_key(uint8_t out[static PACKAGE_KEY_MAX], const struct build_id *id, uint32_t number,
                               uint32_t ordinal)
{
        out[0] = id->size;
        memcpy(out + 1, id->bytes, id->size);
        store_be32(out + 1 + id->size, number);
        store_be32(out + 5 + id->size, ordinal);
        return 9u + id->size;
}

void package_make_sections_key(uint8_t out[static 8], uint32_t number, uint32_t ordinal)
{
        store_be32(out, number);
        store_be32(out + 4, ordinal);
}

void package_file_encode(struct buf *to, const struct package_file *f)
{
        assert(f->path && *f->path);
        buf_append_u64(to, (uint64_t)f->mtime_ns);
        buf_append_u64(to, f->size_bytes);
        buf_append_u64(to, f->inode);
        buf_append_u8(to, (uint8_t)f->class);
        buf_append_u8(to, f->is_of_use);
        buf_append(to, f->path, strlen(f->path) + 1);
}

enum status package_file_decode(const MDB_val *value, struct package_file *ret, struct error *err)
{
        uint64_t mtime;
        uint8_t class, of_use;
        struct reader r;

        reader_init(&r, value->mv_data, value->mv_size);
        if (!reader_u64(&r, &mtime) || !reader_u64(&r, &ret->size_bytes) || !reader_u64(&r, &ret->inode) ||
            !reader_u8(&r, &class) || !reader_u8(&r, &of_use) || !reader_cstr(&r, &ret->path) ||
            class > PACKAGE_FILE_ARCHIVE)
                return error_set(err, ST_BAD_DATA, "a record of the scan index is damaged");
        ret->mtime_ns = (int64_t)mtime;
        ret->class = class;
        ret->is_of_use = of_use;
        return ST_OK;
}

void package_object_encode(struct buf *to, const struct package_object *o)
{
        assert(o->kinds && o->kinds <= (PACKAGE_DEBUGINFO | PACKAGE_EXECUTABLE));
        buf_append_u8(to, o->kinds);
        buf_append_u8(to, (uint8_t)o->quality);
        buf_append_u64(to, o->size_bytes);
        buf_append(to, o->path, strlen(o->path) + 1);
}

enum status package_object_decode(const MDB_val *key, const MDB_val *value, struct package_object *ret,
                                  uint32_t *number_ret, struct error *err)
{
        const uint8_t *k = key->mv_data;
        size_t n = key->mv_size;
        struct reader r;
        uint8_t quality;

        reader_init(&r, value->mv_data, value->mv_size);
        if (n < 10 || k[0] != n - 9 || !build_id_from_bytes(&ret->build_id, k + 1, n - 9) ||
            !reader_u8(&r, &ret->kinds) || !reader_u8(&r, &quality) || !reader_u64(&r, &ret->size_bytes) ||
            !reader_cstr(&r, &ret->path) || quality > QUALITY_DWARF)
                return error_set(err, ST_BAD_DATA, "a record of the scan index is damaged");
        ret->quality = quality;
        *number_ret = load_be32(k + n - 8);
        ret->ordinal = load_be32(k + n - 4);
        return ST_OK;
}

/* ---- environment ---- */

#define MAP_BYTES GiB(64)
#define VERSION "1"

enum status package_index_error(struct error *err, int rc, const char *what)
{
        const struct lmdb_map map = { LMDB_MAP_SCAN, lmdb_map_bytes(LMDB_MAP_SCAN, MAP_BYTES) };

        return lmdb_set_error(err, rc, &map, what);
}

void package_index_close(struct package_index *ix)
{
        if (!ix)
                return;
        if (ix->env)
                mdb_env_close(ix->env);
        free(ix);
}

static void cleanup_package_index(struct package_index **ix)
{
        package_index_close(*ix);
}

/* MDB_VERSION_MISMATCH if the databases have another version. */
static int open_package_databases(struct package_index *ix, MDB_txn *txn)
{
        const struct {
                const char *name;
                MDB_dbi *dbi;
        } all[] = { { "paths", &ix->paths },     { "files", &ix->files },     { "contents", &ix->contents },
                    { "objects", &ix->objects }, { "sources", &ix->sources }, { "sections", &ix->sections } };
        MDB_val key = { 6, (void *)(uintptr_t) "format" }, ours = { sizeof VERSION, (void *)(uintptr_t)VERSION }, value;
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
        atomic_store(&ix->next_number, rc || key.mv_size != 4 ? 1 : load_be32(key.mv_data) + 1);
        mdb_cursor_close(cursor);
        return rc == MDB_NOTFOUND ? 0 : rc;
}

static int open_package_environment(const char *dir, struct package_index *ix)
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
        rc = open_package_databases(ix, txn);
        if (!rc)
                return mdb_txn_commit(txn);
        mdb_txn_abort(txn);
        return rc;
}

enum status package_index_open(const char *dir, struct package_index **ret, struct error *err)
{
        for (unsigned tries = 0;; tries++) {
                _cleanup_(cleanup_package_index) struct package_index *ix = calloc(1, sizeof *ix);
                enum status st = ix ? file_make_dirs(dir, err) : error_no_memory(err);
                int rc;

                if (!st && lmdb_check_env(dir, err) == ST_BAD_DATA)
                        st = file_remove_tree(dir, err); /* rebuilt by the walks */
                if (!st)
                        st = file_make_dirs(dir, err);
                if (st)
                        return st;
                rc = open_package_environment(dir, ix);
                if (!rc) {
                        *ret = steal_ptr(ix);
                        return ST_OK;
                }
                if (rc > 0 || tries > 0) {
                        package_index_error(err, rc, dir);
                        return error_prefix(err, ST_OS, "cannot open the scan index");
                }
                st = file_remove_tree(dir, err); /* damaged or of another version: rebuild it */
                if (st)
                        return st;
        }
}

struct package_file package_file_from_stat(const struct stat *info)
{
        return (struct package_file){ .mtime_ns = (int64_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec,
                                      .size_bytes = (uint64_t)info->st_size,
                                      .inode = info->st_ino };
}

bool package_file_matches(const struct package_file *f, const struct stat *info)
{
        struct package_file now = package_file_from_stat(info);

        return f->mtime_ns == now.mtime_ns && f->size_bytes == now.size_bytes && f->inode == now.inode;
}

static enum status begin_index_read(struct package_index *ix, MDB_txn **ret, struct error *err)
{
        int rc = mdb_txn_begin(ix->env, NULL, MDB_RDONLY, ret);

        return rc ? package_index_error(err, rc, "cannot read the scan index") : ST_OK;
}

enum status package_index_is_known(struct package_index *ix, const char *path, const struct stat *info, bool *ret,
                                   struct error *err)
{
        struct hash128 hash = hash_bytes128(path, strlen(path));
        MDB_val key = { sizeof hash.bytes, hash.bytes }, value;
        struct package_file file;
        MDB_txn *txn;
        enum status st = begin_index_read(ix, &txn, err);
        int rc;

        if (st)
                return st;
        rc = mdb_get(txn, ix->paths, &key, &value);
        if (!rc)
                rc = mdb_get(txn, ix->files, &value, &value);
        *ret = !rc && !package_file_decode(&value, &file, NULL) && strcmp(file.path, path) == 0 &&
               package_file_matches(&file, info);
        mdb_txn_abort(txn);
        return rc && rc != MDB_NOTFOUND ? package_index_error(err, rc, "cannot read the scan index") : ST_OK;
}

enum status package_index_next_files(struct package_index *ix, uint32_t after, struct package_numbered_file *ret,
                                     size_t n, size_t *count_ret, struct error *err)
{
        uint8_t bytes[4];
        MDB_val key = { sizeof bytes, bytes }, value;
        MDB_cursor *cursor;
        MDB_txn *txn;
        enum status st = begin_index_read(ix, &txn, err);
        size_t count = 0;
        int rc;

        if (st)
                return st;
        store_be32(bytes, after + 1);
        rc = mdb_cursor_open(txn, ix->files, &cursor);
        if (!rc) {
                for (rc = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE); !rc && !st && count < n;
                     rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
                        struct package_file file;

                        st = package_file_decode(&value, &file, err);
                        if (st)
                                break;
                        ret[count] = (struct package_numbered_file){ load_be32(key.mv_data), strdup(file.path) };
                        st = ret[count].path ? ST_OK : error_no_memory(err);
                        count += !st;
                }
                mdb_cursor_close(cursor);
        }
        mdb_txn_abort(txn);
        if (!st && rc && rc != MDB_NOTFOUND)
                st = package_index_error(err, rc, "cannot list the scan index");
        if (st) {
                while (count)
                        free(ret[--count].path);
                return st;
        }
        *count_ret = count;
        return ST_OK;
}

enum status package_index_count(struct package_index *ix, struct package_scan_counts *ret, struct error *err)
{
        MDB_stat files, objects, sources;
        MDB_txn *txn;
        enum status st = begin_index_read(ix, &txn, err);
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
                return package_index_error(err, rc, "cannot count the scan index");
        *ret = (struct package_scan_counts){ .files = files.ms_entries,
                                             .objects = objects.ms_entries,
                                             .sources = sources.ms_entries };
        return ST_OK;
}
