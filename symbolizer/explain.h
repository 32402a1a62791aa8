/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_EXPLAIN_H
#define CAIRN_SYMBOLIZER_EXPLAIN_H

/**
 * @file
 * How each of some addresses is resolved, or why it is not: a report in JSON
 * (docs/formats/why.md, "object").
 *
 * The answer is the one of symbol_table_extract(), which runs as always; the
 * report says which source gave it, what the others would have said, and the
 * units, DIEs, rows and symbols behind it. explain_write() is for a confined
 * worker; explain_confined() runs one.
 */
#include <stdatomic.h>

#include "common/buf.h"
#include "symbolizer/extract.h"

#define EXPLAIN_ADDRESSES_MAX 64          /* of one report */
#define EXPLAIN_REPORT_BYTES_MAX (16 << 20)
#define EXPLAIN_CPU_S 60                  /* of a worker */

/** Append the report. @return as symbol_table_extract(); ST_USAGE past EXPLAIN_ADDRESSES_MAX. */
enum status explain_write(const struct extract_inputs *in, const uint64_t *addresses, size_t count, struct buf *to,
                          struct error *err) MUST_CHECK;

enum explain_job { EXPLAIN_OBJECT, EXPLAIN_SECOND_OPINION };

/**
 * Run `cairn worker explain` and append its report, whose bytes are the worker's: no text in it is to be trusted.
 * @param cancel as in struct worker_job.
 * @return what the worker failed with; ST_BAD_DATA also when it died, and how.
 */
enum status explain_confined(const struct extract_inputs *in, enum explain_job job, const uint64_t *addresses,
                             size_t count, const atomic_bool *cancel, struct buf *to, struct error *err) MUST_CHECK;

#endif
