/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_DROP_IN_MAPPED_FILES_H
#define CAIRN_CLI_DROP_IN_MAPPED_FILES_H

/**
 * @file
 * The files that a process had mapped, from /proc/PID/maps or a core, for addresses of its memory.
 *
 * Threads: one.
 * Source: proc(5); the note NT_FILE of Linux (core(5)).
 */
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "elf-image/elf_image.h"

struct mapped_file {
        uint64_t start, end; /* in memory */
        uint64_t offset;     /* of start in the file */
        char *path;          /* owned */
};

struct mapped_files {
        struct mapped_file *items; /* owned */
        size_t count, capacity;
};

/**
 * Read the format of /proc/PID/maps; lines without a path are left out.
 * @param ret  owned, mapped_files_deinit(), also on failure.
 * @return ST_OS; ST_BAD_DATA for another format; ST_TOO_BIG past LIMIT_MAPPED_FILES; ST_NO_MEMORY.
 */
enum status mapped_files_read_maps(const char *path, struct mapped_files *ret, struct error *err) MUST_CHECK;

/** The same from a core. @return ST_NOT_FOUND if it does not list files. */
enum status mapped_files_read_core(const char *path, struct mapped_files *ret, struct error *err) MUST_CHECK;
void mapped_files_deinit(struct mapped_files *m);

/** The file that has an address of memory, or NULL. */
const struct mapped_file *mapped_files_at(const struct mapped_files *m, uint64_t address);

/** The difference of addresses in memory and in the image; false if no segment of the image is mapped there. */
bool mapped_file_bias(const struct mapped_file *m, const struct elf_image *img, uint64_t *ret);

#endif
