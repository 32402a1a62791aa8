/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_EXTRACT_WORKER_H
#define CAIRN_SYMBOLIZER_EXTRACT_WORKER_H

/**
 * @file
 * Extraction in a confined worker: what every caller outside a worker uses,
 * since ELF and DWARF come from strangers.
 */
#include <stdatomic.h>

#include "symbolizer/extract.h"
#include "symbolizer/symbol_book.h"

/**
 * Run `cairn worker symbols` on the inputs and read its symbol table.
 * @param cancel as in struct worker_job; NULL never.
 * @param ret owned, symbol_table_deinit(); untouched on failure.
 * @return as symbol_table_extract(); ST_BAD_DATA also when the worker died, and how; ST_BUSY when cancelled.
 * Threads: any.
 */
enum status symbol_table_extract_confined(const struct extract_inputs *in, const atomic_bool *cancel,
                                          struct symbol_table *ret, struct error *err) MUST_CHECK;

/**
 * The same as a symbol book.
 * @param other_files_ret whether .dwo files were looked for: what is in the book then depends on more than the inputs.
 * @param ret             owned, symbol_book_close().
 */
enum status symbol_book_extract_confined(const struct extract_inputs *in, bool *other_files_ret, struct symbol_book *ret,
                                         struct error *err) MUST_CHECK;

#endif
