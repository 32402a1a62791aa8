/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_INDEX_INPUTS_H
#define CAIRN_CLI_INDEX_INPUTS_H

/** @file Which files the arguments of `cairn index` mean: files as they are, directories for the ELF files in them. */
#include <stddef.h>

#include "common/error.h"

struct index_inputs {
        char **paths; /* owned */
        size_t count, capacity;
};

/**
 * Add a file, or the ELF files with a build-id in a directory and below it, sorted. Symbolic links in a directory are
 * passed over: what they lead to inside of it is found anyway.
 * @return ST_NOT_FOUND when a directory has none, ST_TOO_BIG past OBJECT_DIRECTORY_FILES files of all kinds, ST_OS.
 */
enum status index_inputs_add(struct index_inputs *in, const char *path, struct error *err) MUST_CHECK;
void index_inputs_deinit(struct index_inputs *in);

#endif
