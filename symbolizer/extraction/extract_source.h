/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_EXTRACTION_EXTRACT_SOURCE_H
#define CAIRN_SYMBOLIZER_EXTRACTION_EXTRACT_SOURCE_H

/**
 * @file
 * The text of a source file that a line table embeds (clang's -gembed-source), as a report: a confined worker writes
 * it, and its parent reads it. It is one byte, 'n' without any text, 'o' if only other files have one, 't' before
 * the text, 'u' before that of the unit that covers the address, if others have another text for the same path.
 *
 * Threads: none started.
 */
#include "common/memory/buf.h"
#include "symbolizer/extraction/extract.h"

/**
 * Append the report for a path of the line tables, as the symbols of these inputs have it, at the first address of the
 * filter, which is required.
 * @return as symbol_table_extract(); ST_TOO_BIG past LIMIT_SOURCE_FILE_BYTES.
 */
enum status extract_source_text(const struct extract_inputs *in, const char *path, struct buf *to,
                                struct error *err) MUST_CHECK;

struct source_report {
        const char *text; /* borrowed from the report; NULL: this source is not embedded */
        size_t size_bytes;
        bool has_any;    /* this source is embedded, or another */
        bool is_of_unit; /* the text is for the address, others may have another one */
};

/** Read an untrusted report. */
struct source_report extract_source_read(const struct buf *report);

#endif
