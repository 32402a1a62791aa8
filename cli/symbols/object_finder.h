/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_SYMBOLS_OBJECT_FINDER_H
#define CAIRN_CLI_SYMBOLS_OBJECT_FINDER_H

/**
 * @file
 * Find the symbols of an object that a profile describes by build-id and path.
 *
 * Order: the file of -e; a held file; the path; the debug directory, by build-id under .build-id/ or, without that, by
 * the build-ids of its files; the service; debuginfod servers. A known build-id must match. Without one, the path is
 * trusted, and a name without a directory means a file of that name in the debug directory.
 *
 * Threads: one at a time.
 */
#include "cli/shared/service.h"
#include "cli/symbols/answer_source.h"
#include "symbolizer/workers/object_facts.h"

struct object_finder_options {
        const char *file;                /* -e; NULL none */
        struct debug_files *debug_files; /* borrowed, open */
        struct service_options service;
        const struct held_files *held; /* borrowed; NULL none */
};

struct object_finder;
enum status object_finder_create(const struct object_finder_options *o, struct object_finder **ret,
                                 struct error *err) MUST_CHECK;
void object_finder_destroy(struct object_finder *f);

struct found_object {
        struct answer_source source; /* owned, source.close() */
        struct object_facts facts; /* of the executable if it is available; without segments only source.ask_offsets can
                                      translate offsets */
};

/**
 * @param id    size 0: unknown.
 * @param path  "" unknown.
 * @return ST_NOT_FOUND when no place has it; another status when a file that was found cannot be read.
 */
enum status object_finder_open(struct object_finder *f, const struct build_id *id, const char *path,
                               struct found_object *ret, struct error *err) MUST_CHECK;

/** Whether the service could not be reached: then the caller should stop. */
bool object_finder_server_failed(const struct object_finder *f);

#endif
