/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_SYMBOLS_OBJECT_DIRECTORY_H
#define CAIRN_CLI_SYMBOLS_OBJECT_DIRECTORY_H

/**
 * @file ELF files below a directory, by build-id. A confined worker reads the build-ids.
 */
#include "common/error.h"
#include "symbolizer/workers/object_facts.h"

#define OBJECT_DIRECTORY_DEPTH 8
#define OBJECT_DIRECTORY_FILES 100000

struct directory_object {
        char *path; /* owned */
        struct object_facts facts;
};

struct object_directory {
        struct directory_object *objects; /* owned; those with a build-id */
        size_t count, capacity;
};

/**
 * Scan dir, which may be a symbolic link, and below. Links to directories are not followed; unreadable entries are
 * skipped.
 * @return ST_OK also when nothing was found; ST_TOO_BIG past OBJECT_DIRECTORY_FILES files; ST_OS.
 */
enum status object_directory_scan(const char *dir, struct object_directory *ret, struct error *err) MUST_CHECK;
void object_directory_deinit(struct object_directory *d);

/** The file with the best symbols, and the one with code; NULL none. */
void object_directory_find(const struct object_directory *d, const struct build_id *id,
                           const struct directory_object **best_ret, const struct directory_object **code_ret);

#endif
