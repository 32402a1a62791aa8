/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <string.h>

#include "common/bytes.h"
#include "common/cleanup.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "elf-image/section_list.h"
#include "package-trees/package_index_internal.h"

void package_places_free(struct package_place *places, size_t count)
{
        for (size_t i = 0; places && i < count; i++) {
                free((char *)(uintptr_t)places[i].file.path);
                free((char *)(uintptr_t)places[i].object.path);
        }
        free(places);
}

/* One transaction with a cursor over a database. */
struct index_search {
        struct package_index *ix;
        MDB_txn *txn;
        MDB_cursor *cursor;
};

static enum status index_search_begin(struct package_index *ix, MDB_dbi dbi, struct index_search *s, struct error *err)
{
        int rc;

        *s = (struct index_search){ .ix = ix };
        rc = mdb_txn_begin(ix->env, NULL, MDB_RDONLY, &s->txn);
        if (!rc && (rc = mdb_cursor_open(s->txn, dbi, &s->cursor)))
                mdb_txn_abort(s->txn);
        return rc ? package_index_error(err, rc, "cannot read the scan index") : ST_OK;
}

static void index_search_end(struct index_search *s)
{
        mdb_cursor_close(s->cursor);
        mdb_txn_abort(s->txn);
}

static enum status get_indexed_file(const struct index_search *s, uint32_t number, struct package_file *ret,
                                    struct error *err)
{
        uint8_t bytes[4];
        MDB_val key = { sizeof bytes, bytes }, value;
        int rc;

        store_be32(bytes, number);
        rc = mdb_get(s->txn, s->ix->files, &key, &value);
        return rc ? package_index_error(err, rc, "scanned file") : package_file_decode(&value, ret, err);
}

static enum status decode_place(const struct index_search *s, const MDB_val *key, const MDB_val *value, bool is_source,
                                struct package_place *ret, struct error *err)
{
        struct package_place p = { .number = 0 };
        enum status st = ST_OK;

        if (!is_source) {
                st = package_object_decode(key, value, &p.object, &p.number, err);
        } else if (key->mv_size != 12 || value->mv_size != 4) {
                st = error_set(err, ST_BAD_DATA, "a record of the scan index is damaged");
        } else {
                p.number = load_be32((const uint8_t *)key->mv_data + 8);
                p.object.ordinal = load_be32(value->mv_data);
                p.object.path = "";
        }
        if (!st)
                st = get_indexed_file(s, p.number, &p.file, err);
        if (st)
                return st;
        assert(p.file.path && p.object.path);
        p.file.path = strdup(p.file.path);
        p.object.path = strdup(p.object.path);
        *ret = p;
        return p.file.path && p.object.path ? ST_OK : error_no_memory(err);
}

/* Reserve one element after count. */
static enum status reserve_place(struct package_place **places, size_t *capacity, size_t count, struct error *err)
{
        if (!array_reserve(places, capacity, count))
                return error_no_memory(err);
        (*places)[count] = (struct package_place){ .number = 0 };
        return ST_OK;
}

/* Selects the records whose keys begin with the prefix and have key_bytes. */
struct place_prefix {
        MDB_dbi dbi;
        const void *prefix;
        size_t prefix_bytes, key_bytes;
};

static enum status find_places(struct package_index *ix, const struct place_prefix *q, struct package_place **ret,
                               size_t *count_ret, struct error *err)
{
        MDB_val key = { q->prefix_bytes, (void *)(uintptr_t)q->prefix }, value;
        struct package_place *places = NULL;
        struct index_search s;
        enum status st = index_search_begin(ix, q->dbi, &s, err);
        size_t count = 0, capacity = 0;

        if (st)
                return st;
        for (int rc = mdb_cursor_get(s.cursor, &key, &value, MDB_SET_RANGE);
             !st && !rc && count < LIMIT_SCAN_PLACES && key.mv_size >= q->prefix_bytes &&
             memcmp(key.mv_data, q->prefix, q->prefix_bytes) == 0;
             rc = mdb_cursor_get(s.cursor, &key, &value, MDB_NEXT))
                if (key.mv_size == q->key_bytes && !(st = reserve_place(&places, &capacity, count, err)))
                        st = decode_place(&s, &key, &value, q->dbi == ix->sources, &places[count++], err);
        index_search_end(&s);
        if (!st && !count)
                st = error_set(err, ST_NOT_FOUND, "no scanned file has it");
        if (st) {
                package_places_free(places, count);
                return st;
        }
        *ret = places;
        *count_ret = count;
        return ST_OK;
}

enum status package_index_find(struct package_index *ix, const struct build_id *id, struct package_place **ret,
                               size_t *count_ret, struct error *err)
{
        uint8_t key[PACKAGE_KEY_MAX];
        size_t size = package_make_object_key(key, id, 0, 0);

        return find_places(ix, &(struct place_prefix){ ix->objects, key, size - 8, size }, ret, count_ret, err);
}

enum status package_index_find_source(struct package_index *ix, uint64_t path_hash, struct package_place **ret,
                                      size_t *count_ret, struct error *err)
{
        uint8_t key[8];

        store_be64(key, path_hash);
        return find_places(ix, &(struct place_prefix){ ix->sources, key, sizeof key, 12 }, ret, count_ret, err);
}

enum status package_index_find_section(struct package_index *ix, uint32_t number, uint32_t ordinal, const char *name,
                                       uint64_t *offset_ret, uint64_t *size_ret, struct error *err)
{
        uint8_t bytes[8];
        MDB_val key = { sizeof bytes, bytes }, value;
        MDB_txn *txn;
        enum status st;
        int rc = mdb_txn_begin(ix->env, NULL, MDB_RDONLY, &txn);

        if (rc)
                return package_index_error(err, rc, "cannot read the scan index");
        package_make_sections_key(bytes, number, ordinal);
        rc = mdb_get(txn, ix->sections, &key, &value);
        if (rc == MDB_NOTFOUND)
                st = error_set(err, ST_UNSUPPORTED, "its sections are unknown");
        else
                st = rc ? package_index_error(err, rc, "cannot read the scan index")
                        : section_list_find(value.mv_data, value.mv_size, name, offset_ret, size_ret, err);
        mdb_txn_abort(txn);
        return st;
}

uint8_t package_index_find_kinds(struct package_index *ix, const struct build_id *id)
{
        uint8_t bytes[PACKAGE_KEY_MAX], kinds = 0;
        size_t size = package_make_object_key(bytes, id, 0, 0);
        MDB_val key = { size, bytes }, value;
        struct index_search s;

        if (index_search_begin(ix, ix->objects, &s, NULL))
                return 0;
        for (int rc = mdb_cursor_get(s.cursor, &key, &value, MDB_SET_RANGE);
             !rc && key.mv_size == size && memcmp(key.mv_data, bytes, size - 8) == 0;
             rc = mdb_cursor_get(s.cursor, &key, &value, MDB_NEXT)) {
                struct package_object o;
                uint32_t number;

                if (!package_object_decode(&key, &value, &o, &number, NULL))
                        kinds |= o.kinds;
        }
        index_search_end(&s);
        return kinds;
}

/* Find build-ids of one size; each has one record per place. @return the next larger size in the index. */
static size_t find_prefix_of_size(struct index_search *s, size_t size, const void *prefix, size_t n,
                                  struct build_id *ret, size_t max, size_t *count)
{
        uint8_t bytes[1 + BUILD_ID_MAX] = { (uint8_t)size };
        MDB_val key = { 1 + n, bytes }, value;
        int rc;

        memcpy(bytes + 1, prefix, n);
        for (rc = mdb_cursor_get(s->cursor, &key, &value, MDB_SET_RANGE);
             !rc && key.mv_size > 1 + n && memcmp(key.mv_data, bytes, 1 + n) == 0 && *count < max;
             rc = mdb_cursor_get(s->cursor, &key, &value, MDB_NEXT)) {
                struct package_object o;
                uint32_t number;

                if (package_object_decode(&key, &value, &o, &number, NULL) ||
                    (*count && build_id_equal(&ret[*count - 1], &o.build_id)))
                        continue;
                ret[(*count)++] = o.build_id;
        }
        if (rc)
                return BUILD_ID_MAX + 1;
        return *(const uint8_t *)key.mv_data > size ? *(const uint8_t *)key.mv_data : size + 1;
}

size_t package_index_find_prefix(struct package_index *ix, const void *prefix, size_t n, struct build_id *ret,
                                 size_t max)
{
        size_t count = 0;
        struct index_search s;

        if (index_search_begin(ix, ix->objects, &s, NULL))
                return 0;
        for (size_t size = n; size <= BUILD_ID_MAX && count < max;)
                size = find_prefix_of_size(&s, size, prefix, n, ret, max, &count);
        index_search_end(&s);
        return count;
}

enum status package_index_list(struct package_index *ix, const struct build_id *id, package_index_each *each,
                               void *context, struct error *err)
{
        uint8_t bytes[PACKAGE_KEY_MAX];
        size_t size = id ? package_make_object_key(bytes, id, 0, 0) : 0;
        MDB_val key = { size, bytes }, value;
        struct index_search s;
        enum status st = index_search_begin(ix, ix->objects, &s, err);
        int rc;

        if (st)
                return st;
        for (rc = mdb_cursor_get(s.cursor, &key, &value, id ? MDB_SET_RANGE : MDB_FIRST);
             !st && !rc && (!id || (key.mv_size == size && memcmp(key.mv_data, bytes, size - 8) == 0));
             rc = mdb_cursor_get(s.cursor, &key, &value, MDB_NEXT)) {
                struct package_object o;
                struct package_file file;
                uint32_t number;

                st = package_object_decode(&key, &value, &o, &number, err);
                if (!st)
                        st = get_indexed_file(&s, number, &file, err);
                if (!st)
                        st = each(context, &o, &file);
        }
        index_search_end(&s);
        return st;
}
