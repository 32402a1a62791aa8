/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_ARCHIVE_MEMBERS_H
#define CAIRN_ARCHIVE_MEMBERS_H

/**
 * @file
 * The regular files inside of archives and packages: .deb, .rpm, tar, zip, cpio
 * and ar, packed with gzip, bzip2, xz, lzma or zstd, one after the other as
 * they come. Nothing is written anywhere, links and devices are passed over,
 * and names are text that nobody here opens.
 *
 * An archive may be anybody's: what it unpacks to is held to
 * LIMIT_ARCHIVE_RATIO times its own bytes, beyond LIMIT_ARCHIVE_FREE_BYTES.
 * Memory does not grow with it.
 *
 * Threads: one walk belongs to one thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct archive_walk;

struct archive_member {
        const char *path;    /* as the archive has it, without "/" and "./" in front; borrowed; it may hold anything */
        uint32_t ordinal;    /* it is the so-manieth regular file of the archive, from 0; the same at each walk */
        struct archive_walk *walk;
};

struct archive_visitor {
        /** Told of each member; a status other than ST_OK ends the walk with it. */
        enum status (*member)(void *context, struct archive_member *m, struct error *err);
        /** Asked now and then; true ends the walk with ST_BUSY. May be NULL. */
        bool (*stopped)(void *context);
        void *context;
        unsigned nested_max; /* archives inside of archives, that deep; what a .deb consists of is always opened */
};

/**
 * Walk one archive from the start of an open file.
 * @param name for messages.
 * @return ST_BAD_DATA when it is damaged or locked, ST_TOO_BIG past the limits; members before that were told.
 */
enum status archive_walk(int fd, const char *name, const struct archive_visitor *visitor, struct error *err) MUST_CHECK;

/**
 * The next bytes of the member that is being told of, and where in it they belong (there may be holes before them).
 * @param data_ret borrowed until the next call.
 * @return ST_NOT_FOUND at its end.
 */
enum status archive_member_read(struct archive_member *m, const void **data_ret, size_t *n_ret, uint64_t *offset_ret,
                                struct error *err) MUST_CHECK;

/** Whether the file begins like something that archive_walk() reads; keeps the position. */
bool archive_magic_at_fd(int fd);

/** Whether the name says package (.deb, .ddeb, .udeb, .rpm). */
bool archive_name_is_package(const char *path);

/** Whether the name says archive, packages among them. */
bool archive_name(const char *path);

/** Whether a member's path leaves the archive, or would be odd to open: "..", ".", a part that is too long, nothing at all. */
bool archive_path_is_odd(const char *path);

#endif
