/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_FILES_DATA_FORMAT_H
#define CAIRN_COMMON_FILES_DATA_FORMAT_H

/**
 * @file
 * Format of a data directory as a whole (DIR/format), so that an older program refuses a newer directory before it
 * changes anything in it. The formats of the files have their own versions. docs/operations.md, Upgrade and downgrade
 *
 * The file is one line, "data-format N cairn VERSION": the format, and the first program version that wrote it. A
 * directory without the file is new. Programs before 0.1.0 wrote no file, or another first word; their directories are
 * refused.
 */
#include "common/error.h"

/** Raised when an earlier release would misread, lose or damage data of this one; see CONTRIBUTING.md. */
#define DATA_FORMAT_VERSION 1

/**
 * Check that this program may open a data directory; changes nothing.
 * @return ST_OK, also for a new directory and for none; ST_UNSUPPORTED: a newer format, or data from before 0.1.0;
 * ST_BAD_DATA: the file has unexpected content; ST_OS.
 */
enum status data_format_check(const char *dir, struct error *err) MUST_CHECK;

/**
 * Write the file durably unless it has this format. The caller holds the lock of the directory. Returns like
 * data_format_check().
 */
enum status data_format_write(const char *dir, struct error *err) MUST_CHECK;

#endif
