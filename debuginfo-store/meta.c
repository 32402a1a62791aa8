/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo-store/meta.h"

#include <lmdb.h>
#include <pthread.h>
#include <string.h>

#include "common/buf.h"
#include "common/file.h"
#include "common/limits.h"
#include "common/reader.h"

#define RECORD_VERSION 1
#define MAP_BYTES GiB(16)
#define KEY_MAX (1 + BUILD_ID_MAX + 1)

struct meta {
        MDB_env *env;
        MDB_dbi objects;
};

static enum status lmdb_error(struct error *err, int rc, const char *what)
{
        if (rc == MDB_NOTFOUND)
                return error_set(err, ST_NOT_FOUND, "%s: not found", what);
        if (rc > 0)
                return error_os(err, rc, "%s", what);
        return error_set(err, rc == MDB_MAP_FULL ? ST_TOO_BIG : ST_BAD_DATA, "%s: %s", what, mdb_strerror(rc));
}

void meta_close(struct meta *m)
{
        if (!m)
                return;
        if (m->env)
                mdb_env_close(m->env);
        free(m);
}

static void cleanup_meta(struct meta **m)
{
        meta_close(*m);
}

static enum status open_database(struct meta *m, bool read_only, struct error *err)
{
        MDB_txn *txn;
        int rc = mdb_txn_begin(m->env, NULL, read_only ? MDB_RDONLY : 0, &txn);

        if (rc)
                return lmdb_error(err, rc, "cannot open the debuginfo records");
        rc = mdb_dbi_open(txn, "objects", read_only ? 0 : MDB_CREATE, &m->objects);
        if (rc) {
                mdb_txn_abort(txn);
                return lmdb_error(err, rc, "cannot open the debuginfo records");
        }
        rc = mdb_txn_commit(txn);
        return rc ? lmdb_error(err, rc, "cannot open the debuginfo records") : ST_OK;
}

enum status meta_open(const char *dir, bool read_only, struct meta **ret, struct error *err)
{
        _cleanup_(cleanup_meta) struct meta *m = calloc(1, sizeof *m);
        enum status st;
        int rc;

        if (!m)
                return error_no_memory(err);
        if (!read_only) {
                st = file_make_dirs(dir, err);
                if (st)
                        return st;
        }
        rc = mdb_env_create(&m->env);
        if (!rc)
                rc = mdb_env_set_mapsize(m->env, MAP_BYTES);
        if (!rc)
                rc = mdb_env_set_maxdbs(m->env, 4);
        if (!rc)
                rc = mdb_env_set_maxreaders(m->env, 1024);
        if (!rc)
                rc = mdb_env_open(m->env, dir, MDB_NOTLS | (read_only ? MDB_RDONLY : 0), 0644);
        if (rc) {
                lmdb_error(err, rc, dir);
                return error_prefix(err, rc == ENOENT ? ST_NOT_FOUND : ST_OS, "cannot open debuginfo records");
        }
        st = open_database(m, read_only, err);
        if (st)
                return st;
        *ret = steal_ptr(m);
        return ST_OK;
}

/* Key: size byte, build-id bytes, kind byte; so the records of one object lie together. */
static MDB_val make_key(uint8_t out[static KEY_MAX], const struct build_id *id, enum object_kind kind)
{
        out[0] = id->size;
        memcpy(out + 1, id->bytes, id->size);
        out[1 + id->size] = (uint8_t)kind;
        return (MDB_val){ .mv_size = 2u + id->size, .mv_data = out };
}

static void encode(struct buf *b, const struct stored_object *o)
{
        buf_append_u8(b, RECORD_VERSION);
        buf_append_u8(b, (uint8_t)o->source);
        buf_append_u8(b, (uint8_t)o->quality);
        buf_append_u64(b, o->size_bytes);
        buf_append_u64(b, o->stored_bytes);
        buf_append(b, o->sha256, sizeof o->sha256);
        buf_append_u64(b, (uint64_t)o->stored_unix_s);
        buf_append(b, o->name, strlen(o->name) + 1);
}

static enum status decode(const MDB_val *key, const MDB_val *value, struct stored_object *ret, struct error *err)
{
        struct stored_object o = { 0 };
        const uint8_t *k = key->mv_data;
        struct reader r;
        const uint8_t *sha;
        const char *name;
        uint8_t version, source, quality;
        uint64_t stored;

        if (key->mv_size < 3 || key->mv_size != 2u + k[0] || k[0] > BUILD_ID_MAX ||
            k[key->mv_size - 1] >= OBJECT_KIND_COUNT)
                return error_set(err, ST_BAD_DATA, "a debuginfo record has a damaged key");
        build_id_from_bytes(&o.build_id, k + 1, k[0]);
        o.kind = k[key->mv_size - 1];
        reader_init(&r, value->mv_data, value->mv_size);
        if (!reader_u8(&r, &version) || !reader_u8(&r, &source) || !reader_u8(&r, &quality) ||
            !reader_u64(&r, &o.size_bytes) || !reader_u64(&r, &o.stored_bytes) ||
            !reader_bytes(&r, sizeof o.sha256, &sha) || !reader_u64(&r, &stored) || !reader_cstr(&r, &name))
                return reader_error(&r, err, "debuginfo record");
        if (version != RECORD_VERSION)
                return error_set(err, ST_UNSUPPORTED, "a debuginfo record has version %u, this program knows %u",
                                 version, RECORD_VERSION);
        if (source > SOURCE_UPSTREAM || quality > QUALITY_DWARF || strlen(name) >= sizeof o.name)
                return error_set(err, ST_BAD_DATA, "a debuginfo record is damaged");
        o.source = source;
        o.quality = quality;
        o.stored_unix_s = (int64_t)stored;
        memcpy(o.sha256, sha, sizeof o.sha256);
        memcpy(o.name, name, strlen(name) + 1);
        *ret = o;
        return ST_OK;
}

enum status meta_get(struct meta *m, const struct build_id *id, enum object_kind kind, struct stored_object *ret,
                     struct error *err)
{
        uint8_t bytes[KEY_MAX];
        MDB_val key = make_key(bytes, id, kind), value;
        MDB_txn *txn;
        enum status st;
        int rc = mdb_txn_begin(m->env, NULL, MDB_RDONLY, &txn);

        if (rc)
                return lmdb_error(err, rc, "cannot read the debuginfo records");
        rc = mdb_get(txn, m->objects, &key, &value);
        st = rc ? lmdb_error(err, rc, "debuginfo record") : decode(&key, &value, ret, err);
        mdb_txn_abort(txn);
        return st;
}

static enum status change(struct meta *m, MDB_val *key, MDB_val *value, struct error *err)
{
        MDB_txn *txn;
        int rc = mdb_txn_begin(m->env, NULL, 0, &txn);

        if (rc)
                return lmdb_error(err, rc, "cannot write the debuginfo records");
        rc = value ? mdb_put(txn, m->objects, key, value, 0) : mdb_del(txn, m->objects, key, NULL);
        if (rc) {
                mdb_txn_abort(txn);
                return lmdb_error(err, rc, "cannot write a debuginfo record");
        }
        rc = mdb_txn_commit(txn);
        return rc ? lmdb_error(err, rc, "cannot commit a debuginfo record") : ST_OK;
}

enum status meta_put(struct meta *m, const struct stored_object *object, struct error *err)
{
        uint8_t bytes[KEY_MAX];
        MDB_val key = make_key(bytes, &object->build_id, object->kind), value;
        _cleanup_buf_ struct buf b;
        enum status st;

        buf_init(&b, 4096);
        encode(&b, object);
        st = buf_status(&b, err, "debuginfo record");
        if (st)
                return st;
        value = (MDB_val){ .mv_size = b.size, .mv_data = b.data };
        return change(m, &key, &value, err);
}

enum status meta_remove(struct meta *m, const struct build_id *id, enum object_kind kind, struct error *err)
{
        uint8_t bytes[KEY_MAX];
        MDB_val key = make_key(bytes, id, kind);

        return change(m, &key, NULL, err);
}

enum status meta_next(struct meta *m, const struct stored_object *after, struct stored_object *ret, size_t n,
                      size_t *count_ret, struct error *err)
{
        uint8_t bytes[KEY_MAX];
        MDB_val key = { 0 }, value;
        MDB_txn *txn;
        MDB_cursor *cursor = NULL;
        enum status st = ST_OK;
        size_t count = 0;
        int rc = mdb_txn_begin(m->env, NULL, MDB_RDONLY, &txn);

        if (rc)
                return lmdb_error(err, rc, "cannot read the debuginfo records");
        rc = mdb_cursor_open(txn, m->objects, &cursor);
        if (!rc && after) {
                MDB_val from = make_key(bytes, &after->build_id, after->kind);

                key = from;
                rc = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
                if (!rc && key.mv_size == from.mv_size && memcmp(key.mv_data, bytes, from.mv_size) == 0)
                        rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
        } else if (!rc) {
                rc = mdb_cursor_get(cursor, &key, &value, MDB_FIRST);
        }
        for (; !rc && !st && count < n; count++) {
                st = decode(&key, &value, &ret[count], err);
                if (!st)
                        rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
        }
        if (cursor)
                mdb_cursor_close(cursor);
        mdb_txn_abort(txn);
        if (!st && rc && rc != MDB_NOTFOUND)
                st = lmdb_error(err, rc, "cannot list the debuginfo records");
        if (st)
                return st;
        *count_ret = count;
        return ST_OK;
}
