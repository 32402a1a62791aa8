/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PACKAGE_TREES_PACKAGE_INDEX_H
#define CAIRN_PACKAGE_TREES_PACKAGE_INDEX_H

/**
 * @file
 * Index of scanned files in LMDB (docs/formats/scan.md): the build-ids of files and archive members, and the archives
 * that contain a source path. It persists across restarts and is rebuilt if it is missing, damaged or of another
 * version.
 *
 * Threads: any; LMDB serializes writers.
 */
#include <sys/stat.h>

#include "package-trees/package_contents.h"

struct scan_index;

enum status scan_index_open(const char *dir, struct scan_index **ret, struct error *err) MUST_CHECK;
void scan_index_close(struct scan_index *ix);

/** Identity of a file when it was inspected. */
struct scan_file {
        int64_t mtime_ns;
        uint64_t size_bytes, inode;
        enum scan_file_class class;
        bool is_of_use;   /* ELF or an archive, at least partly readable */
        const char *path; /* absolute */
};

/** Identity from stat(), without class and path. */
struct scan_file scan_file_from_stat(const struct stat *info);
/** Whether the file is unchanged. */
bool scan_file_matches(const struct scan_file *f, const struct stat *info);

/** Whether this file is in the index and unchanged. */
enum status scan_index_is_known(struct scan_index *ix, const char *path, const struct stat *info, bool *ret,
                                struct error *err) MUST_CHECK;

struct scan_result {
        struct scan_file file;
        struct scan_contents contents;
};

/** Replace the entries of these files, by path, in one durable commit. */
enum status scan_index_put(struct scan_index *ix, const struct scan_result *results, size_t count,
                           struct error *err) MUST_CHECK;

/** List up to n files with numbers above after. The paths are owned. */
struct scan_numbered {
        uint32_t number;
        char *path;
};
enum status scan_index_next_files(struct scan_index *ix, uint32_t after, struct scan_numbered *ret, size_t n,
                                  size_t *count_ret, struct error *err) MUST_CHECK;
enum status scan_index_remove(struct scan_index *ix, const uint32_t *numbers, size_t count,
                              struct error *err) MUST_CHECK;

/** Location of an object or source: a file, or a member of it. */
struct scan_place {
        struct scan_file file;     /* the path is owned */
        uint32_t number;           /* of the file; a changed file gets a new number */
        struct scan_object object; /* for a source only the ordinal is set; the path is owned */
};
void scan_places_free(struct scan_place *places, size_t count);

/** All places of a build-id, at most LIMIT_SCAN_PLACES. ST_NOT_FOUND if there is none. */
enum status scan_index_find(struct scan_index *ix, const struct build_id *id, struct scan_place **ret,
                            size_t *count_ret, struct error *err) MUST_CHECK;
/** All archives with a source file of this path. */
enum status scan_index_find_source(struct scan_index *ix, uint64_t path_hash, struct scan_place **ret,
                                   size_t *count_ret, struct error *err) MUST_CHECK;

/**
 * Find a section of a member (ordinal 0: of the file itself).
 * @return ST_NOT_FOUND: no such section; ST_UNSUPPORTED: its sections are unknown.
 */
enum status scan_index_find_section(struct scan_index *ix, uint32_t number, uint32_t ordinal, const char *name,
                                    uint64_t *offset_ret, uint64_t *size_ret, struct error *err) MUST_CHECK;

/** The kinds of objects of a build-id: SCAN_DEBUGINFO, SCAN_EXECUTABLE, both or 0. */
uint8_t scan_index_find_kinds(struct scan_index *ix, const struct build_id *id);

/** Build-ids that begin with the n >= 1 bytes of prefix, at most max, shorter ones first. @return their number. */
size_t scan_index_find_prefix(struct scan_index *ix, const void *prefix, size_t n, struct build_id *ret, size_t max);

/** Call each for every object in build-id order, or for those of one id; a status other than ST_OK ends the listing.
 * The arguments of each are borrowed for the call. */
typedef enum status scan_index_each(void *context, const struct scan_object *object, const struct scan_file *file);
enum status scan_index_list(struct scan_index *ix, const struct build_id *id, scan_index_each *each, void *context,
                            struct error *err) MUST_CHECK;

struct scan_counts {
        uint64_t files, objects, sources; /* including useless files */
};
enum status scan_index_count(struct scan_index *ix, struct scan_counts *ret, struct error *err) MUST_CHECK;

#endif
