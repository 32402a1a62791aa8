/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_EXPLAIN_EXPLAIN_LIBDW_H
#define CAIRN_SYMBOLIZER_EXPLAIN_EXPLAIN_LIBDW_H

/**
 * @file
 * Frames according to libdw, as a second opinion. Separate from explain_internal.h because constants of libdw and
 * of dwarf/ have equal names.
 */
#include <stdint.h>

#include "common/memory/buf.h"

/**
 * Append a report ("second_opinion" of docs/formats/why.md). libdw reads the files from memory and opens none.
 * @param altlink_fd dwz supplementary file, -1 none.
 * @return ST_BAD_DATA when libdw cannot read the file at all.
 */
enum status explain_write_second_opinion(int fd, int altlink_fd, const char *name, const uint64_t *addresses,
                                         size_t count, struct buf *to, struct error *err) MUST_CHECK;

#endif
