/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/scan_demand.h"

#include <assert.h>

#include "common/program/log.h"

#define PREFIX_MATCHES_MAX 16

/* Read the index's record of an object; false on failure. */
static bool read_object_record(struct scan_demand *d, const struct build_id *id, struct symbol_object *ret)
{
        struct symbol_view *view;
        enum status st = symbol_view_begin(d->symbols, &view, NULL);

        if (st)
                return false;
        st = symbol_view_get_object(view, id, ret, NULL);
        symbol_view_end(view);
        return !st;
}

void scan_demand_index_objects(struct scan_demand *d, const struct wanted_object *objects, size_t count,
                               struct wanted_object *rest_ret, size_t *rest_count_ret)
{
        size_t rest = 0;

        for (size_t i = 0; i < count; i++) {
                const struct build_id *id = &objects[i].id;
                uint8_t kinds = package_scan_find_kinds(d->scan, id);
                struct symbol_object object;

                if (kinds && read_object_record(d, id, &object) && object.state == OBJECT_ABSENT)
                        indexer_enqueue(d->indexer, id, OBJECT_DEBUGINFO);
                if (!(kinds & PACKAGE_DEBUGINFO))
                        rest_ret[rest++] = objects[i];
        }
        *rest_count_ret = rest;
}

void scan_demand_request(struct scan_demand *d, const struct build_id *id)
{
        const struct wanted_object wanted = { .id = *id };
        struct wanted_object rest;
        size_t count;

        if (d->scan)
                scan_demand_index_objects(d, &wanted, 1, &rest, &count);
}

void scan_demand_request_prefix(struct scan_demand *d, const uint8_t *start, size_t n)
{
        struct build_id ids[PREFIX_MATCHES_MAX];
        size_t count = d->scan ? package_scan_find_prefix(d->scan, start, n, ids, PREFIX_MATCHES_MAX) : 0;

        for (size_t i = 0; i < count; i++)
                scan_demand_request(d, &ids[i]);
        while (d->scan && n > 1 && start[n - 1] == 0) {
                struct build_id id;

                if (build_id_from_bytes(&id, start, --n))
                        scan_demand_request(d, &id);
        }
}

enum status scan_demand_open_object(struct scan_demand *d, const struct build_id *id, enum object_kind kind,
                                    int *fd_ret, struct error *err)
{
        struct package_opened o;
        enum status st = d->scan ? package_scan_open(d->scan, id, kind,
                                                     &(struct package_scan_wait){ .cancel = d->stopping }, &o, err)
                                 : ST_NOT_FOUND;

        if (!st)
                *fd_ret = o.fd;
        return st;
}

bool scan_demand_has_debuginfo(struct scan_demand *d, const struct build_id *id)
{
        return d->scan && (package_scan_find_kinds(d->scan, id) & PACKAGE_DEBUGINFO);
}

static enum status index_if_better(void *context, const struct package_object *o, const struct package_file *file)
{
        struct scan_demand *d = context;
        struct symbol_object object;

        (void)file;
        if (read_object_record(d, &o->build_id, &object) && object.state == OBJECT_INDEXED &&
            object.quality < o->quality)
                indexer_enqueue(d->indexer, &o->build_id, OBJECT_DEBUGINFO);
        return atomic_load(d->stopping) ? ST_BUSY : ST_OK;
}

/* A walk found new objects: better symbols, missing companions, or objects missing in samples. */
static void handle_scan_results(void *context)
{
        struct scan_demand *d = context;
        struct error err;

        if (package_scan_list(d->scan, NULL, index_if_better, d, &err) && !atomic_load(d->stopping))
                log_warn("scan", "cannot compare the scanned objects with the index: %s", err.text);
        indexer_recheck_companions(d->indexer);
        missing_retry_run_now(d->missing_retry);
}

enum status scan_demand_open_trees(struct scan_demand *d, struct package_scan_options *options, struct error *err)
{
        assert(!d->scan && options->dir_count > 0);
        options->found = handle_scan_results;
        options->context = d;
        for (size_t i = 0; i < options->dir_count; i++)
                log_info("scan", "tree %s", options->dirs[i]);
        return package_scan_create(options, &d->scan, err);
}
