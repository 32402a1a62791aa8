/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SCAN_INDEX_H
#define CAIRN_SCAN_INDEX_H

/**
 * @file
 * What is known of scanned files, in LMDB (docs/formats/scan.md): which file or
 * member of an archive holds which build-id, and which archives hold a source
 * of that path. It outlives restarts; it is made again when it is of another
 * version or is removed, so that nothing in it is precious.
 *
 * Threads: any; LMDB serializes writers.
 */
#include <sys/stat.h>

#include "scan/found.h"

struct scan_index;

enum status scan_index_open(const char *dir, struct scan_index **ret, struct error *err) MUST_CHECK;
void scan_index_close(struct scan_index *ix);

/** A file as it was when it was looked at. */
struct scan_file {
        int64_t mtime_ns;
        uint64_t size_bytes, inode;
        enum found_class class;
        bool is_of_use;       /* it is ELF or an archive, and could be read at least in part */
        const char *path;     /* absolute */
};

/** What stat says, without class and path. */
struct scan_file scan_file_of(const struct stat *info);
/** Is it still the file that it was? */
bool scan_file_is(const struct scan_file *f, const struct stat *info);

/** Is this very file in the index already? */
enum status scan_index_is_known(struct scan_index *ix, const char *path, const struct stat *info, bool *ret,
                                struct error *err) MUST_CHECK;

struct scan_result {
        struct scan_file file;
        struct found found;
};

/** Put files in the place of what was known under their paths. One durable commit. */
enum status scan_index_put(struct scan_index *ix, const struct scan_result *results, size_t count, struct error *err) MUST_CHECK;

/** The first files with a number greater than after, for walking them all in slices; paths are owned by the caller. */
struct scan_numbered {
        uint32_t number;
        char *path;
};
enum status scan_index_next_files(struct scan_index *ix, uint32_t after, struct scan_numbered *ret, size_t n, size_t *count_ret,
                                  struct error *err) MUST_CHECK;
enum status scan_index_remove(struct scan_index *ix, const uint32_t *numbers, size_t count, struct error *err) MUST_CHECK;

/** Where something lies: a file, or a member of it. */
struct scan_place {
        struct scan_file file;  /* its path is owned */
        uint32_t number;        /* of the file; a file that changed has another one */
        struct found_object object; /* of a source only the ordinal; its path is owned */
};
void scan_places_free(struct scan_place *places, size_t count);

/** All places of a build-id, LIMIT_SCAN_PLACES at most. None is ST_NOT_FOUND. */
enum status scan_index_find(struct scan_index *ix, const struct build_id *id, struct scan_place **ret, size_t *count_ret,
                            struct error *err) MUST_CHECK;
/** All archives that hold a source of that path. */
enum status scan_index_find_source(struct scan_index *ix, uint64_t path_hash, struct scan_place **ret, size_t *count_ret,
                                   struct error *err) MUST_CHECK;

/**
 * Where a section of that member (ordinal 0: of a file itself) of a file lies.
 * @return ST_NOT_FOUND when the object has none of that name; ST_UNSUPPORTED when its sections are not known.
 */
enum status scan_index_section(struct scan_index *ix, uint32_t number, uint32_t ordinal, const char *name,
                               uint64_t *offset_ret, uint64_t *size_ret, struct error *err) MUST_CHECK;

/** Which kinds there are of a build-id: FOUND_DEBUGINFO, FOUND_EXECUTABLE, both or 0. */
uint8_t scan_index_kinds(struct scan_index *ix, const struct build_id *id);

/** The build-ids of n (one at least) bytes and more that begin with those of prefix: max at most, shorter ones first. @return how many. */
size_t scan_index_find_prefix(struct scan_index *ix, const void *prefix, size_t n, struct build_id *ret, size_t max);

/** Every object, in the order of build-ids, or those of one (id is NULL or not); a status other than ST_OK ends it. Everything told is borrowed for the call. */
typedef enum status scan_index_each(void *context, const struct found_object *object, const struct scan_file *file);
enum status scan_index_list(struct scan_index *ix, const struct build_id *id, scan_index_each *each, void *context, struct error *err) MUST_CHECK;

struct scan_counts {
        uint64_t files, objects, sources; /* files of no use among them */
};
enum status scan_index_count(struct scan_index *ix, struct scan_counts *ret, struct error *err) MUST_CHECK;

#endif
