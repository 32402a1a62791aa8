/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_EXPLAIN_EXPLAIN_H
#define CAIRN_SYMBOLIZER_EXPLAIN_EXPLAIN_H

/**
 * @file
 * Explanation of how some addresses are resolved, or why they are not, as a JSON
 * report (docs/formats/why.md, "object").
 *
 * The answer is computed by symbol_table_extract(); the report adds the source
 * that gave it, the answers of the other sources, and the units, DIEs, rows and
 * symbols that it comes from. explain_write() runs inside a confined worker;
 * explain_run_worker() starts one.
 */
#include <stdatomic.h>

#include "common/memory/buf.h"
#include "symbolizer/extraction/extract.h"

#define EXPLAIN_ADDRESSES_MAX 64 /* of one report */
#define EXPLAIN_REPORT_BYTES_MAX (16 << 20)
#define EXPLAIN_CPU_S 60 /* of a worker */

/** Append the report. @return as symbol_table_extract(); ST_USAGE past EXPLAIN_ADDRESSES_MAX. */
enum status explain_write(const struct extract_inputs *in, const uint64_t *addresses, size_t count, struct buf *to,
                          struct error *err) MUST_CHECK;

enum explain_job { EXPLAIN_OBJECT, EXPLAIN_SECOND_OPINION };

/**
 * Run `cairn worker explain` and append its report. The report is untrusted: the worker parsed a hostile file.
 * @param cancel as in struct worker_job.
 * @return the worker's status; ST_BAD_DATA also when it crashed, with the signal in err.
 */
enum status explain_run_worker(const struct extract_inputs *in, enum explain_job job, const uint64_t *addresses,
                               size_t count, const atomic_bool *cancel, struct buf *to, struct error *err) MUST_CHECK;

#endif
