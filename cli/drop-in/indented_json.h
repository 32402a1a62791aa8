/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_DROP_IN_INDENTED_JSON_H
#define CAIRN_CLI_DROP_IN_INDENTED_JSON_H

/**
 * @file
 * JSON for readers: each member and element on a line of its own, with two blanks per level.
 *
 * Threads: any number.
 */
#include "common/memory/buf.h"

/**
 * Append valid JSON, which has no blanks outside of strings, with line breaks.
 * @param depth  the level of its first line, which is not indented.
 */
void append_indented_json(struct buf *out, const char *json, size_t size, unsigned depth);

#endif
