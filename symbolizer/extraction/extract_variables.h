/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_EXTRACTION_EXTRACT_VARIABLES_H
#define CAIRN_SYMBOLIZER_EXTRACTION_EXTRACT_VARIABLES_H

/**
 * @file
 * The variables of the function at one address (dwarf/stack_variables.h), as a report of texts that end with a NUL, in
 * the order of enum variable_field: a confined worker writes it, and its parent reads it.
 *
 * Threads: none started.
 */
#include "common/memory/buf.h"
#include "symbolizer/extraction/extract.h"

enum variable_field { /* "" unknown; numbers are decimal */
                      VARIABLE_FUNCTION,
                      VARIABLE_NAME,
                      VARIABLE_PATH, /* of the declaration */
                      VARIABLE_LINE,
                      VARIABLE_FRAME_OFFSET,
                      VARIABLE_SIZE,
                      VARIABLE_TAG_OFFSET,
                      VARIABLE_FIELDS,
};

/**
 * Append the report for the first address of in->filter.
 * @return as symbol_table_extract(); ST_TOO_BIG past LIMIT_STACK_VARIABLES or LIMIT_STACK_VARIABLES_BYTES.
 */
enum status extract_variables(const struct extract_inputs *in, struct buf *to, struct error *err) MUST_CHECK;

/**
 * The next variable of an untrusted report.
 * @param at_io  the position, 0 at first.
 * @param ret    borrowed from the report.
 * @return false at the end, and for a report that is cut off.
 */
bool extract_variables_next(const struct buf *report, size_t *at_io, const char *ret[VARIABLE_FIELDS]);

#endif
