/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_FILES_DATA_FORMAT_H
#define CAIRN_COMMON_FILES_DATA_FORMAT_H

/**
 * @file
 * Format of a data directory as a whole (DIR/format), so that an older program refuses a newer directory before it
 * changes anything in it. The formats of the files have their own versions. docs/operations.md, Upgrade and downgrade
 *
 * The file is one line, "format N cairn VERSION": the format, and the first program version that wrote it. A directory
 * without the file is new, or was written before the file was introduced; every program reads it.
 */
#include "common/error.h"

/** Raised when an earlier release would misread, lose or damage data of this one; see CONTRIBUTING.md. */
#define DATA_FORMAT_VERSION 1

/**
 * Check that this program may open a data directory; changes nothing.
 * @return ST_OK, also without the file or the directory; ST_UNSUPPORTED: a newer format; ST_BAD_DATA: the file has
 * unexpected content; ST_OS.
 */
enum status data_format_check(const char *dir, struct error *err) MUST_CHECK;

/**
 * Write the file durably unless it has this format. The caller holds the lock of the directory. Returns like
 * data_format_check().
 */
enum status data_format_write(const char *dir, struct error *err) MUST_CHECK;

#endif
