/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PACKAGE_TREES_PACKAGE_CONTENTS_H
#define CAIRN_PACKAGE_TREES_PACKAGE_CONTENTS_H

/**
 * @file
 * Contents of one scanned file, encoded by a confined worker and decoded by the service: the objects with a build-id,
 * and the path hashes of the other members of an archive, which may be source files.
 *
 * Threads: a value belongs to one thread.
 */
#include "common/build_id.h"
#include "common/memory/buf.h"
#include "elf-image/quality.h"

enum package_file_class { PACKAGE_FILE_ELF, PACKAGE_FILE_ARCHIVE };

#define PACKAGE_DEBUGINFO 1u /* enum elf_image_kind */
#define PACKAGE_EXECUTABLE 2u

struct package_object {
        struct build_id build_id;
        uint8_t kinds; /* PACKAGE_DEBUGINFO, PACKAGE_EXECUTABLE or both */
        enum symbol_quality quality;
        uint64_t size_bytes;
        uint32_t ordinal;        /* of the archive member */
        const char *path;        /* of the member, "/usr/bin/x"; "": the file itself. Borrowed from the bytes */
        const void *sections;    /* section list (elf-image/section_list.h), borrowed from the bytes */
        uint32_t sections_bytes; /* 0: unknown */
};

struct package_source {
        uint64_t path_hash; /* package_path_hash() */
        uint32_t ordinal;
};

struct package_contents {
        struct package_object *objects; /* owned, like sources */
        size_t object_count, object_capacity;
        struct package_source *sources;
        size_t source_count, source_capacity;
        uint32_t odd_paths; /* members skipped because their path leaves the archive */
        uint32_t broken;    /* ELF files skipped because they are damaged */
        void *bytes;        /* owned; paths point into it */
};

/* ---- writing ---- */

void package_contents_put_object(struct buf *to, const struct package_object *o);
void package_contents_put_source(struct buf *to, uint64_t path_hash, uint32_t ordinal);
void package_contents_put_end(struct buf *to, uint32_t odd_paths, uint32_t broken);

/* ---- reading ---- */

/** Takes bytes (from malloc()), also on failure. @return ST_BAD_DATA if they are damaged. */
enum status package_contents_read(void *bytes, size_t n, struct package_contents *ret, struct error *err) MUST_CHECK;
void package_contents_deinit(struct package_contents *c);

/** The key of source files in the index: a hash of the normalized path. */
uint64_t package_path_hash(const char *path);

#endif
