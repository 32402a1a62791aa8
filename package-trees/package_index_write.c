/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/bytes.h"
#include "common/cleanup.h"
#include "common/hash.h"
#include "common/limits.h"
#include "common/reader.h"
#include "package-trees/package_index_internal.h"

/* Encode the keys to delete with a file: size, build-id and ordinal of each object; then the path hashes of sources. */
static void encode_contents_keys(struct buf *to, const struct package_contents *c)
{
        buf_append_u32(to, (uint32_t)c->object_count);
        for (size_t i = 0; i < c->object_count; i++) {
                buf_append_u8(to, c->objects[i].build_id.size);
                buf_append(to, c->objects[i].build_id.bytes, c->objects[i].build_id.size);
                buf_append_u32(to, c->objects[i].ordinal);
        }
        buf_append_u32(to, (uint32_t)c->source_count);
        for (size_t i = 0; i < c->source_count; i++)
                buf_append_u64(to, c->sources[i].path_hash);
}

static void make_source_key(uint8_t out[static 12], uint64_t hash, uint32_t number)
{
        store_be64(out, hash);
        store_be32(out + 8, number);
}

static int delete_index_key(MDB_txn *txn, MDB_dbi dbi, void *key, size_t n)
{
        int rc = mdb_del(txn, dbi, &(MDB_val){ n, key }, NULL);

        return rc == MDB_NOTFOUND ? 0 : rc;
}

static int delete_objects(struct package_index *ix, MDB_txn *txn, struct reader *r, uint32_t number)
{
        uint32_t count, ordinal;
        int rc = 0;

        if (!reader_u32(r, &count))
                return MDB_CORRUPTED;
        while (!rc && count--) {
                uint8_t key[PACKAGE_KEY_MAX], sections[8], size;
                struct build_id id;
                const uint8_t *bytes;

                if (!reader_u8(r, &size) || !reader_bytes(r, size, &bytes) || !build_id_from_bytes(&id, bytes, size) ||
                    !reader_u32(r, &ordinal))
                        return MDB_CORRUPTED;
                package_make_sections_key(sections, number, ordinal);
                rc = delete_index_key(txn, ix->objects, key, package_make_object_key(key, &id, number, ordinal));
                if (!rc)
                        rc = delete_index_key(txn, ix->sections, sections, sizeof sections);
        }
        return rc;
}

static int delete_sources(struct package_index *ix, MDB_txn *txn, struct reader *r, uint32_t number)
{
        uint32_t count;
        int rc = 0;

        if (!reader_u32(r, &count))
                return MDB_CORRUPTED;
        while (!rc && count--) {
                uint8_t key[12];
                uint64_t hash;

                if (!reader_u64(r, &hash))
                        return MDB_CORRUPTED;
                make_source_key(key, hash, number);
                rc = delete_index_key(txn, ix->sources, key, sizeof key);
        }
        return rc;
}

/* Remove a file's records. Its keys are copied first, because deletions move LMDB pages. */
static int remove_indexed_file(struct package_index *ix, MDB_txn *txn, uint32_t number)
{
        _cleanup_free_ void *copy = NULL;
        uint8_t bytes[4];
        MDB_val key = { sizeof bytes, bytes }, value;
        struct package_file file;
        struct reader r;
        int rc;

        store_be32(bytes, number);
        rc = mdb_get(txn, ix->contents, &key, &value);
        if (!rc) {
                copy = malloc(value.mv_size);
                if (!copy)
                        return ENOMEM;
                memcpy(copy, value.mv_data, value.mv_size);
                reader_init(&r, copy, value.mv_size);
                rc = delete_objects(ix, txn, &r, number);
                if (!rc)
                        rc = delete_sources(ix, txn, &r, number);
        }
        if (!rc || rc == MDB_NOTFOUND)
                rc = mdb_get(txn, ix->files, &key, &value);
        if (!rc && !package_file_decode(&value, &file, NULL)) {
                struct hash128 hash = hash_bytes128(file.path, strlen(file.path));

                rc = delete_index_key(txn, ix->paths, hash.bytes, sizeof hash.bytes);
        }
        if (!rc || rc == MDB_NOTFOUND)
                rc = delete_index_key(txn, ix->contents, bytes, sizeof bytes);
        return rc ? rc : delete_index_key(txn, ix->files, bytes, sizeof bytes);
}

static int put_index_record(MDB_txn *txn, MDB_dbi dbi, const void *key, size_t key_bytes, const struct buf *b)
{
        MDB_val k = { key_bytes, (void *)(uintptr_t)key }, v = { b->size, b->data };

        return b->failed ? ENOMEM : mdb_put(txn, dbi, &k, &v, 0);
}

static int put_object_sections(struct package_index *ix, MDB_txn *txn, uint32_t number, const struct package_object *o)
{
        MDB_val value = { o->sections_bytes, (void *)(uintptr_t)o->sections };
        uint8_t key[8];

        if (!o->sections_bytes)
                return 0;
        package_make_sections_key(key, number, o->ordinal);
        return mdb_put(txn, ix->sections, &(MDB_val){ sizeof key, key }, &value, 0);
}

static int put_contents(struct package_index *ix, MDB_txn *txn, uint32_t number, const struct package_contents *c,
                        struct buf *b)
{
        int rc = 0;

        for (size_t i = 0; !rc && i < c->object_count; i++) {
                uint8_t key[PACKAGE_KEY_MAX];

                buf_clear(b);
                package_object_encode(b, &c->objects[i]);
                rc = put_index_record(
                        txn, ix->objects, key,
                        package_make_object_key(key, &c->objects[i].build_id, number, c->objects[i].ordinal), b);
                if (!rc)
                        rc = put_object_sections(ix, txn, number, &c->objects[i]);
        }
        for (size_t i = 0; !rc && i < c->source_count; i++) {
                uint8_t key[12], value[4];

                make_source_key(key, c->sources[i].path_hash, number);
                store_be32(value, c->sources[i].ordinal);
                rc = mdb_put(txn, ix->sources, &(MDB_val){ sizeof key, key }, &(MDB_val){ sizeof value, value }, 0);
        }
        return rc;
}

static int put_package_result(struct package_index *ix, MDB_txn *txn, const struct package_result *result,
                              struct buf *b)
{
        uint32_t number = atomic_fetch_add(&ix->next_number, 1);
        struct hash128 hash = hash_bytes128(result->file.path, strlen(result->file.path));
        uint8_t bytes[4];
        MDB_val key = { sizeof hash.bytes, hash.bytes }, value;
        int rc = mdb_get(txn, ix->paths, &key, &value);

        if (!rc && value.mv_size == 4)
                rc = remove_indexed_file(ix, txn, load_be32(value.mv_data));
        if (rc && rc != MDB_NOTFOUND)
                return rc;
        store_be32(bytes, number);
        rc = mdb_put(txn, ix->paths, &key, &(MDB_val){ sizeof bytes, bytes }, 0);
        if (rc)
                return rc;
        buf_clear(b);
        package_file_encode(b, &result->file);
        rc = put_index_record(txn, ix->files, bytes, sizeof bytes, b);
        if (!rc && (result->contents.object_count || result->contents.source_count)) {
                buf_clear(b);
                encode_contents_keys(b, &result->contents);
                rc = put_index_record(txn, ix->contents, bytes, sizeof bytes, b);
        }
        return rc ? rc : put_contents(ix, txn, number, &result->contents, b);
}

static enum status end_index_write(MDB_txn *txn, int rc, struct error *err)
{
        if (rc)
                mdb_txn_abort(txn);
        else
                rc = mdb_txn_commit(txn);
        return rc ? package_index_error(err, rc, "cannot write the scan index") : ST_OK;
}

enum status package_index_put(struct package_index *ix, const struct package_result *results, size_t count,
                              struct error *err)
{
        _cleanup_buf_ struct buf b;
        MDB_txn *txn;
        int rc = mdb_txn_begin(ix->env, NULL, 0, &txn);

        buf_init(&b, LIMIT_SCAN_FOUND_BYTES);
        if (rc)
                return package_index_error(err, rc, "cannot write the scan index");
        for (size_t i = 0; !rc && i < count; i++)
                rc = put_package_result(ix, txn, &results[i], &b);
        return end_index_write(txn, rc, err);
}

enum status package_index_remove(struct package_index *ix, const uint32_t *numbers, size_t count, struct error *err)
{
        MDB_txn *txn;
        int rc = mdb_txn_begin(ix->env, NULL, 0, &txn);

        if (rc)
                return package_index_error(err, rc, "cannot write the scan index");
        for (size_t i = 0; !rc && i < count; i++)
                rc = remove_indexed_file(ix, txn, numbers[i]);
        return end_index_write(txn, rc, err);
}
