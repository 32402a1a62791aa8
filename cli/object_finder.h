/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_OBJECT_FINDER_H
#define CAIRN_CLI_OBJECT_FINDER_H

/**
 * @file
 * From what a profile says of an object, a build-id and a path, to somebody who knows its symbols.
 *
 * Tried in this order: the file that -e names; one that is held open; the path itself; the directory of debug files, by
 * build-id under .build-id/ or, where it has none of that, by the build-ids of the files in it; the service; debuginfod
 * servers. A build-id that is known
 * must agree. Without one, a path is trusted, and a name without a directory finds the file of that name in the
 * directory.
 *
 * Threads: one at a time.
 */
#include "cli/service.h"
#include "cli/symbolize.h"
#include "symbolizer/object_facts.h"

struct object_finder_options {
        const char *file;            /* of -e, or NULL */
        const char *debug_directory; /* never NULL */
        struct service_options service;
        const struct held_files *held; /* borrowed; files that are open already. NULL none */
        struct debug_fetcher *fetcher; /* borrowed; NULL nobody is asked for debug files */
};

struct object_finder;
enum status object_finder_create(const struct object_finder_options *o, struct object_finder **ret,
                                 struct error *err) MUST_CHECK;
void object_finder_destroy(struct object_finder *f);

struct found_object {
        struct answer_source source; /* owned, source.close() */
        struct object_facts facts;   /* of the executable where it is at hand; no segments: only source.ask_offsets can translate offsets */
};

/**
 * @param id    size 0: unknown.  @param path  "" unknown.
 * @return ST_NOT_FOUND, with what was looked for, when nobody has it; another status when what was found cannot be read.
 */
enum status object_finder_open(struct object_finder *f, const struct build_id *id, const char *path,
                               struct found_object *ret, struct error *err) MUST_CHECK;

/** Did the service fail to answer? Then there is no use in going on without it. */
bool object_finder_server_failed(const struct object_finder *f);

#endif
