/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo-store/store.h"

#include <fcntl.h>
#include <string.h>

#include "common/file.h"
#include "common/limits.h"
#include "debuginfo-store/store_internal.h"

#define LIST_SLICE 64

char *object_path(const struct debuginfo_store *store, const struct stored_object *object)
{
        char hex[BUILD_ID_HEX_MAX];
        char *ret;

        build_id_hex(&object->build_id, hex);
        if (asprintf(&ret, "%s/objects/%.2s/%s/%s-%02x%02x%02x%02x%02x%02x%02x%02x.zst", store->dir, hex, hex + 2,
                     object_kind_name(object->kind), object->sha256[0], object->sha256[1], object->sha256[2],
                     object->sha256[3], object->sha256[4], object->sha256[5], object->sha256[6],
                     object->sha256[7]) < 0)
                return NULL;
        return ret;
}

int object_scratch(const struct debuginfo_store *store, struct error *err)
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

static void cleanup_store(struct debuginfo_store **s)
{
        debuginfo_store_close(*s);
}

enum status debuginfo_store_open(const char *dir, bool read_only, struct debuginfo_store **ret, struct error *err)
{
        _cleanup_(cleanup_store) struct debuginfo_store *s = calloc(1, sizeof *s);
        _cleanup_free_ char *meta_dir = path_join(dir, "meta");
        _cleanup_free_ char *incoming = path_join(dir, "incoming");
        _cleanup_free_ char *objects = path_join(dir, "objects"), *partial = path_join(dir, "partial");
        enum status st;

        if (!s)
                return error_no_memory(err);
        pthread_mutex_init(&s->publish, NULL);
        live_uploads_init(&s->live);
        st = frames_create(LIMIT_FRAMES_BYTES, &s->frames, err);
        if (st)
                return st;
        s->dir = strdup(dir);
        if (!s->dir || !meta_dir || !incoming || !objects || !partial)
                return error_no_memory(err);
        if (!read_only) {
                st = file_make_dirs(objects, err);
                if (!st)
                        st = file_remove_tree(incoming, err); /* what a crash left half */
                if (!st)
                        st = file_make_dirs(incoming, err);
                if (!st)
                        st = file_make_dirs(partial, err);
                if (!st)
                        st = file_sync_filesystem(dir, err);
                if (st)
                        return st;
        }
        st = meta_open(meta_dir, read_only, &s->meta, err);
        if (st)
                return st;
        *ret = steal_ptr(s);
        return ST_OK;
}

void debuginfo_store_close(struct debuginfo_store *store)
{
        if (!store)
                return;
        meta_close(store->meta);
        pthread_mutex_destroy(&store->publish);
        live_uploads_deinit(&store->live);
        frames_destroy(store->frames);
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

enum status object_rival(struct debuginfo_store *store, const struct build_id *id, enum object_kind kind,
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
                enum status st = meta_next(store->meta, after, slice, LIST_SLICE, &n, err);

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
