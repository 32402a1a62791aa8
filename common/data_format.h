/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_DATA_FORMAT_H
#define CAIRN_COMMON_DATA_FORMAT_H

/**
 * @file
 * Format of a data directory as a whole (DIR/format), so that an older program refuses a directory of a newer one
 * before it changes anything in it. The formats inside have versions of their own. docs/operations.md, Upgrade and
 * downgrade
 *
 * The file is one line, "format N cairn VERSION": the format, and the program that was the first to write it. A
 * directory without the file is of a program from before the file existed, or new; every program reads it.
 */
#include "common/error.h"

/** Raised when an earlier release would misread, lose or damage what this one writes; see CONTRIBUTING.md. */
#define DATA_FORMAT_VERSION 1

/**
 * Check that this program may open a data directory; changes nothing.
 * @return ST_OK, also without the file or the directory; ST_UNSUPPORTED: a newer format; ST_BAD_DATA: the file has
 * other text; ST_OS.
 */
enum status data_format_check(const char *dir, struct error *err) MUST_CHECK;

/** Write the file durably unless it has this format; for who has locked the directory. Returns as data_format_check().
 */
enum status data_format_write(const char *dir, struct error *err) MUST_CHECK;

#endif
