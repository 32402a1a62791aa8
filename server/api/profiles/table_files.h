/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_API_PROFILES_TABLE_FILES_H
#define CAIRN_SERVER_API_PROFILES_TABLE_FILES_H

/**
 * @file
 * Files of the tables for remote readers: which files they may read, and their entity tags.
 *
 * Threads: any.
 */
#include <stdbool.h>

#include "server/core/server_internal.h"
#include "storage/storage.h"

#define TABLE_NAME_COUNT 4
extern const char *const table_names[TABLE_NAME_COUNT]; /* in byte order */

bool is_table_name(const char *name);

/** Whether a path below a table's folder is that of a data file or log file, and cannot leave the folder. */
bool is_readable_table_path(const char *path);

#define TABLE_FILE_ETAG_SIZE 48

struct table_file {
        int fd; /* owned */
        struct storage_info info;
        char etag[TABLE_FILE_ETAG_SIZE]; /* without quotes */
};

/**
 * Open a file of a table that is_readable_table_path() allows. The entity tag depends on the content only: on its size
 * and its last 64 KiB, which include a Parquet file's footer with the offsets and statistics of all columns.
 *
 * @return ST_NOT_FOUND when the regular file does not exist.
 */
enum status open_table_file(const struct tenant *t, const char *table, const char *path, struct table_file *ret,
                            struct error *err) MUST_CHECK;

#endif
