/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/published_filter.h"

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "debuginfo-store/build_id_filter.h"
#include "package-trees/package_scan.h"
#include "server/core/debuginfo_space.h"

#define ALIASES_MAX 64 /* of one object */

void published_filter_init(struct published_filter *p)
{
        *p = (struct published_filter){ 0 };
        pthread_mutex_init(&p->lock, NULL);
}

void published_filter_deinit(struct published_filter *p)
{
        pthread_mutex_destroy(&p->lock);
        free(p->file);
}

/* ---- the build-ids ---- */

struct key_list {
        struct debuginfo_store *store;
        struct error *err;
        uint64_t *keys; /* owned */
        size_t count, capacity;
};

static void deinit_key_list(struct key_list *l)
{
        free(l->keys);
}

static enum status add_filter_key(struct key_list *l, const struct build_id *id)
{
        if (l->count >= LIMIT_FILTER_IDS)
                return error_set(l->err, ST_TOO_BIG, "more than %d build-ids: no filter of them is made",
                                 LIMIT_FILTER_IDS);
        if (l->count == l->capacity) {
                size_t capacity = l->capacity ? 2 * l->capacity : 1024;
                uint64_t *keys = reallocarray(l->keys, capacity, sizeof *keys);

                if (!keys)
                        return error_no_memory(l->err);
                l->keys = keys;
                l->capacity = capacity;
        }
        l->keys[l->count++] = build_id_filter_key(id);
        return ST_OK;
}

static enum status add_stored_object(void *context, const struct stored_object *o)
{
        struct key_list *l = context;
        struct build_id aliases[ALIASES_MAX];
        size_t count = 0;
        enum status st = add_filter_key(l, &o->build_id);

        if (!st)
                st = debuginfo_store_list_aliases(l->store, &o->build_id, aliases, ALIASES_MAX, &count, l->err);
        for (size_t i = 0; !st && i < count; i++)
                st = add_filter_key(l, &aliases[i]);
        return st;
}

static enum status add_scanned_object(void *context, const struct package_object *o, const struct package_file *f)
{
        (void)f;
        return add_filter_key(context, &o->build_id);
}

static enum status make_filter(struct debuginfo_space *s, struct buf *to, struct error *err)
{
        __attribute__((cleanup(deinit_key_list))) struct key_list l = { .store = s->objects, .err = err };
        struct package_scan *scan = s->scan_demand.scan;
        enum status st = ST_OK;

        if (s->objects)
                st = debuginfo_store_list(s->objects, add_stored_object, &l, err);
        if (!st && scan)
                st = package_scan_list(scan, NULL, add_scanned_object, &l, err);
        return st ? st : build_id_filter_write(l.keys, l.count, to, err);
}

/* ---- the file ---- */

/* Caller holds the lock. */
static enum status remake_filter(struct debuginfo_space *s, struct error *err)
{
        struct published_filter *p = &s->published_filter;
        _cleanup_buf_ struct buf file;
        enum status st;

        buf_init(&file, LIMIT_FILTER_BYTES);
        st = make_filter(s, &file, err);
        if (st)
                return st;
        free(p->file);
        p->file = file.data;
        p->size = file.size;
        p->made_ns = monotonic_ns();
        buf_init(&file, 0); /* its bytes were taken */
        return ST_OK;
}

enum status published_filter_get(struct debuginfo_space *s, uint8_t **ret, size_t *size_ret, struct error *err)
{
        struct published_filter *p = &s->published_filter;
        enum status st = ST_OK;

        if (s->federation)
                return error_set(err, ST_NOT_FOUND, "this service asks upstreams: it cannot tell what is absent");
        if (s->scan_demand.scan && !package_scan_has_walked(s->scan_demand.scan))
                return error_set(err, ST_NOT_FOUND, "the scanned trees are being read for the first time");
        pthread_mutex_lock(&p->lock);
        if (!p->file || monotonic_ns() - p->made_ns > (int64_t)PUBLISHED_FILTER_S * 1000000000)
                st = remake_filter(s, err);
        *ret = st ? NULL : malloc(p->size);
        *size_ret = p->size;
        if (*ret)
                memcpy(*ret, p->file, p->size);
        else if (!st)
                st = error_no_memory(err);
        pthread_mutex_unlock(&p->lock);
        return st;
}
