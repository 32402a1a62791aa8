/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo-store/links.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "common/memory/buf.h"
#include "common/reader.h"
#include "debuginfo-store/object_record.h"

#define LINKS_VERSION 1

/* ---- the links of one object ---- */

struct parsed_links {
        struct object_alias aliases[OBJECT_ALIASES_MAX];
        uint8_t alias_count;
        struct reader companions; /* at the first companion */
        uint32_t companion_count;
};

static bool read_link_id(struct reader *r, struct build_id *ret)
{
        const uint8_t *bytes;
        uint8_t size;

        return reader_u8(r, &size) && reader_bytes(r, size, &bytes) && build_id_from_bytes(ret, bytes, size);
}

static bool parse_links(const MDB_val *value, struct parsed_links *ret)
{
        uint8_t version, claimed;
        struct reader r;

        reader_init(&r, value->mv_data, value->mv_size);
        if (!reader_u8(&r, &version) || version != LINKS_VERSION || !reader_u8(&r, &ret->alias_count) ||
            ret->alias_count > OBJECT_ALIASES_MAX)
                return false;
        for (uint8_t i = 0; i < ret->alias_count; i++) {
                if (!reader_u8(&r, &claimed) || !read_link_id(&r, &ret->aliases[i].id))
                        return false;
                ret->aliases[i].is_claimed = claimed;
        }
        if (!reader_u32(&r, &ret->companion_count))
                return false;
        ret->companions = r;
        return true;
}

static bool read_companion(struct reader *r, struct object_name *ret)
{
        uint8_t kind;

        if (!reader_u8(r, &kind) || kind >= OBJECT_KIND_COUNT || !read_link_id(r, &ret->build_id))
                return false;
        ret->kind = kind;
        return true;
}

static void append_link_id(struct buf *b, const struct build_id *id)
{
        buf_append_u8(b, id->size);
        buf_append(b, id->bytes, id->size);
}

void links_encode(struct buf *b, const struct object_links *l)
{
        assert(l->alias_count <= OBJECT_ALIASES_MAX && (l->companions || !l->companion_count));
        buf_append_u8(b, LINKS_VERSION);
        buf_append_u8(b, (uint8_t)l->alias_count);
        for (size_t i = 0; i < l->alias_count; i++) {
                buf_append_u8(b, l->aliases[i].is_claimed);
                append_link_id(b, &l->aliases[i].id);
        }
        buf_append_u32(b, l->companion_count);
        for (uint32_t i = 0; i < l->companion_count; i++) {
                buf_append_u8(b, (uint8_t)l->companions[i].kind);
                append_link_id(b, &l->companions[i].build_id);
        }
}

/*
 * ---- owners of an alias ----
 *
 * The values of an alias are sorted by precedence: claimed, time since it has the alias (big-endian), kind, build-id.
 */

#define OWNER_AT (1 + 8)
#define OWNER_MAX (OWNER_AT + 1 + BUILD_ID_MAX)

static size_t encode_owner(uint8_t out[static OWNER_MAX], bool is_claimed, uint64_t since,
                           const struct object_name *name)
{
        uint64_t big = htobe64(since);

        assert(name->build_id.size > 0 && name->build_id.size <= BUILD_ID_MAX);
        out[0] = is_claimed;
        memcpy(out + 1, &big, sizeof big);
        out[OWNER_AT] = (uint8_t)name->kind;
        memcpy(out + OWNER_AT + 1, name->build_id.bytes, name->build_id.size);
        return OWNER_AT + 1u + name->build_id.size;
}

static bool is_owned_by(const MDB_val *value, const struct object_name *name)
{
        const uint8_t *bytes = value->mv_data;

        return value->mv_size == OWNER_AT + 1u + name->build_id.size && bytes[OWNER_AT] == (uint8_t)name->kind &&
               memcmp(bytes + OWNER_AT + 1, name->build_id.bytes, name->build_id.size) == 0;
}

/* Remove an object's entry of an alias. @param since_ret since when it had the alias; untouched if it did not. */
static int delete_alias(const struct link_databases *d, MDB_txn *txn, const struct build_id *alias,
                        const struct object_name *name, uint64_t *since_ret)
{
        MDB_val key = { alias->size, (void *)alias->bytes }, value;
        MDB_cursor *cursor;
        uint64_t since;
        int rc = mdb_cursor_open(txn, d->aliases, &cursor);

        if (rc)
                return rc;
        for (rc = mdb_cursor_get(cursor, &key, &value, MDB_SET_KEY); !rc && !is_owned_by(&value, name);)
                rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT_DUP);
        if (!rc) {
                memcpy(&since, (const uint8_t *)value.mv_data + 1, sizeof since);
                *since_ret = be64toh(since);
                rc = mdb_cursor_del(cursor, 0);
        }
        mdb_cursor_close(cursor);
        return rc == MDB_NOTFOUND ? 0 : rc;
}

static int insert_alias(const struct link_databases *d, MDB_txn *txn, const struct object_alias *alias,
                        const struct object_name *name, uint64_t since)
{
        MDB_val key = { alias->id.size, (void *)alias->id.bytes }, value;
        uint8_t bytes[OWNER_MAX];

        value = (MDB_val){ .mv_size = encode_owner(bytes, alias->is_claimed, since, name), .mv_data = bytes };
        return mdb_put(txn, d->aliases, &key, &value, 0);
}

/* ---- the links of an object in the databases ---- */

int links_open(MDB_txn *txn, bool read_only, struct link_databases *ret)
{
        unsigned create = read_only ? 0 : MDB_CREATE;
        int rc = mdb_dbi_open(txn, "links", create, &ret->links);

        if (!rc)
                rc = mdb_dbi_open(txn, "aliases", create | MDB_DUPSORT, &ret->aliases);
        return rc;
}

static int find_links(const struct link_databases *d, MDB_txn *txn, const struct object_name *name,
                      struct parsed_links *ret)
{
        uint8_t bytes[RECORD_KEY_MAX];
        MDB_val key = { .mv_size = record_make_key(bytes, &name->build_id, name->kind), .mv_data = bytes }, value;
        int rc = mdb_get(txn, d->links, &key, &value);

        return !rc && !parse_links(&value, ret) ? MDB_CORRUPTED : rc;
}

/* @param since set for aliases that the object keeps: since when it has them */
static int delete_aliases(const struct link_databases *d, MDB_txn *txn, const struct object_name *name,
                          const struct object_links *keeps, uint64_t *since)
{
        struct parsed_links old;
        int rc = find_links(d, txn, name, &old);

        if (rc)
                return rc == MDB_NOTFOUND ? 0 : rc;
        for (uint8_t i = 0; !rc && i < old.alias_count; i++) {
                const struct build_id alias = old.aliases[i].id;
                uint64_t had = 0;

                rc = delete_alias(d, txn, &alias, name, &had);
                for (size_t k = 0; keeps && had && k < keeps->alias_count; k++)
                        if (build_id_equal(&keeps->aliases[k].id, &alias))
                                since[k] = had;
        }
        return rc;
}

int links_put(const struct link_databases *d, MDB_txn *txn, const struct object_name *name,
              const struct object_links *links)
{
        uint64_t now = (uint64_t)wall_clock_ns(), since[OBJECT_ALIASES_MAX] = { now, now, now };
        uint8_t key_bytes[RECORD_KEY_MAX];
        MDB_val key = { .mv_size = record_make_key(key_bytes, &name->build_id, name->kind), .mv_data = key_bytes },
                value;
        _cleanup_buf_ struct buf b;
        int rc = delete_aliases(d, txn, name, links, since);

        buf_init(&b, MiB(16));
        for (size_t i = 0; !rc && i < links->alias_count; i++)
                rc = insert_alias(d, txn, &links->aliases[i], name, since[i]);
        if (rc)
                return rc;
        links_encode(&b, links);
        if (b.failed)
                return ENOMEM;
        value = (MDB_val){ .mv_size = b.size, .mv_data = b.data };
        return mdb_put(txn, d->links, &key, &value, 0);
}

int links_remove(const struct link_databases *d, MDB_txn *txn, const struct object_name *name)
{
        uint8_t bytes[RECORD_KEY_MAX];
        MDB_val key = { .mv_size = record_make_key(bytes, &name->build_id, name->kind), .mv_data = bytes };
        int rc = delete_aliases(d, txn, name, NULL, NULL);

        if (!rc)
                rc = mdb_del(txn, d->links, &key, NULL);
        return rc == MDB_NOTFOUND ? 0 : rc;
}

int links_resolve(const struct link_databases *d, MDB_txn *txn, const struct build_id *alias, struct build_id *ret)
{
        MDB_val key = { alias->size, (void *)alias->bytes }, value;
        int rc = alias->size ? mdb_get(txn, d->aliases, &key, &value) : MDB_NOTFOUND;

        if (rc)
                return rc;
        return value.mv_size > OWNER_AT + 1 && build_id_from_bytes(ret, (const uint8_t *)value.mv_data + OWNER_AT + 1,
                                                                   value.mv_size - OWNER_AT - 1)
                       ? 0
                       : MDB_CORRUPTED;
}

int links_list_aliases(const struct link_databases *d, MDB_txn *txn, const struct object_name *name,
                       struct build_id ret[static OBJECT_ALIASES_MAX], size_t *count_ret)
{
        struct parsed_links found;
        int rc = find_links(d, txn, name, &found);

        *count_ret = rc ? 0 : found.alias_count;
        for (size_t i = 0; i < *count_ret; i++)
                ret[i] = found.aliases[i].id;
        return rc == MDB_NOTFOUND ? 0 : rc;
}

/* ---- companions ---- */

struct companion_list {
        struct object_name *items;
        size_t count, capacity;
};

static int append_companions(struct companion_list *l, struct parsed_links *from)
{
        if (from->companion_count && !array_reserve_many(&l->items, &l->capacity, l->count, from->companion_count))
                return ENOMEM;
        for (uint32_t i = 0; i < from->companion_count; i++)
                if (!read_companion(&from->companions, &l->items[l->count++]))
                        return MDB_CORRUPTED;
        return 0;
}

enum status links_decode(const void *data, size_t n, struct object_links *ret, struct object_name **companions_ret,
                         struct error *err)
{
        const MDB_val value = { .mv_size = n, .mv_data = (void *)(uintptr_t)data };
        struct companion_list list = { 0 };
        struct parsed_links links;
        int rc = parse_links(&value, &links) && links.companion_count <= LIMIT_COMPANIONS + 1
                         ? append_companions(&list, &links)
                         : MDB_CORRUPTED;

        if (rc) {
                free(list.items);
                return rc == ENOMEM ? error_no_memory(err)
                                    : error_set(err, ST_BAD_DATA, "the links of an object are damaged");
        }
        *ret = (struct object_links){ .alias_count = links.alias_count,
                                      .companions = list.items,
                                      .companion_count = (uint32_t)list.count };
        memcpy(ret->aliases, links.aliases, sizeof ret->aliases);
        *companions_ret = list.items;
        return ST_OK;
}

int links_get_companions(const struct link_databases *d, MDB_txn *txn, const struct object_name *name,
                         struct object_name **ret, size_t *count_ret)
{
        struct companion_list list = { 0 };
        struct parsed_links links;
        int rc = find_links(d, txn, name, &links);

        if (!rc)
                rc = append_companions(&list, &links);
        if (rc) {
                free(list.items);
                return rc;
        }
        *ret = list.items;
        *count_ret = list.count;
        return 0;
}

int links_list_companions(const struct link_databases *d, MDB_txn *txn, struct object_name **ret, size_t *count_ret)
{
        struct companion_list list = { 0 };
        struct parsed_links links;
        MDB_cursor *cursor;
        MDB_val key, value;
        int rc;

        *ret = NULL;
        *count_ret = 0;
        rc = mdb_cursor_open(txn, d->links, &cursor);
        if (rc)
                return rc;
        for (rc = mdb_cursor_get(cursor, &key, &value, MDB_FIRST); !rc;
             rc = rc ? rc : mdb_cursor_get(cursor, &key, &value, MDB_NEXT))
                rc = parse_links(&value, &links) ? append_companions(&list, &links) : MDB_CORRUPTED;
        mdb_cursor_close(cursor);
        if (rc != MDB_NOTFOUND) {
                free(list.items);
                return rc;
        }
        *ret = list.items;
        *count_ret = list.count;
        return 0;
}
