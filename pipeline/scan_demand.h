/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PIPELINE_SCAN_DEMAND_H
#define CAIRN_PIPELINE_SCAN_DEMAND_H

/**
 * @file
 * Index objects of scanned trees on demand. A tree may be a whole distribution, so an object is not indexed until
 * samples or a request contain addresses in it; it is indexed again when a later walk finds better symbols.
 *
 * Threads: any, except opening. Set the fields before package_scan_start().
 */
#include <stdatomic.h>

#include "common/wanted_object.h"
#include "package-trees/package_scan.h"
#include "pipeline/indexer.h"
#include "pipeline/missing_retry.h"
#include "symbol-index/lookup.h"

struct scan_demand {
        struct package_scan *scan; /* NULL without trees; all pointers are borrowed */
        struct symbol_index *symbols;
        struct indexer *indexer;
        struct missing_retry *missing_retry;
        const atomic_bool *stopping;
};

/**
 * Open the trees of the options; found and context are set by this function.
 * @param d borrowed until package_scan_destroy() of d->scan; fields may be set later.
 */
enum status scan_demand_open_trees(struct scan_demand *d, struct package_scan_options *options,
                                   struct error *err) MUST_CHECK;

/** Index the objects without a record in the index. @param rest_ret up to count: debuginfo of these is in no tree. */
void scan_demand_index_objects(struct scan_demand *d, const struct wanted_object *objects, size_t count,
                               struct wanted_object *rest_ret, size_t *rest_count_ret);

/** A request contains addresses of this object: index it for later requests. */
void scan_demand_request(struct scan_demand *d, const struct build_id *id);

/**
 * The same for all objects whose build-ids begin with these n bytes. Trailing zeros may be padding, so shorter
 * build-ids without them match too.
 */
void scan_demand_request_prefix(struct scan_demand *d, const uint8_t *start, size_t n);

/** Callbacks open_other() and has_other() of struct indexer_options. */
enum status scan_demand_open_object(struct scan_demand *d, const struct build_id *id, enum object_kind kind,
                                    int *fd_ret, struct error *err) MUST_CHECK;
bool scan_demand_has_debuginfo(struct scan_demand *d, const struct build_id *id);

#endif
