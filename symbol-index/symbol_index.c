/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/files/lmdb_env.h"
#include "symbol-index/block.h"
#include "symbol-index/index_blocks.h"
#include "symbol-index/name_cache.h"
#include "symbol-index/symbol_index_internal.h"
#include "symbol-index/text_page.h"

#define MAP_BYTES ((size_t)1 << 40)
#define MAP_BYTES_LEAST ((size_t)1 << 30)
#define READERS_MAX 1024
#define DATABASES_MAX 16

enum status index_set_error(struct error *err, const struct symbol_index *index, int rc, const char *what)
{
        const struct lmdb_map map = { LMDB_MAP_INDEX, index ? index->map_bytes : 0 };

        return rc ? error_prefix(err, lmdb_set_error(err, rc, &map, what), "'%s'", index ? index->dir : "index")
                  : ST_OK;
}

static int open_index_databases(struct symbol_index *index, MDB_txn *txn, bool create)
{
        unsigned flags = create ? MDB_CREATE : 0;
        int rc = mdb_dbi_open(txn, "objects", flags, &index->objects);

        if (!rc)
                rc = mdb_dbi_open(txn, "maps", flags, &index->maps);
        if (!rc)
                rc = mdb_dbi_open(txn, "blocks", flags, &index->blocks);
        if (!rc)
                rc = mdb_dbi_open(txn, "block_ids", flags | MDB_DUPSORT | MDB_DUPFIXED, &index->block_ids);
        if (!rc)
                rc = mdb_dbi_open(txn, "block_users", flags, &index->block_users);
        if (!rc)
                rc = mdb_dbi_open(txn, "garbage", flags, &index->garbage);
        if (!rc)
                rc = string_dict_open(&index->texts, txn, create);
        return rc ? rc : mdb_dbi_open(txn, "aliases", flags, &index->aliases);
}

static int read_index_format(struct symbol_index *index, MDB_txn *txn, uint32_t *ret)
{
        MDB_val key = { 7, (void *)"version" }, value;
        int rc = mdb_get(txn, index->meta, &key, &value);

        if (rc)
                return rc;
        if (value.mv_size != sizeof *ret)
                return MDB_INVALID;
        memcpy(ret, value.mv_data, sizeof *ret);
        *ret = le32toh(*ret);
        return 0;
}

static enum status check_index_format(struct symbol_index *index, MDB_txn *txn, struct error *err)
{
        uint32_t format;
        int rc = read_index_format(index, txn, &format);

        if (rc)
                return index_set_error(err, index, rc, "cannot read the index's format");
        if (format < INDEX_FORMAT)
                return error_set(err, ST_UNSUPPORTED,
                                 "index '%s' has format %u, this program reads %d: cairn serve rebuilds it from the "
                                 "stored objects; without a service, delete it and index the files again",
                                 index->dir, format, INDEX_FORMAT);
        if (format > INDEX_FORMAT)
                return error_set(err, ST_UNSUPPORTED,
                                 "index '%s' has format %u, this program reads %d: use a newer one", index->dir, format,
                                 INDEX_FORMAT);
        return ST_OK;
}

static int write_index_format(struct symbol_index *index, MDB_txn *txn)
{
        uint32_t format = htole32(INDEX_FORMAT);
        MDB_val key = { 7, (void *)"version" }, value = { sizeof format, &format };
        int rc = mdb_put(txn, index->meta, &key, &value, MDB_NOOVERWRITE);

        return rc == MDB_KEYEXIST ? 0 : rc;
}

/*
 * Empty an index of an older format. Object numbers continue, since other components store generations.
 */
static int reset_index(struct symbol_index *index, MDB_txn *txn)
{
        MDB_val key = { 11, (void *)"next_object" }, value = { 0, NULL };
        const MDB_dbi all[] = {
                index->meta,        index->objects, index->maps,    index->blocks,    index->block_ids,
                index->block_users, index->garbage, index->aliases, index->texts.ids, index->texts.pages
        };
        uint32_t format, next = 0;
        int rc = read_index_format(index, txn, &format);

        if (rc || format >= INDEX_FORMAT)
                return rc == MDB_NOTFOUND ? 0 : rc;
        if (mdb_get(txn, index->meta, &key, &value) == 0 && value.mv_size == sizeof next)
                memcpy(&next, value.mv_data, sizeof next);
        for (size_t i = 0; i < sizeof all / sizeof *all && !rc; i++)
                rc = mdb_drop(txn, all[i], 0);
        value = (MDB_val){ sizeof next, &next };
        return rc || !next ? rc : mdb_put(txn, index->meta, &key, &value, 0);
}

/* Check the format before opening the other databases, whose layout depends on it. */
static enum status prepare_databases(struct symbol_index *index, MDB_txn *txn, struct error *err)
{
        enum status st;
        uint32_t format;
        int rc = read_index_format(index, txn, &format);
        MDB_stat in_meta;
        bool fresh = rc == MDB_NOTFOUND && !mdb_stat(txn, index->meta, &in_meta) && in_meta.ms_entries == 0;

        if (rc == MDB_NOTFOUND && !fresh)
                return error_set(err, ST_UNSUPPORTED,
                                 "index '%s' has no version: a program older than cairn 0.1.0 wrote it; delete it and "
                                 "index the files again",
                                 index->dir);
        if (!(fresh && !index->read_only) && !(index->start_over && rc == 0 && format < INDEX_FORMAT)) {
                st = check_index_format(index, txn, err);
                if (st)
                        return st;
        }
        rc = open_index_databases(index, txn, !index->read_only);
        if (!rc && index->start_over)
                rc = reset_index(index, txn);
        if (!rc && !index->read_only)
                rc = write_index_format(index, txn);
        return index_set_error(err, index, rc, "cannot open the index");
}

static enum status set_up_databases(struct symbol_index *index, struct error *err)
{
        MDB_txn *txn = NULL;
        enum status st;
        int rc = mdb_txn_begin(index->env, NULL, index->read_only ? MDB_RDONLY : 0, &txn);

        if (rc)
                return index_set_error(err, index, rc, "cannot open the index");
        rc = mdb_dbi_open(txn, "meta", index->read_only ? 0 : MDB_CREATE, &index->meta);
        st = rc ? index_set_error(err, index, rc, "cannot open the index") : prepare_databases(index, txn, err);
        if (st) {
                mdb_txn_abort(txn);
                return st;
        }
        /* Read-only transactions are also committed: that keeps the database handles. */
        return index_set_error(err, index, mdb_txn_commit(txn), "cannot open the index");
}

/* Open the environment with as large a map as the address space allows. */
static int open_env(struct symbol_index *index, unsigned flags)
{
        int rc = ENOMEM;

        for (size_t map = lmdb_map_bytes(LMDB_MAP_INDEX, MAP_BYTES); rc == ENOMEM; map /= 4) {
                rc = mdb_env_create(&index->env);
                if (rc)
                        break;
                rc = mdb_env_set_maxdbs(index->env, DATABASES_MAX);
                if (!rc)
                        rc = mdb_env_set_maxreaders(index->env, READERS_MAX);
                index->map_bytes = map;
                if (!rc && !index->read_only)
                        rc = mdb_env_set_mapsize(index->env, map);
                if (!rc)
                        rc = mdb_env_open(index->env, index->dir, flags | MDB_NOTLS, 0644);
                if (rc) {
                        mdb_env_close(index->env);
                        index->env = NULL;
                }
                if (map / 4 < MAP_BYTES_LEAST)
                        break;
        }
        return rc;
}

static enum status lock_for_writing(struct symbol_index *index, struct error *err)
{
        _cleanup_free_ char *path = path_join(index->dir, "writer.lock");

        if (!path)
                return error_no_memory(err);
        index->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
        if (index->lock_fd < 0)
                return error_os(err, errno, "cannot open '%s'", path);
        if (flock(index->lock_fd, LOCK_EX | LOCK_NB) == 0)
                return ST_OK;
        if (errno == EWOULDBLOCK)
                return error_set(err, ST_BUSY, "index '%s' is being written by another process", index->dir);
        return error_os(err, errno, "cannot lock '%s'", path);
}

static enum status open_for_writing(struct symbol_index *index, struct error *err)
{
        enum status st = file_make_dirs(index->dir, err);
        int dead;

        if (!st)
                st = lock_for_writing(index, err);
        if (!st)
                st = file_sync_filesystem(index->dir, err);
        if (!st)
                st = lmdb_create_env(index->dir, err);
        if (!st)
                st = index_set_error(err, index, open_env(index, 0), "cannot open the index");
        if (st)
                return st;
        mdb_reader_check(index->env, &dead);
        st = set_up_databases(index, err);
        return st ? st : index_garbage_sweep(index, err);
}

static enum status open_for_reading(struct symbol_index *index, struct error *err)
{
        int rc = open_env(index, MDB_RDONLY);

        /* The lock file cannot be created or written: read without the reader table. */
        if (rc == EACCES || rc == EPERM || rc == EROFS)
                rc = open_env(index, MDB_RDONLY | MDB_NOLOCK);
        if (rc == ENOENT)
                return error_set(err, ST_NOT_FOUND, "there is no index in '%s'", index->dir);
        return rc ? index_set_error(err, index, rc, "cannot open the index") : set_up_databases(index, err);
}

static enum status open_symbol_index(const char *dir, bool read_only, bool start_over, struct symbol_index **ret,
                                     struct error *err)
{
        struct symbol_index *index = calloc(1, sizeof *index);
        enum status st;

        if (!index)
                return error_no_memory(err);
        index->lock_fd = -1;
        index->read_only = read_only;
        index->start_over = start_over;
        index->block_bytes = BLOCK_BYTES;
        index->write_bytes = INDEX_WRITE_BYTES;
        pthread_mutex_init(&index->write_lock, NULL);
        index->dir = strdup(dir);
        index->names = name_cache_create();
        index->texts.cache = text_page_cache_create();
        if (!index->dir || !index->names || !index->texts.cache)
                st = error_no_memory(err);
        else
                st = read_only ? open_for_reading(index, err) : open_for_writing(index, err);
        if (st) {
                symbol_index_close(index);
                return st;
        }
        *ret = index;
        return ST_OK;
}

enum status symbol_index_open(const char *dir, bool read_only, struct symbol_index **ret, struct error *err)
{
        return open_symbol_index(dir, read_only, false, ret, err);
}

enum status symbol_index_open_or_reset(const char *dir, struct symbol_index **ret, struct error *err)
{
        return open_symbol_index(dir, false, true, ret, err);
}

void symbol_index_close(struct symbol_index *index)
{
        if (!index)
                return;
        if (index->env)
                mdb_env_close(index->env);
        cleanup_close(&index->lock_fd);
        name_cache_destroy(index->names);
        text_page_cache_destroy(index->texts.cache);
        anchor_filter_destroy(index->anchors);
        pthread_mutex_destroy(&index->write_lock);
        free(index->dir);
        free(atomic_load(&index->spare_rows));
        free(index);
}
