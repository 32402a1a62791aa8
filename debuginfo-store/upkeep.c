/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to an object after it was stored: its use is noted, it is pinned, it is removed. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "debuginfo-store/store_internal.h"

/* Where nothing is published; its file then has no other user than who has it open. */
static enum status remove_locked(struct debuginfo_store *store, const struct stored_object *object, bool exactly, struct error *err)
{
        _cleanup_free_ char *path = object_path(store, object);
        enum status st;

        if (!path)
                return error_no_memory(err);
        st = exactly ? meta_remove_exactly(store->meta, object, err) : meta_remove(store->meta, &object->build_id, object->kind, err);
        if (st)
                return st;
        return unlink(path) < 0 && errno != ENOENT ? error_os(err, errno, "cannot remove '%s'", path) : ST_OK;
}

enum status debuginfo_store_remove(struct debuginfo_store *store, const struct build_id *id, enum object_kind kind,
                                   struct error *err)
{
        struct stored_object object;
        enum status st;

        pthread_mutex_lock(&store->publish);
        st = debuginfo_store_stat(store, id, kind, &object, err);
        if (!st)
                st = remove_locked(store, &object, false, err);
        pthread_mutex_unlock(&store->publish);
        return st;
}

enum status debuginfo_store_remove_exactly(struct debuginfo_store *store, const struct stored_object *object,
                                           struct error *err)
{
        enum status st;

        pthread_mutex_lock(&store->publish);
        st = remove_locked(store, object, true, err);
        pthread_mutex_unlock(&store->publish);
        return st;
}

/* ---- use and pins ---- */

bool object_use_is_due(const struct stored_object *object)
{
        return wall_clock_ns() / 1000000000 - object->used_unix_s >= OBJECT_USE_STEP_S;
}

static bool note_use(void *context, struct stored_object *object)
{
        const int64_t *now = context;

        if (*now - object->used_unix_s < OBJECT_USE_STEP_S)
                return false;
        object->used_unix_s = *now;
        return true;
}

/* Most were used a moment ago, and to see that needs no writer's lock. */
static enum status leave_out_recent(struct debuginfo_store *store, const struct object_name *names, size_t count,
                                    int64_t now, struct object_name *ret, size_t *count_ret, struct error *err)
{
        size_t n = 0;

        for (size_t i = 0; i < count; i++) {
                struct stored_object o;
                enum status st = meta_get(store->meta, &names[i].build_id, names[i].kind, &o, err);

                if (st && st != ST_NOT_FOUND)
                        return st;
                if (!st && note_use(&now, &o))
                        ret[n++] = names[i];
        }
        *count_ret = n;
        return ST_OK;
}

enum status debuginfo_store_used(struct debuginfo_store *store, const struct object_name *names, size_t count,
                                 struct error *err)
{
        _cleanup_free_ struct object_name *due = calloc(count + 1, sizeof *due);
        int64_t now = wall_clock_ns() / 1000000000;
        enum status st = due ? leave_out_recent(store, names, count, now, due, &count, err) : error_no_memory(err);

        return st || !count ? st : meta_edit(store->meta, due, count, note_use, &now, err);
}

static bool set_pin(void *context, struct stored_object *object)
{
        const bool *pinned = context;
        bool differs = object->is_pinned != *pinned;

        object->is_pinned = *pinned;
        return differs;
}

enum status debuginfo_store_pin(struct debuginfo_store *store, const struct build_id *id, enum object_kind kind,
                                bool pinned, struct error *err)
{
        const struct object_name name = { *id, kind };
        struct stored_object object;
        enum status st;

        pthread_mutex_lock(&store->publish); /* what replaces the object takes its pin over */
        st = debuginfo_store_stat(store, id, kind, &object, err);
        if (!st)
                st = meta_edit(store->meta, &name, 1, set_pin, &pinned, err);
        pthread_mutex_unlock(&store->publish);
        return st;
}
