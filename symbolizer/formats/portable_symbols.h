/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_FORMATS_PORTABLE_SYMBOLS_H
#define CAIRN_SYMBOLIZER_FORMATS_PORTABLE_SYMBOLS_H

/**
 * @file
 * Symbol files (docs/formats/symbol-file.md): the symbol table of one object in
 * a portable form, delta-coded so that zstd compresses it well. `cairn-upload
 * --symbols-only` sends one in place of debuginfo. The symbol table file of
 * symbol-index/symbol_table.h is for one machine and version only; symbol files
 * are stored and read by later versions.
 *
 * Threads: any, on different files.
 */
#include "symbol-index/symbol_table.h"

/** True when the first n bytes of a file are those of a symbol file. */
bool portable_symbols_has_magic(const void *head, size_t n);

/**
 * Write the table into fd, an empty regular file.
 * @param go_id the object's Go build-id if it differs from the table's build_id; size 0 none.
 * @return ST_TOO_BIG past LIMIT_SYMBOL_FILE_BYTES; ST_NO_MEMORY; ST_OS.
 */
enum status portable_symbols_write(const struct symbol_table *t, const struct build_id *go_id, int fd,
                                   struct error *err) MUST_CHECK;

/**
 * Read one from an untrusted regular file. The table passes symbol_table_check().
 * @param name for messages.  @param ret owned, symbol_table_deinit().  @param go_id_ret may be NULL.
 * @return ST_BAD_DATA; ST_UNSUPPORTED for another version; ST_TOO_BIG; ST_NO_MEMORY; ST_OS.
 */
enum status portable_symbols_read(int fd, const char *name, struct symbol_table *ret, struct build_id *go_id_ret,
                                  struct error *err) MUST_CHECK;

#endif
