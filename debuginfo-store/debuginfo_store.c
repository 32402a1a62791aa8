/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An object is a file and a record (meta.c); this file has the operations on records and those that remove both.
 * Storing an object is in object_upload.c, reading its content in object_reader.c, garbage collection in gc.c.
 *
 * Order: paths and temporary files, open and close, finding, listing, aliases and companions, offers, removal, use,
 * quality and pins.
 *
 * Listing reads the records in slices, each with its own read transaction: a long one would keep LMDB from reusing
 * pages.
 *
 * Lock: `publish` serializes all operations that replace or remove an object or depend on its record staying the same:
 * publishing, removal, quality, pins; of objects in an object store the thread of object_commit.h holds it. Reads take
 * no lock, and neither does the time of use: the removal of the garbage
 * collection compares it in the transaction that removes the record (meta_remove_if_unchanged()).
 */
#include "debuginfo-store/debuginfo_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "common/text.h"
#include "debuginfo-store/debuginfo_store_internal.h"
#include "storage/local_storage.h"
#include "storage/s3/store_address.h"

#define LIST_SLICE 64

int object_create_temporary(const struct debuginfo_store *store, struct error *err)
{
        _cleanup_free_ char *dir = path_join(store->dir, "incoming");
        int fd;

        if (!dir) {
                error_no_memory(err);
                return -1;
        }
        fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        if (fd < 0)
                error_os(err, errno, "cannot create a temporary file in '%s'", dir);
        return fd;
}

static unsigned upload_threads = LIMIT_UPLOAD_THREADS;

void set_debuginfo_upload_threads(unsigned count)
{
        upload_threads = count;
}

static void cleanup_store(struct debuginfo_store **s)
{
        debuginfo_store_close(*s);
}

enum status debuginfo_store_set_address(const char *dir, const char *url, struct error *err)
{
        return store_address_set(dir, url, "objects", "objects", dir, err);
}

static enum status make_store_folders(const char *dir, bool is_remote, struct error *err)
{
        _cleanup_free_ char *incoming = path_join(dir, "incoming");
        _cleanup_free_ char *objects = path_join(dir, "objects"), *partial = path_join(dir, "partial");
        enum status st = incoming && objects && partial ? ST_OK : error_no_memory(err);

        if (!st && !is_remote)
                st = file_make_dirs(objects, err);
        if (!st)
                st = file_remove_tree(incoming, err); /* temporary files of a crashed process */
        if (!st)
                st = file_make_dirs(incoming, err);
        if (!st)
                st = file_make_dirs(partial, err);
        return st ? st : file_sync_filesystem(dir, err);
}

static enum status open_store_objects(struct debuginfo_store *s, const char *url, struct error *err)
{
        _cleanup_free_ char *meta_dir = path_join(s->dir, "meta");
        enum status st;

        if (!meta_dir)
                return error_no_memory(err);
        st = url ? remote_objects_open(s, url, err) : local_storage_open_staged(s->dir, "incoming", &s->storage, err);
        if (!st)
                st = meta_open(meta_dir, s->is_read_only && !s->is_replica, &s->meta, err);
        if (st || !s->table)
                return st;
        st = object_table_is_read(s->table) ? remote_objects_load(s, err) : ST_OS;
        s->must_load = st;
        return st == ST_OS && !s->is_read_only ? ST_OK : st;
}

static enum status open_debuginfo_store(const char *dir, bool read_only, bool is_replica, struct debuginfo_store **ret,
                                        struct error *err)
{
        _cleanup_(cleanup_store) struct debuginfo_store *s = calloc(1, sizeof *s);
        _cleanup_free_ char *url = NULL;
        enum status st;

        if (!s)
                return error_no_memory(err);
        s->is_read_only = read_only;
        s->is_replica = is_replica;
        pthread_mutex_init(&s->publish, NULL);
        active_uploads_init(&s->active_uploads);
        sem_init(&s->finishing, 0, upload_threads);
        object_reader_register_metrics();
        stored_tables_register_metrics();
        st = frame_cache_create(LIMIT_FRAMES_BYTES, &s->frames, err);
        if (st)
                return st;
        s->dir = strdup(dir);
        st = s->dir ? store_address_read(dir, &url, err) : error_no_memory(err);
        if (!st && is_replica && !url)
                st = error_set(err, ST_USAGE, "the objects of '%.150s' are in no object store", dir);
        if (!st && (!read_only || is_replica))
                st = make_store_folders(dir, url, err);
        if (!st)
                st = open_store_objects(s, url, err);
        if (st)
                return st;
        *ret = steal_ptr(s);
        return ST_OK;
}

enum status debuginfo_store_open(const char *dir, bool read_only, struct debuginfo_store **ret, struct error *err)
{
        return open_debuginfo_store(dir, read_only, false, ret, err);
}

enum status debuginfo_store_open_replica(const char *dir, struct debuginfo_store **ret, struct error *err)
{
        return open_debuginfo_store(dir, true, true, ret, err);
}

enum status debuginfo_store_check_records(struct debuginfo_store *store, struct error *err)
{
        if (!store->table || object_table_is_read(store->table))
                return ST_OK;
        return error_set(err, ST_BUSY, "the object store has not answered since the service was started");
}

void debuginfo_store_close(struct debuginfo_store *store)
{
        if (!store)
                return;
        remote_objects_close(store);
        meta_close(store->meta);
        storage_close(store->storage);
        pthread_mutex_destroy(&store->publish);
        sem_destroy(&store->finishing);
        active_uploads_deinit(&store->active_uploads);
        frame_cache_destroy(store->frames);
        free(store->dir);
        free(store);
}

enum status debuginfo_store_stat(struct debuginfo_store *store, const struct build_id *id, enum object_kind kind,
                                 struct stored_object *ret, struct error *err)
{
        enum status st = meta_get(store->meta, id, kind, ret, err);
        char hex[BUILD_ID_HEX_MAX];

        if (st == ST_NOT_FOUND)
                return error_set(err, st, "no %s is stored for build-id %s", object_kind_name(kind),
                                 build_id_hex(id, hex));
        return st;
}

enum status debuginfo_store_find(struct debuginfo_store *store, const struct build_id *id, enum object_kind kind,
                                 struct stored_object *ret, struct error *err)
{
        enum status st = debuginfo_store_stat(store, id, kind, ret, err);

        if (st == ST_NOT_FOUND && kind == OBJECT_DEBUGINFO)
                st = meta_get(store->meta, id, OBJECT_SUPPLEMENTARY, ret, NULL);
        else if (st == ST_NOT_FOUND && kind == OBJECT_SUPPLEMENTARY)
                st = meta_get(store->meta, id, OBJECT_DEBUGINFO, ret, NULL);
        return st;
}

enum status object_find_incumbent(struct debuginfo_store *store, const struct build_id *id, enum object_kind kind,
                                  struct stored_object *ret, struct error *err)
{
        const enum object_kind kinds[] = { kind, OBJECT_DEBUGINFO, OBJECT_EXECUTABLE };
        struct stored_object best, one;
        bool found = false;

        for (size_t i = 0; i < (kind == OBJECT_SYMBOLS ? 3 : 1); i++) {
                enum status st = meta_get(store->meta, id, kinds[i], &one, err);

                if (st && st != ST_NOT_FOUND)
                        return st;
                if (!st && (!found || one.quality > best.quality)) {
                        best = one;
                        found = true;
                }
        }
        if (!found)
                return ST_NOT_FOUND;
        *ret = best;
        return ST_OK;
}

/* ---- listing ---- */

enum status debuginfo_store_list(struct debuginfo_store *store, debuginfo_store_each *each, void *context,
                                 struct error *err)
{
        _cleanup_free_ struct stored_object *slice = calloc(LIST_SLICE, sizeof *slice);
        struct stored_object last;
        const struct stored_object *after = NULL;

        if (!slice)
                return error_no_memory(err);
        for (;;) {
                size_t n;
                enum status st = meta_list_next(store->meta, after, slice, LIST_SLICE, &n, err);

                if (st)
                        return st;
                if (n == 0)
                        return ST_OK;
                for (size_t i = 0; i < n; i++) {
                        st = each(context, &slice[i]);
                        if (st)
                                return st;
                }
                last = slice[n - 1];
                after = &last;
        }
}

/* ---- aliases and companions ---- */

static enum status is_any_kind_stored(struct debuginfo_store *store, const struct build_id *id, bool *ret,
                                      struct error *err)
{
        enum status st = ST_NOT_FOUND;

        for (unsigned kind = 0; kind < OBJECT_KIND_COUNT && st == ST_NOT_FOUND; kind++) {
                struct stored_object object;

                st = meta_get(store->meta, id, kind, &object, err);
        }
        *ret = !st;
        return st == ST_NOT_FOUND ? ST_OK : st;
}

enum status debuginfo_store_resolve_alias(struct debuginfo_store *store, const struct build_id *id,
                                          struct build_id *ret, struct error *err)
{
        const struct link_databases *links;
        bool found;
        MDB_txn *txn;
        enum status st = is_any_kind_stored(store, id, &found, err);
        int rc;

        if (st)
                return st;
        if (found) {
                *ret = *id;
                return ST_OK;
        }
        st = meta_begin_links_read(store->meta, &txn, &links, err);
        if (st)
                return st;
        rc = links_resolve(links, txn, id, ret);
        mdb_txn_abort(txn);
        return rc ? meta_set_error(err, rc, "an alias of a build-id") : ST_OK;
}

static bool contains_build_id(const struct build_id *ids, size_t count, const struct build_id *id)
{
        for (size_t i = 0; i < count; i++)
                if (build_id_equal(&ids[i], id))
                        return true;
        return false;
}

/* Aliases of all kinds; those that resolve to another object are skipped. */
enum status debuginfo_store_list_aliases(struct debuginfo_store *store, const struct build_id *id, struct build_id *ret,
                                         size_t max, size_t *count_ret, struct error *err)
{
        const struct link_databases *links;
        MDB_txn *txn;
        size_t n = 0;
        enum status st = meta_begin_links_read(store->meta, &txn, &links, err);
        int rc = 0;

        if (st)
                return st;
        for (unsigned kind = 0; !rc && kind < OBJECT_KIND_COUNT; kind++) {
                struct build_id found[OBJECT_ALIASES_MAX], leads_to;
                size_t count;

                rc = links_list_aliases(links, txn, &(struct object_name){ *id, kind }, found, &count);
                for (size_t i = 0; !rc && i < count && n < max; i++)
                        if (!contains_build_id(ret, n, &found[i]) &&
                            links_resolve(links, txn, &found[i], &leads_to) == 0 && build_id_equal(&leads_to, id))
                                ret[n++] = found[i];
        }
        mdb_txn_abort(txn);
        if (rc)
                return meta_set_error(err, rc, "the aliases of an object");
        *count_ret = n;
        return ST_OK;
}

enum status debuginfo_store_get_companions(struct debuginfo_store *store, const struct object_name *name,
                                           struct object_name **ret, size_t *count_ret, struct error *err)
{
        const struct link_databases *links;
        MDB_txn *txn;
        enum status st = meta_begin_links_read(store->meta, &txn, &links, err);
        int rc;

        if (st)
                return st;
        rc = links_get_companions(links, txn, name, ret, count_ret);
        mdb_txn_abort(txn);
        return rc ? meta_set_error(err, rc, "the companions of an object") : ST_OK;
}

enum status debuginfo_store_list_companions(struct debuginfo_store *store, struct object_name **ret, size_t *count_ret,
                                            struct error *err)
{
        const struct link_databases *links;
        MDB_txn *txn;
        enum status st = meta_begin_links_read(store->meta, &txn, &links, err);
        int rc;

        if (st)
                return st;
        rc = links_list_companions(links, txn, ret, count_ret);
        mdb_txn_abort(txn);
        if (rc)
                return meta_set_error(err, rc, "the companions of objects");
        if (*count_ret)
                qsort(*ret, *count_ret, sizeof **ret, object_name_compare);
        return ST_OK;
}

/* ---- offers of uploaders ---- */

static enum status find_offer_incumbent(struct debuginfo_store *store, const struct build_id *id, enum object_kind kind,
                                        struct stored_object *ret, struct error *err)
{
        return kind == OBJECT_SYMBOLS ? object_find_incumbent(store, id, kind, ret, err)
                                      : debuginfo_store_find(store, id, kind, ret, err);
}

/* @param rival_ret the stored object of at least this quality, if the offer is not wanted. */
static enum status assess_offer(struct debuginfo_store *store, struct object_offer *o, struct object_name *rival_ret,
                                struct error *err)
{
        struct stored_object have;
        struct build_id owner;
        enum status st = find_offer_incumbent(store, &o->build_id, o->kind, &have, err);

        if (st == ST_NOT_FOUND && debuginfo_store_resolve_alias(store, &o->build_id, &owner, NULL) == ST_OK)
                st = find_offer_incumbent(store, &owner, o->kind, &have, err);
        if (st && st != ST_NOT_FOUND)
                return st;
        o->is_wanted = st || o->quality > have.quality;
        o->reason = st ? "unknown" : o->is_wanted ? "better" : "same_or_better";
        if (!o->is_wanted)
                *rival_ret = (struct object_name){ have.build_id, have.kind };
        return ST_OK;
}

enum status debuginfo_store_assess_offers(struct debuginfo_store *store, struct object_offer *offers, size_t count,
                                          struct error *err)
{
        _cleanup_free_ struct object_name *rivals = calloc(count + 1, sizeof *rivals);
        _cleanup_free_ struct object_offer **unwanted = calloc(count + 1, sizeof *unwanted);
        size_t n = 0;
        enum status st = rivals && unwanted ? ST_OK : error_no_memory(err);

        for (size_t i = 0; !st && i < count; i++) {
                if (offers[i].reason)
                        continue;
                st = assess_offer(store, &offers[i], &rivals[n], err);
                if (!st && !offers[i].is_wanted)
                        unwanted[n++] = &offers[i];
        }
        if (!st)
                st = debuginfo_store_note_use(store, rivals, n, err);
        for (size_t i = 0; !st && i < n; i++) /* objects removed before their use was recorded are wanted */
                st = assess_offer(store, unwanted[i], &rivals[i], err);
        return st;
}

/* ---- removal ---- */

/* Readers that have the file open can still read it. */
static enum status remove_local_object(struct debuginfo_store *store, const struct stored_object *object, bool exactly,
                                       struct error *err)
{
        _cleanup_free_ char *key = object_format_key(object);
        enum status st = !key      ? error_no_memory(err)
                         : exactly ? meta_remove_if_unchanged(store->meta, object, err)
                                   : meta_remove(store->meta, &object->build_id, object->kind, err);

        if (st)
                return st;
        st = storage_remove(store->storage, key, err);
        return st == ST_NOT_FOUND ? ST_OK : st;
}

/* A commit to a table of objects takes the lock itself. */
static void lock_publishing(struct debuginfo_store *store)
{
        if (!store->is_remote)
                pthread_mutex_lock(&store->publish);
}

static void unlock_publishing(struct debuginfo_store *store)
{
        if (!store->is_remote)
                pthread_mutex_unlock(&store->publish);
}

static enum status edit_object_record(struct debuginfo_store *store, const struct object_name *name,
                                      meta_change *change, void *context, struct error *err)
{
        return store->is_remote ? remote_objects_edit(store, name, change, context, err)
                                : meta_edit(store->meta, name, 1, change, context, err);
}

enum status debuginfo_store_remove(struct debuginfo_store *store, const struct build_id *id, enum object_kind kind,
                                   struct error *err)
{
        struct stored_object object;
        enum status st;

        lock_publishing(store);
        st = debuginfo_store_stat(store, id, kind, &object, err);
        if (!st)
                st = store->is_remote ? remote_objects_remove(store, &object, err)
                                      : remove_local_object(store, &object, false, err);
        unlock_publishing(store);
        return st;
}

enum status debuginfo_store_remove_unchanged(struct debuginfo_store *store, const struct stored_object *objects,
                                             size_t count, bool *removed, struct error *err)
{
        enum status first = ST_OK;

        if (store->is_remote)
                return remote_objects_remove_unchanged(store, objects, count, removed, err);
        for (size_t i = 0; i < count; i++) {
                enum status st;

                pthread_mutex_lock(&store->publish);
                st = remove_local_object(store, &objects[i], true, first ? NULL : err);
                pthread_mutex_unlock(&store->publish);
                removed[i] = !st;
                first = first || st == ST_NOT_FOUND ? first : st;
        }
        return first;
}

enum status debuginfo_store_remove_if_unchanged(struct debuginfo_store *store, const struct stored_object *object,
                                                struct error *err)
{
        bool removed = false;
        enum status st = debuginfo_store_remove_unchanged(store, object, 1, &removed, err);

        return st || removed ? st : error_set(err, ST_NOT_FOUND, "the object was changed concurrently");
}

/* ---- use and pins ---- */

bool object_is_use_due(const struct stored_object *object)
{
        return wall_clock_ns() / 1000000000 - object->used_unix_s >= OBJECT_USE_STEP_S;
}

static bool update_use_time(void *context, struct stored_object *object)
{
        const int64_t *now = context;

        if (*now - object->used_unix_s < OBJECT_USE_STEP_S)
                return false;
        object->used_unix_s = *now;
        return true;
}

/* Most objects have a recent use recorded, which a read transaction can check without the writer's lock. */
static enum status select_use_due(struct debuginfo_store *store, const struct object_name *names, size_t count,
                                  int64_t now, struct object_name *ret, size_t *count_ret, struct error *err)
{
        size_t n = 0;

        for (size_t i = 0; i < count; i++) {
                struct stored_object o;
                enum status st = meta_get(store->meta, &names[i].build_id, names[i].kind, &o, err);

                if (st && st != ST_NOT_FOUND)
                        return st;
                if (!st && update_use_time(&now, &o))
                        ret[n++] = names[i];
        }
        *count_ret = n;
        return ST_OK;
}

enum status debuginfo_store_note_use(struct debuginfo_store *store, const struct object_name *names, size_t count,
                                     struct error *err)
{
        _cleanup_free_ struct object_name *due = calloc(count + 1, sizeof *due);
        int64_t now = wall_clock_ns() / 1000000000;
        enum status st = due ? select_use_due(store, names, count, now, due, &count, err) : error_no_memory(err);

        return st || !count ? st : meta_edit(store->meta, due, count, update_use_time, &now, err);
}

static bool set_quality(void *context, struct stored_object *object)
{
        const struct stored_object *to = context;

        if (memcmp(object->sha256, to->sha256, sizeof object->sha256) != 0 || object->quality == to->quality)
                return false;
        object->quality = to->quality;
        return true;
}

enum status debuginfo_store_set_quality(struct debuginfo_store *store, const struct stored_object *seen,
                                        enum symbol_quality quality, struct error *err)
{
        const struct object_name name = { seen->build_id, seen->kind };
        struct stored_object to = *seen;
        enum status st;

        to.quality = quality;
        lock_publishing(store);
        st = edit_object_record(store, &name, set_quality, &to, err);
        unlock_publishing(store);
        return st;
}

static bool set_pin(void *context, struct stored_object *object)
{
        const bool *pinned = context;
        bool differs = object->is_pinned != *pinned;

        object->is_pinned = *pinned;
        return differs;
}

enum status debuginfo_store_set_pin(struct debuginfo_store *store, const struct build_id *id, enum object_kind kind,
                                    bool pinned, struct error *err)
{
        const struct object_name name = { *id, kind };
        struct stored_object object;
        enum status st;

        lock_publishing(store); /* serialized with publishing, which copies the pin to a replacement */
        st = debuginfo_store_stat(store, id, kind, &object, err);
        if (!st)
                st = edit_object_record(store, &name, set_pin, &pinned, err);
        unlock_publishing(store);
        return st;
}
