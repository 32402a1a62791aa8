/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SOURCE_BUNDLE_BUNDLE_H
#define CAIRN_SOURCE_BUNDLE_BUNDLE_H

/**
 * @file
 * The source files of one build-id in one file, by the paths in its debuginfo (docs/formats/source-bundle.md).
 *
 * A bundle is read through a callback, so that it may be stored compressed; its table is kept in memory, at most
 * LIMIT_SOURCE_TABLE_BYTES.
 *
 * Threads: a bundle belongs to one thread.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/build_id.h"
#include "common/error.h"

/** Read n bytes at offset, fewer at the end of the file; -1 with err on failure. */
typedef ssize_t source_bundle_read(void *context, void *to, size_t n, uint64_t offset, struct error *err);

struct source_bundle {
        struct build_id build_id;
        uint32_t count;
        uint8_t *table; /* owned: entries and names */
        size_t table_bytes;
};

/** Whether the file starts with the magic of a bundle. */
bool source_bundle_magic(const void *head, size_t n);

/**
 * Read the table and validate it against the size of the file.
 * @return ST_BAD_DATA; ST_UNSUPPORTED for another version; ST_TOO_BIG; the failure of read; ST_NO_MEMORY.
 */
enum status source_bundle_open(source_bundle_read *read, void *context, uint64_t size, struct source_bundle *ret,
                               struct error *err) MUST_CHECK;
void source_bundle_close(struct source_bundle *b);

/** Find a file in the bundle. False when it is missing. */
bool source_bundle_find(const struct source_bundle *b, const char *path, uint64_t *offset_ret, uint64_t *size_ret);

/**
 * Find the first file whose path is equal to this one after path_normalize() of both, by a walk over all paths. False
 * when it is missing.
 */
bool source_bundle_find_normalized(const struct source_bundle *b, const char *normal, uint64_t *offset_ret,
                                   uint64_t *size_ret);

/** One file to be bundled. */
struct source_file {
        char *name;       /* as in the debuginfo; owned */
        char *path;       /* on this host; owned; unused with text */
        const char *text; /* its content, borrowed; NULL: that of the file at path */
        uint64_t size_bytes;
};

/**
 * Write a bundle of these files into fd, an empty file.
 * @param files sorted by name (strcmp), without duplicates.
 * @return ST_NOT_FOUND when a file is missing or its size changed; ST_USAGE for a name that is not an absolute path of
 *         at most LIMIT_PATH_BYTES; ST_TOO_BIG; ST_OS.
 */
enum status source_bundle_write(int fd, const struct build_id *id, const struct source_file *files, size_t count,
                                uint64_t *size_ret, struct error *err) MUST_CHECK;

#endif
