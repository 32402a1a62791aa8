/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_UPLOADER_UNPACK_H
#define CAIRN_UPLOADER_UNPACK_H

/**
 * @file
 * Extract ELF files from archives and packages (archive/members.h), including nested ones.
 *
 * Each archive is extracted into a subfolder of a temporary folder, named after the archive, so that relative links
 * between debug files still work. Only ELF files are extracted; links are neither followed nor created, and a path that
 * would leave the folder is flattened. Memory use is constant, disk use at most LIMIT_UNPACKED_BYTES.
 *
 * Threads: one.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct unpacked {
        char *root;     /* the temporary folder, created on first use; owned */
        uint64_t bytes; /* written below it */
        uint64_t archives, files;
        const atomic_bool *stop;
};

/**
 * Unpack one archive.
 * @param file called for each ELF file; a failure ends the extraction.
 * @return ST_BAD_DATA when the archive is damaged or encrypted (after file was called for the files before);
 * ST_TOO_BIG; ST_BUSY when stopped.
 */
enum status unpack_archive(struct unpacked *u, const char *path,
                           enum status (*file)(void *context, const char *path, struct error *err), void *context,
                           struct error *err) MUST_CHECK;

/** Copy standard input into a file in the temporary folder. path_ret is owned. */
enum status unpack_stdin(struct unpacked *u, char **path_ret, struct error *err) MUST_CHECK;

/** Removes the folder. */
void unpacked_deinit(struct unpacked *u);

#endif
