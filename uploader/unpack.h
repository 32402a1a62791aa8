/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_UPLOADER_UNPACK_H
#define CAIRN_UPLOADER_UNPACK_H

/**
 * @file
 * ELF files out of archives and packages (archive/members.h), and out of such ones inside of them.
 *
 * They are unpacked below a temporary folder, each archive into a folder of
 * its own name, so that links between debug files still lead somewhere. Only
 * ELF files are; links are not followed nor made, and a path that would leave
 * the folder is flattened. Memory does not grow with the archive, disk with
 * its ELF files: LIMIT_UNPACKED_BYTES at most.
 *
 * Threads: one.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct unpacked {
        char *root;         /* the temporary folder, NULL until it is needed; owned */
        uint64_t bytes;     /* written below it */
        uint64_t archives, files;
        const atomic_bool *stop;
};

/**
 * Unpack one archive.
 * @param file told of each ELF file; a failure ends it.
 * @return ST_BAD_DATA when the archive is damaged or locked (files before that were told); ST_TOO_BIG; ST_BUSY when stopped.
 */
enum status unpack_archive(struct unpacked *u, const char *path,
                           enum status (*file)(void *context, const char *path, struct error *err), void *context,
                           struct error *err) MUST_CHECK;

/** Standard input into a file below the folder. path_ret is owned. */
enum status unpack_stdin(struct unpacked *u, char **path_ret, struct error *err) MUST_CHECK;

/** Removes the folder. */
void unpacked_deinit(struct unpacked *u);

#endif
