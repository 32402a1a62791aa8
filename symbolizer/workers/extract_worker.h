/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_WORKERS_EXTRACT_WORKER_H
#define CAIRN_SYMBOLIZER_WORKERS_EXTRACT_WORKER_H

/**
 * @file
 * Extraction in a confined worker, for all callers outside of one: ELF and
 * DWARF are untrusted.
 */
#include <stdatomic.h>

#include "symbolizer/extraction/extract.h"
#include "symbolizer/formats/symcache.h"

/**
 * Run `cairn worker symbols` on the inputs and read its symbol table.
 * @param cancel as in struct worker_job; NULL never.
 * @param ret owned, symbol_table_deinit(); untouched on failure.
 * @return as symbol_table_extract(); ST_BAD_DATA also when the worker crashed; ST_BUSY when cancelled.
 * Threads: any.
 */
enum status symbol_table_extract_confined(const struct extract_inputs *in, const atomic_bool *cancel,
                                          struct symbol_table *ret, struct error *err) MUST_CHECK;

/**
 * The same as a symcache.
 * @param other_files_ret whether .dwo files were requested: the symcache then depends on more than the inputs.
 * @param ret             owned, symcache_close().
 */
enum status symcache_extract_confined(const struct extract_inputs *in, bool *other_files_ret, struct symcache *ret,
                                      struct error *err) MUST_CHECK;

/**
 * The variables of the function at the first address of in->filter.
 * @param ret  initialized; receives a report that extract_variables_next() reads.
 */
enum status variables_extract_confined(const struct extract_inputs *in, struct buf *ret, struct error *err) MUST_CHECK;

/**
 * The text of a source file that a line table embeds.
 * @param in   only the units that cover the addresses of the filter need to be read, which may be few.
 * @param ret  initialized; receives a report as symbolizer/extraction/extract_source.h has it.
 */
enum status source_extract_confined(const struct extract_inputs *in, const char *path, struct buf *ret,
                                    struct error *err) MUST_CHECK;

#endif
