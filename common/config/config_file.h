/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_CONFIG_CONFIG_FILE_H
#define CAIRN_COMMON_CONFIG_CONFIG_FILE_H

/**
 * @file
 * One section of a configuration file: YAML, a mapping of sections, each a mapping of names to a scalar or to a list of
 * scalars. Parsed by libyaml. Any other structure, duplicate names or sections, a second document, and unknown sections
 * are errors with the line number, so that a misspelt section is noticed.
 *
 *     serve:
 *       listen: 0.0.0.0:7700
 *       upstream:
 *         - https://debuginfod.debian.net
 */
#include <stdbool.h>
#include <stddef.h>

#include "common/cleanup.h"
#include "common/error.h"

/* A name with its values: a list of one for a scalar. */
struct config_entry {
        char *name;
        char **values;
        size_t count;
        size_t line; /* from 1 */
};

struct config_section {
        char *path;
        struct config_entry *entries;
        size_t count;
        bool is_empty; /* the file has no bytes */
};

/**
 * Read the section of this name; a file without it gives no entries.
 * @return ST_NOT_FOUND if the file does not exist, ST_USAGE with "PATH:LINE: what is wrong" or if the file
 *         is cut off (yaml_text_read()), ST_OS, ST_TOO_BIG.
 */
enum status config_section_read(const char *path, const char *name, struct config_section *ret,
                                struct error *err) MUST_CHECK;

void config_section_deinit(struct config_section *s);

#define _cleanup_config_section_ _cleanup_(config_section_deinit)

#endif
