/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_WORKERS_EXTRACT_JOB_H
#define CAIRN_SYMBOLIZER_WORKERS_EXTRACT_JOB_H

/**
 * @file
 * The worker's side of symbolizer/workers/extract_worker.h, for each program that
 * extracts: `worker symbols NAME FORM [FILE_NAME]` writes a symbol table file, or with FORM
 * "symcache", "detailed-symcache" or "relative-symcache" a symcache, from ELF files or from a symbol file; "variables"
 * and "source" a report of symbolizer/extraction/extract_variables.h or extract_source.h. "source" and
 * "relative-source" are followed by FILE_NAME, which may be empty, and the path.
 *
 * Descriptors: 3 debuginfo or the symbol file, 4 executable, 5 dwz supplementary
 * file, 6 output, 7 package of split DWARF, 8 socket for requests of single .dwo
 * files, 9 the address filter (closed: all addresses), as written by
 * symbolizer/workers/extract_worker.c. Each but 6 may be closed. NAME is for messages.
 */
#include "common/error.h"

/** Confine the process, then extract. @param argv begins with "symbols". */
enum status extract_run_job(int argc, char **argv, struct error *err) MUST_CHECK;

#endif
