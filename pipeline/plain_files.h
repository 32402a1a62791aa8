/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PIPELINE_PLAIN_FILES_H
#define CAIRN_PIPELINE_PLAIN_FILES_H

/**
 * @file
 * Cache of descriptors of uploaded files that are queued for indexing, so that the indexer need not decompress the
 * stored objects again. Without an entry, as after a restart, the stored object is read.
 *
 * The files are unlinked, so an entry holds disk space until it is removed; PLAIN_FILES_MAX entries and
 * PLAIN_FILES_MAX_BYTES bound it.
 *
 * Threads: the caller's lock.
 */
#include <stddef.h>
#include <stdint.h>

#include "debuginfo-store/debuginfo_store.h"

#define PLAIN_FILES_MAX 16
#define PLAIN_FILES_MAX_BYTES GiB(2)

struct plain_file {
        struct build_id build_id;
        uint8_t sha256[32];
        uint64_t size_bytes;
        int fd; /* owned */
};

struct plain_files {
        struct plain_file items[PLAIN_FILES_MAX];
        size_t count;
        uint64_t bytes;
};

/** Keep the file of a stored object, or close it when there is no room. @param fd ownership passes in. */
void plain_files_add(struct plain_files *p, const struct stored_object *object, int fd);
/** A new descriptor of the file with the object's content; -1 if there is none. */
int plain_files_open(const struct plain_files *p, const struct stored_object *object);
/** Close all files of a build-id. */
void plain_files_remove(struct plain_files *p, const struct build_id *id);
void plain_files_deinit(struct plain_files *p);

#endif
