/* SPDX-License-Identifier: Apache-2.0 */
#include "server/scanned.h"

#include "common/cleanup.h"
#include "common/file.h"

#define ALIKE_MAX 16 /* objects whose build-ids begin alike */

/* What the index has of it; false when that cannot be said. */
static bool look_up(struct server *s, const struct build_id *id, struct symbol_object *ret)
{
        struct symbol_view *view;
        enum status st = symbol_view_begin(s->symbols, &view, NULL);

        if (st)
                return false;
        st = symbol_view_object(view, id, ret, NULL);
        symbol_view_end(view);
        return !st;
}

void scanned_want(struct server *s, const struct build_id *ids, size_t count, struct build_id *rest_ret, size_t *rest_count_ret)
{
        size_t rest = 0;

        for (size_t i = 0; i < count; i++) {
                uint8_t kinds = scan_kinds(s->scan, &ids[i]);
                struct symbol_object object;

                if (kinds && look_up(s, &ids[i], &object) && object.state == OBJECT_ABSENT)
                        indexer_add(s->indexer, &ids[i], OBJECT_DEBUGINFO);
                if (!(kinds & FOUND_DEBUGINFO))
                        rest_ret[rest++] = ids[i];
        }
        *rest_count_ret = rest;
}

void scanned_ask(struct server *s, const struct build_id *id)
{
        struct build_id rest;
        size_t count;

        if (s->scan)
                scanned_want(s, id, 1, &rest, &count);
}

void scanned_ask_alike(struct server *s, const uint8_t *start, size_t n)
{
        struct build_id ids[ALIKE_MAX];
        size_t count = s->scan ? scan_find_prefix(s->scan, start, n, ids, ALIKE_MAX) : 0;

        for (size_t i = 0; i < count; i++)
                scanned_ask(s, &ids[i]);
        while (s->scan && n > 1 && start[n - 1] == 0) {
                struct build_id id;

                if (build_id_from_bytes(&id, start, --n))
                        scanned_ask(s, &id);
        }
}

enum status scanned_open(void *context, const struct build_id *id, enum object_kind kind, int *fd_ret, struct error *err)
{
        struct server *s = context;
        struct scan_opened o;
        enum status st = s->scan ? scan_open(s->scan, id, kind, &(struct scan_wait){ .cancel = &s->stopping }, &o, err) : ST_NOT_FOUND;

        if (!st)
                *fd_ret = o.fd;
        return st;
}

bool scanned_has_debuginfo(void *context, const struct build_id *id)
{
        struct server *s = context;

        return s->scan && (scan_kinds(s->scan, id) & FOUND_DEBUGINFO);
}

static enum status improve(void *context, const struct found_object *o, const struct scan_file *file)
{
        struct server *s = context;
        struct symbol_object object;

        (void)file;
        if (look_up(s, &o->build_id, &object) && object.state == OBJECT_INDEXED && object.quality < o->quality)
                indexer_add(s->indexer, &o->build_id, OBJECT_DEBUGINFO);
        return atomic_load(&s->stopping) ? ST_BUSY : ST_OK;
}

/* A walk found something: it may be better than what is indexed, what that was indexed without, or what samples lack. */
static void found(void *context)
{
        struct server *s = context;
        struct error err;

        if (scan_list(s->scan, NULL, improve, s, &err) && !atomic_load(&s->stopping))
                log_warn("scan", "cannot compare what was found with the index: %s", err.text);
        indexer_look_again(s->indexer);
        wishes_wake(s->wishes);
}

enum status scanned_open_trees(struct server *s, struct error *err)
{
        _cleanup_free_ char *dir = path_join(s->options->dir, "scan");
        const struct scan_options o = { .dirs = s->options->scan_dirs, .dir_count = s->options->scan_dir_count, .dir = dir,
                                        .scratch_dir = s->scratch_dir, .interval_s = s->options->scan_interval_s,
                                        .cache_bytes = s->options->scan_cache_bytes, .nursery = s->options->nursery, .found = found, .context = s };

        if (!o.dir_count)
                return ST_OK;
        if (!dir)
                return error_no_memory(err);
        for (size_t i = 0; i < o.dir_count; i++)
                log_info("scan", "tree %s", o.dirs[i]);
        return scan_open_trees(&o, &s->scan, err);
}
