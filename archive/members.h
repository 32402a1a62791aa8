/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_ARCHIVE_MEMBERS_H
#define CAIRN_ARCHIVE_MEMBERS_H

/**
 * @file
 * Iterates over the regular files in archives and packages: .deb, .rpm, tar, zip, cpio and ar, compressed with gzip,
 * bzip2, xz, lzma or zstd. A compressed file that is no archive has one member, its content, and so has a member with
 * the name of a compressed kernel module (.ko.xz). Streaming, in archive order. Nothing is written to disk, links and
 * devices are skipped, and names are never opened.
 *
 * Archives are untrusted: the decompressed size is limited to LIMIT_ARCHIVE_RATIO times the compressed size, beyond
 * LIMIT_ARCHIVE_FREE_BYTES, with the holes of sparse members that are read. Memory use does not depend on the archive.
 *
 * Threads: one walk belongs to one thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct archive_walk;

struct archive_member {
        const char *path; /* as in the archive, without leading "/" and "./"; borrowed; untrusted */
        bool is_content;  /* the whole content of a compressed file */
        uint32_t ordinal; /* number of this regular file in the archive, from 0; the same at each walk */
        struct archive_walk *walk;
};

struct archive_visitor {
        /** Called for each member; a status other than ST_OK ends the walk and is returned. */
        enum status (*member)(void *context, struct archive_member *m, struct error *err);
        /** Polled regularly; true ends the walk with ST_BUSY. May be NULL. */
        bool (*stopped)(void *context);
        void *context;
        unsigned nested_max; /* maximum depth of nested archives; the parts of a .deb are always opened */
};

/**
 * Walk one archive from the start of an open file.
 * @param name for messages.
 * @return ST_BAD_DATA when it is damaged or encrypted, ST_TOO_BIG past the limits. Members before the failure were
 *          visited.
 */
enum status archive_walk(int fd, const char *name, const struct archive_visitor *visitor, struct error *err) MUST_CHECK;

/**
 * The next block of the current member and its offset; there may be holes between blocks.
 * @param data_ret borrowed until the next call.
 * @return ST_NOT_FOUND at the end.
 */
enum status archive_member_read(struct archive_member *m, const void **data_ret, size_t *n_ret, uint64_t *offset_ret,
                                struct error *err) MUST_CHECK;

/** Whether the file is a compressed ELF file. Decompresses its first bytes and moves the file position. */
bool archive_is_compressed_elf(int fd);

/**
 * Whether the file name is that of a compressed ELF file: that of a kernel module, debug file or shared object, and
 * .gz, .xz or .zst.
 */
bool archive_name_is_compressed_elf(const char *path);

/** Whether the file name is that of a package (.deb, .ddeb, .udeb, .rpm). */
bool archive_name_is_package(const char *path);

/** Whether the file name is that of an archive or package. */
bool archive_name(const char *path);

/**
 * Whether the path of a member is unsafe or unusable: empty, with a ".." or "." component, or with a component that is
 * too long.
 */
bool archive_path_is_odd(const char *path);

#endif
