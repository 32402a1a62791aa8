/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_FILES_OUTPUT_FILE_H
#define CAIRN_COMMON_FILES_OUTPUT_FILE_H

/**
 * @file
 * A file under a path that a user chose (--output, --metrics-file, --port-file). Files of the data directory, which are
 * Cairn's own, are written with common/files/file.h instead.
 *
 * The path may already name something that is not Cairn's, so it is written as a shell redirection would write it:
 *   - a new or regular file appears complete or not at all: a temporary file is renamed over it, with the mode and
 *     owner of the file that it replaces;
 *   - a symbolic link is followed, and stays; the target of a dangling one is created;
 *   - a character device or FIFO is written in place, and so is a regular file that a rename would take away from its
 *     owner, its other names or its mount;
 *   - /dev/stdout, /dev/stderr and /dev/fd/N are the descriptor itself, at its offset;
 *   - a directory, a socket and a block device are refused.
 *
 * Threads: no shared state.
 */
#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

enum output_kind {
        OUTPUT_OF_COMMAND, /* a new file has the mode that the umask leaves; opening a FIFO waits for its reader */
        OUTPUT_OF_SERVICE, /* a new file is readable by all; never waits, so a FIFO needs a reader */
};

struct output_file {
        int fd; /* to write to, sequentially */
        char *path, *tmp;
        bool is_regular, is_new;
};

/** Open it for writing. Nothing of an existing file is changed before output_file_publish(). */
enum status output_file_open(const char *path, enum output_kind kind, struct output_file *ret,
                             struct error *err) MUST_CHECK;

/** Make the written bytes the content of the file, durably. Takes f, also on failure. */
enum status output_file_publish(struct output_file *f, struct error *err) MUST_CHECK;

/** Close it. The old content stays, except of what was written in place. */
void output_file_discard(struct output_file *f);

/** Open, write and publish. */
enum status output_file_write(const char *path, enum output_kind kind, const void *data, size_t n,
                              struct error *err) MUST_CHECK;

/** Check before a long run whether output_file_open() will succeed; a device or FIFO is not opened. */
enum status output_file_check(const char *path, struct error *err) MUST_CHECK;

/**
 * Open the path to write it in place from its start, without a temporary file: for a program that gives up the
 * privilege to rename one. Never waits. @param fd_ret  owned.
 */
enum status output_file_open_in_place(const char *path, int *fd_ret, struct error *err) MUST_CHECK;

#endif
