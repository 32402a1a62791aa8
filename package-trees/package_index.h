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

struct package_index;

enum status package_index_open(const char *dir, struct package_index **ret, struct error *err) MUST_CHECK;
void package_index_close(struct package_index *ix);

/** Identity of a file when it was inspected. */
struct package_file {
        int64_t mtime_ns;
        uint64_t size_bytes, inode;
        enum package_file_class class;
        bool is_of_use;   /* ELF or an archive, at least partly readable */
        const char *path; /* absolute */
};

/** Identity from stat(), without class and path. */
struct package_file package_file_from_stat(const struct stat *info);
/** Whether the file is unchanged. */
bool package_file_matches(const struct package_file *f, const struct stat *info);

/** Whether this file is in the index and unchanged. */
enum status package_index_is_known(struct package_index *ix, const char *path, const struct stat *info, bool *ret,
                                   struct error *err) MUST_CHECK;

struct package_result {
        struct package_file file;
        struct package_contents contents;
};

/** Replace the entries of these files, by path, in one durable commit. */
enum status package_index_put(struct package_index *ix, const struct package_result *results, size_t count,
                              struct error *err) MUST_CHECK;

/** List up to n files with numbers above after. The paths are owned. */
struct package_numbered_file {
        uint32_t number;
        char *path;
};
enum status package_index_next_files(struct package_index *ix, uint32_t after, struct package_numbered_file *ret,
                                     size_t n, size_t *count_ret, struct error *err) MUST_CHECK;
enum status package_index_remove(struct package_index *ix, const uint32_t *numbers, size_t count,
                                 struct error *err) MUST_CHECK;

/** Location of an object or source: a file, or a member of it. */
struct package_place {
        struct package_file file;     /* the path is owned */
        uint32_t number;              /* of the file; a changed file gets a new number */
        struct package_object object; /* for a source only the ordinal is set; the path is owned */
};
void package_places_free(struct package_place *places, size_t count);

/** All places of a build-id, at most LIMIT_SCAN_PLACES. ST_NOT_FOUND if there is none. */
enum status package_index_find(struct package_index *ix, const struct build_id *id, struct package_place **ret,
                               size_t *count_ret, struct error *err) MUST_CHECK;
/** All archives with a source file of this path. */
enum status package_index_find_source(struct package_index *ix, uint64_t path_hash, struct package_place **ret,
                                      size_t *count_ret, struct error *err) MUST_CHECK;

/**
 * Find a section of a member (ordinal 0: of the file itself).
 * @return ST_NOT_FOUND: no such section; ST_UNSUPPORTED: its sections are unknown.
 */
enum status package_index_find_section(struct package_index *ix, uint32_t number, uint32_t ordinal, const char *name,
                                       uint64_t *offset_ret, uint64_t *size_ret, struct error *err) MUST_CHECK;

/** The kinds of objects of a build-id: PACKAGE_DEBUGINFO, PACKAGE_EXECUTABLE, both or 0. */
uint8_t package_index_find_kinds(struct package_index *ix, const struct build_id *id);

/** Build-ids that begin with the n >= 1 bytes of prefix, at most max, shorter ones first. @return their number. */
size_t package_index_find_prefix(struct package_index *ix, const void *prefix, size_t n, struct build_id *ret,
                                 size_t max);

/** Call each for every object in build-id order, or for those of one id; a status other than ST_OK ends the listing.
 * The arguments of each are borrowed for the call. */
typedef enum status package_index_each(void *context, const struct package_object *object,
                                       const struct package_file *file);
enum status package_index_list(struct package_index *ix, const struct build_id *id, package_index_each *each,
                               void *context, struct error *err) MUST_CHECK;

struct package_scan_counts {
        uint64_t files, objects, sources; /* including useless files */
};
enum status package_index_count(struct package_index *ix, struct package_scan_counts *ret,
                                struct error *err) MUST_CHECK;

#endif
