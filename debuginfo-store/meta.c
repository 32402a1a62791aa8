/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One LMDB environment with the databases `records` (of objects), `sections` (section lists) and those of links.c. A
 * change is one write transaction over all of them, so a record, its links and its section list never disagree. Values
 * are decoded or searched inside of the transaction: no pointer into the map leaves this file, except to the databases
 * of links, whose callers end the transaction themselves (meta_begin_links_read()).
 *
 * A change that depends on the current record reads it in the transaction that writes (meta_edit(),
 * meta_remove_if_unchanged()); LMDB has one writer at a time, so no other lock is needed.
 *
 * Order: section lists, opening, records (get, put, edit, remove, replace all), sections of an object, listing.
 * Functions that return int have codes of LMDB, which meta_set_error() converts.
 */
#include "debuginfo-store/meta.h"

#include <lmdb.h>
#include <stdlib.h>
#include <string.h>

#include "common/files/file.h"
#include "common/files/lmdb_env.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "common/memory/buf.h"
#include "debuginfo-store/object_key.h"
#include "debuginfo-store/object_record.h"
#include "elf-image/section_list.h"

static MDB_val make_meta_key(uint8_t out[static RECORD_KEY_MAX], const struct build_id *id, enum object_kind kind)
{
        return (MDB_val){ .mv_size = record_make_key(out, id, kind), .mv_data = out };
}

/* ---- section lists ---- */

#define SECTION_NOTE_VERSION 1
#define LIST_AT (1 + sizeof((struct stored_object *)NULL)->sha256)

static int section_notes_remove(MDB_dbi sections, MDB_txn *txn, const struct object_name *name)
{
        uint8_t bytes[RECORD_KEY_MAX];
        MDB_val key = make_meta_key(bytes, &name->build_id, name->kind);
        int rc = mdb_del(txn, sections, &key, NULL);

        return rc == MDB_NOTFOUND ? 0 : rc;
}

static int section_notes_put(MDB_dbi sections, MDB_txn *txn, const struct stored_object *object,
                             const struct section_note *note)
{
        uint8_t bytes[RECORD_KEY_MAX], *to;
        MDB_val key = make_meta_key(bytes, &object->build_id, object->kind),
                value = { .mv_size = LIST_AT + note->size };
        int rc;

        if (!note->size || note->size > LIMIT_SECTION_LIST_BYTES)
                return section_notes_remove(sections, txn, &(struct object_name){ object->build_id, object->kind });
        rc = mdb_put(txn, sections, &key, &value, MDB_RESERVE);
        if (rc)
                return rc;
        to = value.mv_data;
        to[0] = SECTION_NOTE_VERSION;
        memcpy(to + 1, object->sha256, sizeof object->sha256);
        memcpy(to + LIST_AT, note->list, note->size);
        return 0;
}

static int section_notes_get(MDB_dbi sections, MDB_txn *txn, const struct stored_object *object,
                             struct section_note *ret)
{
        uint8_t bytes[RECORD_KEY_MAX];
        MDB_val key = make_meta_key(bytes, &object->build_id, object->kind), value;
        int rc = mdb_get(txn, sections, &key, &value);
        const uint8_t *at;

        if (rc)
                return rc;
        at = value.mv_data;
        if (value.mv_size <= LIST_AT || at[0] != SECTION_NOTE_VERSION ||
            memcmp(at + 1, object->sha256, sizeof object->sha256) != 0)
                return MDB_NOTFOUND;
        *ret = (struct section_note){ at + LIST_AT, value.mv_size - LIST_AT };
        return 0;
}

/* ---- records ---- */

#define MAP_BYTES GiB(16)

struct meta {
        char *dir;
        MDB_env *env;
        MDB_dbi objects, sections;
        struct link_databases links;
};

enum status meta_set_error(struct error *err, int rc, const char *what)
{
        const struct lmdb_map map = { LMDB_MAP_DEBUGINFO, lmdb_map_bytes(LMDB_MAP_DEBUGINFO, MAP_BYTES) };

        return lmdb_set_error(err, rc, &map, what);
}

static enum status set_meta_error_at(const struct meta *m, struct error *err, int rc, const char *what)
{
        return error_prefix(err, meta_set_error(err, rc, what), "'%s'", m->dir);
}

void meta_close(struct meta *m)
{
        if (!m)
                return;
        if (m->env)
                mdb_env_close(m->env);
        free(m->dir);
        free(m);
}

static void cleanup_meta(struct meta **m)
{
        meta_close(*m);
}

static enum status open_meta_databases(struct meta *m, bool read_only, struct error *err)
{
        MDB_txn *txn;
        int rc = mdb_txn_begin(m->env, NULL, read_only ? MDB_RDONLY : 0, &txn);

        if (rc)
                return set_meta_error_at(m, err, rc, "cannot open the debuginfo records");
        rc = mdb_dbi_open(txn, "records", read_only ? 0 : MDB_CREATE, &m->objects);
        if (!rc)
                rc = links_open(txn, read_only, &m->links);
        if (!rc)
                rc = mdb_dbi_open(txn, "sections", read_only ? 0 : MDB_CREATE, &m->sections);
        if (rc) {
                mdb_txn_abort(txn);
                return set_meta_error_at(m, err, rc, "cannot open the debuginfo records");
        }
        rc = mdb_txn_commit(txn);
        return rc ? set_meta_error_at(m, err, rc, "cannot open the debuginfo records") : ST_OK;
}

enum status meta_open(const char *dir, bool read_only, struct meta **ret, struct error *err)
{
        _cleanup_(cleanup_meta) struct meta *m = calloc(1, sizeof *m);
        enum status st;
        int rc;

        if (!m || !(m->dir = strdup(dir)))
                return error_no_memory(err);
        if (!read_only) {
                st = file_make_dirs(dir, err);
                if (!st)
                        st = lmdb_create_env(dir, err);
                if (st)
                        return st;
        }
        rc = mdb_env_create(&m->env);
        if (!rc)
                rc = mdb_env_set_mapsize(m->env, lmdb_map_bytes(LMDB_MAP_DEBUGINFO, MAP_BYTES));
        if (!rc)
                rc = mdb_env_set_maxdbs(m->env, 4);
        if (!rc)
                rc = mdb_env_set_maxreaders(m->env, 1024);
        if (!rc)
                rc = mdb_env_open(m->env, dir, MDB_NOTLS | (read_only ? MDB_RDONLY : 0), 0644);
        if (rc) {
                set_meta_error_at(m, err, rc, "cannot open the debuginfo records");
                return rc == ENOENT ? ST_NOT_FOUND : ST_OS;
        }
        st = open_meta_databases(m, read_only, err);
        if (st)
                return st;
        *ret = steal_ptr(m);
        return ST_OK;
}

static enum status decode_meta_record(const MDB_val *key, const MDB_val *value, struct stored_object *ret,
                                      struct error *err)
{
        return record_decode(key->mv_data, key->mv_size, value->mv_data, value->mv_size, ret, err);
}

static enum status get_meta_record(struct meta *m, MDB_txn *txn, const struct build_id *id, enum object_kind kind,
                                   struct stored_object *ret, struct error *err)
{
        uint8_t bytes[RECORD_KEY_MAX];
        MDB_val key = make_meta_key(bytes, id, kind), value;
        int rc = mdb_get(txn, m->objects, &key, &value);

        return rc ? meta_set_error(err, rc, "debuginfo record") : decode_meta_record(&key, &value, ret, err);
}

enum status meta_get(struct meta *m, const struct build_id *id, enum object_kind kind, struct stored_object *ret,
                     struct error *err)
{
        MDB_txn *txn;
        enum status st;
        int rc = mdb_txn_begin(m->env, NULL, MDB_RDONLY, &txn);

        if (rc)
                return set_meta_error_at(m, err, rc, "cannot read the debuginfo records");
        st = get_meta_record(m, txn, id, kind, ret, err);
        mdb_txn_abort(txn);
        return st;
}

static enum status begin_meta_write(struct meta *m, MDB_txn **ret, struct error *err)
{
        int rc = mdb_txn_begin(m->env, NULL, 0, ret);

        return rc ? set_meta_error_at(m, err, rc, "cannot write the debuginfo records") : ST_OK;
}

/* Commit if st is ST_OK, else abort and return st. */
static enum status end_meta_write(const struct meta *m, MDB_txn *txn, enum status st, struct error *err)
{
        int rc;

        if (st) {
                mdb_txn_abort(txn);
                return st;
        }
        rc = mdb_txn_commit(txn);
        return rc ? set_meta_error_at(m, err, rc, "cannot commit a debuginfo record") : ST_OK;
}

static enum status put_meta_record(struct meta *m, MDB_txn *txn, const struct stored_object *object, struct error *err)
{
        uint8_t bytes[RECORD_KEY_MAX];
        MDB_val key = make_meta_key(bytes, &object->build_id, object->kind), value;
        _cleanup_buf_ struct buf b;
        enum status st;
        int rc;

        buf_init(&b, 4096);
        record_encode(&b, object);
        st = buf_status(&b, err, "debuginfo record");
        if (st)
                return st;
        value = (MDB_val){ .mv_size = b.size, .mv_data = b.data };
        rc = mdb_put(txn, m->objects, &key, &value, 0);
        return rc ? meta_set_error(err, rc, "cannot write a debuginfo record") : ST_OK;
}

enum status meta_put(struct meta *m, const struct stored_object *object, const struct object_links *links,
                     const struct section_note *note, struct error *err)
{
        const struct object_name name = { object->build_id, object->kind };
        MDB_txn *txn;
        enum status st = begin_meta_write(m, &txn, err);
        int rc;

        if (st)
                return st;
        st = put_meta_record(m, txn, object, err);
        rc = st || !links ? 0 : links_put(&m->links, txn, &name, links);
        if (!st && !rc && note)
                rc = section_notes_put(m->sections, txn, object, note);
        return end_meta_write(
                m, txn, rc ? meta_set_error(err, rc, "cannot write the links and sections of an object") : st, err);
}

enum status meta_begin_links_read(struct meta *m, MDB_txn **txn_ret, const struct link_databases **ret,
                                  struct error *err)
{
        int rc = mdb_txn_begin(m->env, NULL, MDB_RDONLY, txn_ret);

        *ret = &m->links;
        return rc ? meta_set_error(err, rc, "cannot read the links of objects") : ST_OK;
}

enum status meta_edit(struct meta *m, const struct object_name *names, size_t count, meta_change *change, void *context,
                      struct error *err)
{
        MDB_txn *txn;
        enum status st = begin_meta_write(m, &txn, err);
        bool changed = false;

        if (st)
                return st;
        for (size_t i = 0; !st && i < count; i++) {
                uint8_t bytes[RECORD_KEY_MAX];
                MDB_val key = make_meta_key(bytes, &names[i].build_id, names[i].kind), value;
                struct stored_object object;
                int rc = mdb_get(txn, m->objects, &key, &value);

                if (rc == MDB_NOTFOUND)
                        continue;
                st = rc ? meta_set_error(err, rc, "debuginfo record") : decode_meta_record(&key, &value, &object, err);
                if (!st && change(context, &object)) {
                        st = put_meta_record(m, txn, &object, err);
                        changed = true;
                }
        }
        if (st || changed)
                return end_meta_write(m, txn, st, err);
        mdb_txn_abort(txn);
        return ST_OK;
}

static enum status remove_meta_record(struct meta *m, MDB_txn *txn, const struct object_name *name, struct error *err)
{
        uint8_t bytes[RECORD_KEY_MAX];
        MDB_val key = make_meta_key(bytes, &name->build_id, name->kind);
        int rc = mdb_del(txn, m->objects, &key, NULL);

        if (!rc)
                rc = links_remove(&m->links, txn, name);
        if (!rc)
                rc = section_notes_remove(m->sections, txn, name);
        return rc ? meta_set_error(err, rc, "cannot remove a debuginfo record") : ST_OK;
}

enum status meta_remove(struct meta *m, const struct build_id *id, enum object_kind kind, struct error *err)
{
        MDB_txn *txn;
        enum status st = begin_meta_write(m, &txn, err);

        return st ? st
                  : end_meta_write(m, txn, remove_meta_record(m, txn, &(struct object_name){ *id, kind }, err), err);
}

/* ---- replacing all records ---- */

static bool is_same_record(const struct stored_object *a, const struct stored_object *b)
{
        return object_is_same_put(a, b) && a->quality == b->quality && a->is_pinned == b->is_pinned &&
               strcmp(a->tag, b->tag) == 0;
}

static enum status put_meta_entry(struct meta *m, MDB_txn *txn, const struct meta_entry *e, struct error *err)
{
        struct stored_object now, to = e->object;
        const struct object_name name = { to.build_id, to.kind };
        enum status st = get_meta_record(m, txn, &to.build_id, to.kind, &now, err);
        int rc;

        if (st ? st != ST_NOT_FOUND : is_same_record(&now, &to))
                return st;
        if (!st && memcmp(now.sha256, to.sha256, sizeof now.sha256) == 0 && now.used_unix_s > to.used_unix_s)
                to.used_unix_s = now.used_unix_s;
        st = put_meta_record(m, txn, &to, err);
        if (st)
                return st;
        rc = e->has_links ? links_put(&m->links, txn, &name, &e->links) : 0;
        if (!rc)
                rc = section_notes_put(m->sections, txn, &to, &e->note);
        return rc ? meta_set_error(err, rc, "cannot write the links and sections of an object") : ST_OK;
}

static int compare_entry_name(const void *name, const void *entry)
{
        const struct stored_object *o = &((const struct meta_entry *)entry)->object;

        return object_name_compare(name, &(struct object_name){ o->build_id, o->kind });
}

struct name_list {
        struct object_name *items; /* owned */
        size_t count, capacity;
};

/* The records that are not among the entries. */
static enum status list_foreign_records(struct meta *m, MDB_txn *txn, const struct meta_entry *entries, size_t count,
                                        struct name_list *to, struct error *err)
{
        struct stored_object o;
        enum status st = ST_OK;
        MDB_cursor *cursor;
        MDB_val key, value;
        int rc = mdb_cursor_open(txn, m->objects, &cursor);

        if (rc)
                return meta_set_error(err, rc, "cannot list the debuginfo records");
        for (rc = mdb_cursor_get(cursor, &key, &value, MDB_FIRST); !rc && !st;
             rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
                struct object_name name;

                st = decode_meta_record(&key, &value, &o, err);
                if (st)
                        break;
                name = (struct object_name){ o.build_id, o.kind };
                if (count && bsearch(&name, entries, count, sizeof *entries, compare_entry_name))
                        continue;
                if (!array_reserve(&to->items, &to->capacity, to->count))
                        st = error_no_memory(err);
                else
                        to->items[to->count++] = name;
        }
        mdb_cursor_close(cursor);
        return st || !rc || rc == MDB_NOTFOUND ? st : meta_set_error(err, rc, "cannot list the debuginfo records");
}

enum status meta_replace_all(struct meta *m, const struct meta_entry *entries, size_t count, struct error *err)
{
        struct name_list foreign = { 0 };
        MDB_txn *txn;
        enum status st = begin_meta_write(m, &txn, err);

        if (st)
                return st;
        st = list_foreign_records(m, txn, entries, count, &foreign, err);
        for (size_t i = 0; !st && i < foreign.count; i++)
                st = remove_meta_record(m, txn, &foreign.items[i], err);
        free(foreign.items);
        for (size_t i = 0; !st && i < count; i++)
                st = put_meta_entry(m, txn, &entries[i], err);
        return end_meta_write(m, txn, st, err);
}

/* Compare inside the transaction that removes the record: other transactions record uses at any time. */
enum status meta_remove_if_unchanged(struct meta *m, const struct stored_object *object, struct error *err)
{
        const struct object_name name = { object->build_id, object->kind };
        struct stored_object now;
        MDB_txn *txn;
        enum status st = begin_meta_write(m, &txn, err);

        if (st)
                return st;
        st = get_meta_record(m, txn, &name.build_id, name.kind, &now, err);
        if (!st && (!object_is_same_put(&now, object) || now.is_pinned || now.used_unix_s != object->used_unix_s))
                st = error_set(err, ST_NOT_FOUND, "the object was changed concurrently");
        return end_meta_write(m, txn, st ? st : remove_meta_record(m, txn, &name, err), err);
}

enum status meta_find_section(struct meta *m, const struct stored_object *object, const char *name,
                              uint64_t *offset_ret, uint64_t *size_ret, struct error *err)
{
        struct section_note note;
        MDB_txn *txn;
        enum status st;
        int rc = mdb_txn_begin(m->env, NULL, MDB_RDONLY, &txn);

        if (rc)
                return set_meta_error_at(m, err, rc, "cannot read the debuginfo records");
        rc = section_notes_get(m->sections, txn, object, &note);
        if (rc == MDB_NOTFOUND)
                st = error_set(err, ST_UNSUPPORTED, "its section list is not stored");
        else if (rc)
                st = meta_set_error(err, rc, "sections of an object");
        else
                st = section_list_find(note.list, note.size, name, offset_ret, size_ret, err);
        mdb_txn_abort(txn);
        return st;
}

enum status meta_read_notes(struct meta *m, const struct stored_object *object, struct buf *links_ret,
                            struct buf *sections_ret, struct error *err)
{
        uint8_t bytes[RECORD_KEY_MAX];
        MDB_val key = make_meta_key(bytes, &object->build_id, object->kind), value;
        struct section_note note = { 0 };
        MDB_txn *txn;
        enum status st = ST_OK;
        int rc = mdb_txn_begin(m->env, NULL, MDB_RDONLY, &txn);

        if (rc)
                return set_meta_error_at(m, err, rc, "cannot read the debuginfo records");
        rc = mdb_get(txn, m->links.links, &key, &value);
        if (!rc)
                st = buf_append(links_ret, value.mv_data, value.mv_size);
        if (!rc || rc == MDB_NOTFOUND)
                rc = section_notes_get(m->sections, txn, object, &note);
        if (!rc && !st)
                st = buf_append(sections_ret, note.list, note.size);
        mdb_txn_abort(txn);
        if (rc && rc != MDB_NOTFOUND)
                return meta_set_error(err, rc, "links and sections of an object");
        return st ? error_no_memory(err) : ST_OK;
}

enum status meta_list_next(struct meta *m, const struct stored_object *after, struct stored_object *ret, size_t n,
                           size_t *count_ret, struct error *err)
{
        uint8_t bytes[RECORD_KEY_MAX];
        MDB_val key = { 0 }, value;
        MDB_txn *txn;
        MDB_cursor *cursor = NULL;
        enum status st = ST_OK;
        size_t count = 0;
        int rc = mdb_txn_begin(m->env, NULL, MDB_RDONLY, &txn);

        if (rc)
                return set_meta_error_at(m, err, rc, "cannot read the debuginfo records");
        rc = mdb_cursor_open(txn, m->objects, &cursor);
        if (!rc && after) {
                MDB_val from = make_meta_key(bytes, &after->build_id, after->kind);

                key = from;
                rc = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
                if (!rc && key.mv_size == from.mv_size && memcmp(key.mv_data, bytes, from.mv_size) == 0)
                        rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
        } else if (!rc) {
                rc = mdb_cursor_get(cursor, &key, &value, MDB_FIRST);
        }
        for (; !rc && !st && count < n; count++) {
                st = decode_meta_record(&key, &value, &ret[count], err);
                if (!st)
                        rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
        }
        if (cursor)
                mdb_cursor_close(cursor);
        mdb_txn_abort(txn);
        if (!st && rc && rc != MDB_NOTFOUND)
                st = meta_set_error(err, rc, "cannot list the debuginfo records");
        if (st)
                return st;
        *count_ret = count;
        return ST_OK;
}
