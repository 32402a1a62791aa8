/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_EXTRACTION_EXTRACT_SOURCE_H
#define CAIRN_SYMBOLIZER_EXTRACTION_EXTRACT_SOURCE_H

/**
 * @file
 * The text of a source file that a line table embeds (clang's -gembed-source), as a report: a confined worker writes
 * it, and its parent reads it. It is one byte, 'n' without any text, 'o' if only other files have one, 't' before
 * the text.
 *
 * Threads: none started.
 */
#include "common/memory/buf.h"
#include "symbolizer/extraction/extract.h"

/**
 * Append the report for a path of the line tables, as the symbols of these inputs have it.
 * @return as symbol_table_extract(); ST_TOO_BIG past LIMIT_SOURCE_FILE_BYTES.
 */
enum status extract_source_text(const struct extract_inputs *in, const char *path, struct buf *to,
                                struct error *err) MUST_CHECK;

/**
 * The text in an untrusted report.
 * @param any_ret  whether a source is embedded, this one or another.
 * @return borrowed from the report, size_ret bytes; NULL: this one is not embedded.
 */
const char *extract_source_read(const struct buf *report, size_t *size_ret, bool *any_ret);

#endif
