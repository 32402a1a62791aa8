/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SCAN_FOUND_H
#define CAIRN_SCAN_FOUND_H

/**
 * @file
 * What one file of a scanned tree holds, as a confined worker finds it out and
 * the service reads it back: the objects with a build-id, and of a package the
 * other files, which may be sources, by the hash of their path.
 *
 * Threads: a value belongs to one thread.
 */
#include "common/buf.h"
#include "common/build_id.h"
#include "symbolizer/lookup.h"

enum found_class { FOUND_ELF, FOUND_ARCHIVE };

#define FOUND_DEBUGINFO 1u  /* enum elf_image_kind */
#define FOUND_EXECUTABLE 2u

struct found_object {
        struct build_id build_id;
        uint8_t kinds;               /* FOUND_DEBUGINFO, FOUND_EXECUTABLE or both */
        enum symbol_quality quality;
        uint64_t size_bytes;
        uint32_t ordinal;            /* of the member of an archive */
        const char *path;            /* of the member, "/usr/bin/x"; "" for a file itself. Borrowed from the bytes */
        const void *sections;        /* where its sections lie (elf-image/section_list.h), borrowed from the bytes; */
        uint32_t sections_bytes;     /* 0: not known */
};

struct found_source {
        uint64_t path_hash;          /* found_path_hash() */
        uint32_t ordinal;
};

struct found {
        struct found_object *objects; /* owned, as are the next */
        size_t object_count;
        struct found_source *sources;
        size_t source_count;
        uint32_t odd_paths;           /* members that were left out because their path leaves the archive */
        uint32_t broken;              /* ELF files that were left out because they are damaged */
        void *bytes;                  /* owned: what paths are borrowed from */
};

/* ---- writing ---- */

void found_put_object(struct buf *to, const struct found_object *o);
void found_put_source(struct buf *to, uint64_t path_hash, uint32_t ordinal);
void found_put_end(struct buf *to, uint32_t odd_paths, uint32_t broken);

/* ---- reading ---- */

/** @param bytes of malloc(), taken also on failure. ST_BAD_DATA when they are anything else. */
enum status found_read(void *bytes, size_t n, struct found *ret, struct error *err) MUST_CHECK;
void found_deinit(struct found *f);

/** "/a/./b/../c//d" to "/a/c/d", in place. What climbs above the root stays at the root. */
void found_path_normalise(char *path);

/** The hash by which sources are found: of the normalised path. */
uint64_t found_path_hash(const char *path);

#endif
