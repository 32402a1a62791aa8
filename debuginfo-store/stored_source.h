/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_STORED_SOURCE_H
#define CAIRN_DEBUGINFO_STORE_STORED_SOURCE_H

/**
 * @file
 * Source files in the store, by the path in the debuginfo: in the source bundle of an object, or in the cache of parts
 * fetched from upstreams. A path is looked up in a bundle as given; else both it and the paths of the bundle are
 * normalized, without "." and "..".
 *
 * Threads: any; a struct stored_source belongs to one thread.
 */
#include "common/memory/buf.h"
#include "debuginfo-store/debuginfo_store.h"

/** A file of a source bundle. */
struct stored_source {
        struct object_reader *reader; /* owned */
        uint64_t offset, size_bytes;  /* range of the bundle */
};

/** @return ST_NOT_FOUND: the object has no bundle, or its bundle does not have the file. */
enum status stored_source_open(struct debuginfo_store *store, const struct build_id *id, const char *path,
                               struct stored_source *ret, struct error *err) MUST_CHECK;
/** Read bytes [offset, offset + n) of the file, fewer only at its end; -1 with err on failure. */
ssize_t stored_source_pread(const struct stored_source *s, void *to, size_t n, uint64_t offset,
                            struct error *err) MUST_CHECK;
void stored_source_close(struct stored_source *s);

/** Append a file of a source bundle. @return as stored_source_open(); ST_TOO_BIG past the max of ret. */
enum status stored_source_append(struct debuginfo_store *store, const struct build_id *id, const char *path,
                                 struct buf *ret, struct error *err) MUST_CHECK;

/** Append a file that was fetched from an upstream before. @return ST_NOT_FOUND; ST_TOO_BIG past the max of ret. */
enum status cached_source_append(struct debuginfo_store *store, const struct build_id *id, const char *path,
                                 struct buf *ret, struct error *err) MUST_CHECK;

/**
 * Append "source/PATH", escaped as in a URL: the name of a source file for part_cache.h and federation.h.
 * @return ST_NOT_FOUND: the path is relative or leads above its root, which an upstream might resolve.
 */
enum status source_part_put_name(const char *path, struct buf *ret, struct error *err) MUST_CHECK;

/** Append a whole file. @param fd  taken. @param path  for messages. */
enum status source_file_append(int fd, const char *path, struct buf *ret, struct error *err) MUST_CHECK;

/**
 * Set err to the reason why the store does not have a file of this object.
 * @param store  NULL: there is none.
 * @param rest   appended.
 * @return ST_NOT_FOUND.
 */
enum status stored_source_explain_missing(struct debuginfo_store *store, const struct build_id *id, const char *rest,
                                          struct error *err);

#endif
