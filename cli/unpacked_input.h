/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_UNPACKED_INPUT_H
#define CAIRN_CLI_UNPACKED_INPUT_H

#include <stdbool.h>

#include "common/buf.h"

/** Whether a path stands for standard input or output: "-" or NULL. */
bool path_is_standard(const char *path);

/** Append what a file or standard input holds, unpacked where gzip or zstd packed it. */
enum status unpacked_input_read(const char *path, struct buf *ret, struct error *err) MUST_CHECK;

#endif
